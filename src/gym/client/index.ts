// The client of an environment on a server.
export * from "./client.ts";
export type { SocketLike, SocketMaker } from "./socket.ts";
