// What a client may use up of the server. Every limit is an option of `startServer` and `sqlenv serve`.

/** Milliseconds a statement may take while no other client waits for its thread; as Datasette allows. */
export const ALONE_MS = 1_000;

/** Milliseconds a statement may take while other clients wait for its thread. */
export const CONTENDED_MS = 250;

/** Sessions at a time, over sockets and MCP together. A session costs some 50 KB; a trainer needs one for each completion it plays at once. */
export const MAX_SESSIONS = 1_024;

/** Bytes of one message or body. An action's argument may have 20,000 characters. */
export const MAX_MESSAGE_BYTES = 1_000_000;

/** Seconds without a reset, step or call after which a session is closed: trainers pause while they learn. */
export const IDLE_SECONDS = 3_600;

/** Seconds between the server's pings. */
export const PING_SECONDS = 30;

/** Seconds without any sign of life from a socket; clients that read only while they wait answer no ping meanwhile. */
export const SILENT_SECONDS = 300;

/** Messages a second of one client address. Above it sockets are slowed down, and plain HTTP is refused with 429. */
export const RATE_PER_CLIENT = 2_000;

/** Messages of one socket that wait while another is answered; more are left in the network. */
export const MAX_WAITING = 64;

/** Bytes not yet read by the client; until it reads, its next message waits. */
export const MAX_UNREAD_BYTES = 4_000_000;

/** Seconds a shutdown waits for steps that are under way. */
export const SHUTDOWN_SECONDS = 10;
