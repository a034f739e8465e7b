// An environment on a server, in place of one in this process.
export * from "./client.ts";
export type { SocketLike, SocketMaker } from "./socket.ts";
