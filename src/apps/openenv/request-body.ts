// A request's body as text or bytes, bounded in size and counted as held until the request is answered.
import type { IncomingMessage } from "node:http";
import { HTTPException } from "hono/http-exception";
import type { HeldBytes } from "./held-bytes.ts";

const decoder = new TextDecoder();

export interface BodyOptions {
  readonly client: string;
  readonly held: HeldBytes;
  readonly maxBytes: number;
}

/** Reads the body as text, passes it to `use`, and releases it. Throws HTTPException 413, 429 or 503. */
export function withBody<T>(
  incoming: IncomingMessage,
  options: BodyOptions,
  use: (text: string) => Promise<T>,
): Promise<T> {
  return withBytes(incoming, options, (bytes) => use(decoder.decode(bytes)));
}

/** `withBody` for a body that is no text. */
export async function withBytes<T>(
  incoming: IncomingMessage,
  { client, held, maxBytes }: BodyOptions,
  use: (bytes: Uint8Array) => Promise<T>,
): Promise<T> {
  if (Number(incoming.headers["content-length"] ?? 0) > maxBytes) throw refusal(413, "Request body too large");
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    // Not destroyed when refused midway: the connection is needed for the response.
    for await (const chunk of incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      const full = held.over(client);
      if (full === "client") throw refusal(429, "Too many requests are waiting");
      if (full === "server") throw refusal(503, "The server is busy");
      held.add(client, chunk.length);
      length += chunk.length;
      if (length > maxBytes) throw refusal(413, "Request body too large");
      chunks.push(chunk);
    }
    return await use(Buffer.concat(chunks));
  } catch (error) {
    throw incoming.errored ? new HTTPException(400) : error;
  } finally {
    held.giveBack(client, length);
  }
}

/** The rest of the body is not read, so the connection cannot be reused. */
function refusal(status: 413 | 429 | 503, detail: string): HTTPException {
  const headers = { connection: "close", ...(status !== 413 && { "retry-after": "1" }) };
  return new HTTPException(status, { res: Response.json({ detail }, { status, headers }) });
}
