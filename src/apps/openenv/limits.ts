// Limits on a client's use of the server. Deployment-specific ones are options of `startServer` and `sqlenv serve`.

/** Milliseconds a statement may take while no other client waits for its thread; Datasette's default. */
export const ALONE_MS = 1_000;

/** Milliseconds a statement may take while other clients wait for its thread. */
export const CONTENDED_MS = 250;

/** Concurrent sessions, sockets and MCP together. A session costs about 50 KB; a trainer needs one per concurrent completion. */
export const MAX_SESSIONS = 1_024;

/** Sessions per client: enough for a trainer's large batch without filling the server. */
export const SESSIONS_PER_CLIENT = 256;

/** Bytes per message or body. An action's argument may have 20,000 characters, each up to six bytes as JSON (`\u0001`). */
export const MAX_MESSAGE_BYTES = 131_072;

/** Seconds without a reset, step or call after which a session is closed; trainers pause while they optimize. */
export const IDLE_SECONDS = 3_600;

/**
 * Seconds after which an HTTP session that was never used is closed: unlike a socket, it has no connection that ends.
 */
export const UNUSED_SECONDS = 60;

/** Seconds of disuse after which, with no free slot, a session may be evicted for a client that has fewer. */
export const EVICTABLE_SECONDS = 600;

/** Seconds a socket has for its first message before it may be evicted, with no free slot. */
export const GRACE_SECONDS = 10;

/** Seconds between the server's pings. */
export const PING_SECONDS = 30;

/** Seconds without data or pong after which a socket is closed; clients that only read while they wait answer no pings in between. */
export const SILENT_SECONDS = 300;

/** Seconds within which a client must read some of a reply. */
export const REPLY_SECONDS = 30;

/** Messages per second and client. Above it sockets are slowed down and plain HTTP gets 429. */
export const RATE_PER_CLIENT = 2_000;

/** Queued messages per socket; beyond it the socket is paused. */
export const MAX_WAITING = 64;

/** Bytes of queued messages per socket; beyond it the socket is paused. */
export const MAX_WAITING_BYTES = 262_144;

/** Bytes a running request counts in addition to its body, for its objects in this thread; so a client's bytes also bound its requests, at 4,096. */
export const REQUEST_BYTES = 2_048;

/** Bytes of messages and unread replies per client: 64 of the largest. */
export const HELD_BYTES_PER_CLIENT = 8_388_608;

/** Bytes of messages and unread replies of all clients. */
export const HELD_BYTES = 134_217_728;

/** Unread bytes per socket; until the client reads, its next message waits. */
export const MAX_UNREAD_BYTES = 65_536;

/** Connections per address beyond its sessions: plain HTTP and short-lived ones. */
export const SPARE_CONNECTIONS = 256;

/** Seconds a shutdown waits for running steps. */
export const SHUTDOWN_SECONDS = 10;

/** Completions of the LLM endpoint that are sampled at once, if the engine's cache has room for their contexts. */
export const RUNNING_COMPLETIONS = 64;

/** Completions per client that wait or are sampled: a trainer's large batch. */
export const COMPLETIONS_PER_CLIENT = 256;

/** Completions of all clients that wait or are sampled. */
export const COMPLETIONS = 1_024;
