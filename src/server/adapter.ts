// Node's HTTP in the web's terms: a Request in, a Response out, streamed both as far as the client reads.
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { messageOf } from "../errors.ts";

export interface AdapterOptions {
  /** Bytes of a body; more is refused with 413. */
  readonly maxBytes: number;
  readonly onError: (message: string) => void;
}

export type Handle = (request: Request, client: string) => Promise<Response>;

/** A listener for `http.createServer`. */
export function listener(handle: Handle, { maxBytes, onError }: AdapterOptions) {
  return (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    answer(incoming, outgoing).catch((error: unknown) => {
      onError(messageOf(error));
      outgoing.destroy();
    });
  };

  async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const abort = new AbortController();
    outgoing.on("close", () => abort.abort());
    const body = await readBody(incoming, maxBytes);
    if (body === null) {
      outgoing.writeHead(413, { "content-type": "application/json", connection: "close" });
      outgoing.end('{"detail":"Request body too large"}');
      return;
    }
    const request = requestOf(incoming, body, abort.signal);
    const response = request
      ? await handle(request, clientOf(incoming)).catch((error: unknown) => {
          onError(messageOf(error));
          return new Response("Internal Server Error", { status: 500 });
        })
      : Response.json({ detail: "Bad Request" }, { status: 400 });
    await send(response, outgoing, incoming.method === "HEAD");
  }
}

/** The address a request came from. */
export function clientOf({ socket }: IncomingMessage): string {
  return socket.remoteAddress ?? "unknown";
}

/** The URL a request asks for; undefined when it makes no sense. */
export function urlOf({ url = "/", headers }: IncomingMessage): URL | undefined {
  const text = `http://${headers.host ?? "localhost"}${url.startsWith("/") ? url : "/"}`;
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** The whole body; null when it is too large. */
async function readBody(incoming: IncomingMessage, maxBytes: number): Promise<Uint8Array<ArrayBuffer> | null> {
  if (Number(incoming.headers["content-length"] ?? 0) > maxBytes) return null;
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBytes) return null;
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}

function requestOf(incoming: IncomingMessage, body: Uint8Array<ArrayBuffer>, signal: AbortSignal): Request | undefined {
  const { method = "GET" } = incoming;
  const url = urlOf(incoming);
  if (!url) return undefined;
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers))
    if (value !== undefined && !name.startsWith(":"))
      headers.set(name, Array.isArray(value) ? value.join(", ") : value);
  try {
    const hasBody = method !== "GET" && method !== "HEAD" && body.length > 0;
    return new Request(url, { method, headers, signal, ...(hasBody && { body }) });
  } catch {
    return undefined; // a method or header that the web does not know
  }
}

async function send(response: Response, outgoing: ServerResponse, headOnly: boolean): Promise<void> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (headOnly || !response.body) {
    await response.body?.cancel();
    outgoing.end();
    return;
  }
  const reader = response.body.getReader();
  outgoing.on("close", () => void reader.cancel().catch(() => {}));
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    if (outgoing.destroyed) return;
    if (!outgoing.write(part.value)) await Promise.race([once(outgoing, "drain"), once(outgoing, "close")]);
  }
  outgoing.end();
}
