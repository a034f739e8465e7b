// Web pages served beside the protocol. In a file of its own, so that the public types need no framework's.

/** Serves some pages; undefined for requests that are not its own. */
export type PageHandler = (request: Request) => Promise<Response | undefined>;
