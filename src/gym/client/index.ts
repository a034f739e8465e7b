// Client for an environment on a server.
export { type ClientOptions, type RemoteResetOptions, type RemoteState, SQLEnvClient } from "./client.ts";
export type { SocketLike, SocketMaker } from "./socket.ts";
