// What a client may use up of the server. Those that depend on the use are options of `startServer` and `sqlenv serve`.

/** Milliseconds a statement may take while no other client waits for its thread; as Datasette allows. */
export const ALONE_MS = 1_000;

/** Milliseconds a statement may take while other clients wait for its thread. */
export const CONTENDED_MS = 250;

/** Sessions at a time, over sockets and MCP together. A session costs some 50 KB; a trainer needs one for each completion it plays at once. */
export const MAX_SESSIONS = 1_024;

/** Sessions of one client: a large batch of a trainer, and not the whole server. */
export const SESSIONS_PER_CLIENT = 256;

/** Bytes of one message or body. An action's argument may have 20,000 characters, each up to six bytes as JSON (`\u0001`). */
export const MAX_MESSAGE_BYTES = 131_072;

/** Seconds without a reset, step or call after which a session is closed: trainers pause while they learn. */
export const IDLE_SECONDS = 3_600;

/** Seconds after which a session over HTTP that was opened and never used is closed: nobody holds a connection for it. */
export const UNUSED_SECONDS = 60;

/** Seconds without use after which a session may be closed for a client that has fewer, when no slot is left. */
export const EVICTABLE_SECONDS = 600;

/** Seconds a socket has for its first message before it may be closed for another client, when no slot is left. */
export const GRACE_SECONDS = 10;

/** Seconds between the server's pings. */
export const PING_SECONDS = 30;

/** Seconds without any sign of life from a socket; clients that read only while they wait answer no ping meanwhile. */
export const SILENT_SECONDS = 300;

/** Seconds in which a reader of a reply has to make some progress. */
export const REPLY_SECONDS = 30;

/** Messages a second of one client. Above it sockets are slowed down, and plain HTTP is refused with 429. */
export const RATE_PER_CLIENT = 2_000;

/** Messages of one socket that wait while another is answered; more are left in the network. */
export const MAX_WAITING = 64;

/** Bytes of one socket's messages that wait; more are left in the network. */
export const MAX_WAITING_BYTES = 262_144;

/** Bytes that a request under way counts for besides its body: its objects in this thread. With them the bytes of a client bound the number, at 4,096. */
export const REQUEST_BYTES = 2_048;

/** Bytes of messages and unread replies of one client: 64 of the largest. */
export const HELD_BYTES_PER_CLIENT = 8_388_608;

/** Bytes of messages and unread replies of all clients. */
export const HELD_BYTES = 134_217_728;

/** Bytes not yet read by a socket's client; until it reads, its next message waits. */
export const MAX_UNREAD_BYTES = 65_536;

/** Connections of one address beyond its sessions: those of plain HTTP, and of those that come and go. */
export const SPARE_CONNECTIONS = 256;

/** Seconds a shutdown waits for steps that are under way. */
export const SHUTDOWN_SECONDS = 10;
