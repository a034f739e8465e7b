// Web pages served next to the protocol. A separate file, so that the public types do not depend on hono's.

/** Serves some pages; undefined for requests it does not handle. */
export type PageHandler = (request: Request) => Promise<Response | undefined>;
