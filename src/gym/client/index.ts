// Clients for an environment on a server: SQL ones, and any OpenEnv server.
export { type ClientOptions, type RemoteResetOptions, type RemoteState, SQLEnvClient } from "./client.ts";
export { describeServer, type ServerDescription } from "./describe-server.ts";
export { type JsonObject, OpenEnvSession, SERVER_FULL, type SessionOptions, type SessionReply } from "./session.ts";
export type { SocketLike, SocketMaker } from "./socket.ts";
