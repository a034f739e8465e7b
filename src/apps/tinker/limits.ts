// Limits on a client's use of the server.

/** Sessions in all, and of one client. */
export const MAX_SESSIONS = 64;
export const SESSIONS_PER_CLIENT = 16;

/** Models in training at once: each has the weights, adapters and a cache of its own. */
export const MAX_MODELS = 4;

/** Seconds without a heartbeat or a request after which a session ends; clients send one every 10 s. */
export const IDLE_SECONDS = 300;

/** Bytes of a request: the stock client splits training requests at 5 MB of protobuf, up to three times as much in JSON. */
export const MAX_BODY_BYTES = 32 * 2 ** 20;

/** Bytes of requests that are read at once, of one client and in all. */
export const HELD_BYTES_PER_CLIENT = 256 * 2 ** 20;
export const HELD_BYTES = 512 * 2 ** 20;

/** Samples that run at once, if the KV cache has room; the others wait. */
export const RUNNING_SAMPLES = 256;
/** Samples that wait or run, of one client and in all. */
export const SAMPLES_PER_CLIENT = 4_096;
export const SAMPLES = 8_192;

/** Milliseconds that a poll waits for a result: less than clients' and proxies' time-outs. */
export const POLL_MS = 20_000;
