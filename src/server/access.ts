// Who may come in: an API key compared in constant time, and the web pages that may speak to the server.
import { createHash, timingSafeEqual } from "node:crypto";

export interface AccessOptions {
  /** Asked of every request but GET /health. @default none */
  readonly apiKey?: string | undefined;
  /** Origins of web pages that may use the server besides its own; "*" lets all. @default none */
  readonly origins?: readonly string[] | undefined;
  /** Whether the server listens on this machine only. */
  readonly isLocal: boolean;
}

export interface Refusal {
  readonly status: 401 | 403;
  readonly detail: string;
}

/** The parts of a request that access depends on. */
export interface Caller {
  readonly url: URL;
  readonly header: (name: string) => string | undefined;
}

/** Decides on requests. */
export class Access {
  readonly #key: Buffer | undefined;
  readonly #origins: ReadonlySet<string>;
  readonly #isLocal: boolean;

  constructor({ apiKey, origins = [], isLocal }: AccessOptions) {
    this.#key = apiKey ? digest(apiKey) : undefined;
    this.#origins = new Set(origins);
    this.#isLocal = isLocal;
  }

  /** Why a request is not let in; undefined when it is. */
  refuse(caller: Caller): Refusal | undefined {
    if (!this.allowsOrigin(caller)) return { status: 403, detail: "Origin not allowed" };
    if (this.#key && caller.url.pathname !== "/health" && !timingSafeEqual(this.#key, digest(keyOf(caller))))
      return { status: 401, detail: "Unauthorized" };
    return undefined;
  }

  /** Programs send no origin. A page must be the server's own, or one that was allowed. */
  allowsOrigin({ url, header }: Caller): boolean {
    const origin = header("origin");
    if (origin === undefined || this.#origins.has("*") || this.#origins.has(origin)) return true;
    const page = URL.canParse(origin) ? new URL(origin) : undefined;
    if (!page || page.host !== url.host) return false;
    // A foreign name that was made to point to this machine is no page of ours.
    return !this.#isLocal || ["localhost", "127.0.0.1", "[::1]"].includes(page.hostname);
  }
}

/** The key a caller shows: `Authorization: Bearer`, `X-API-Key`, or for browsers' sockets `?api_key=`. */
function keyOf({ url, header }: Caller): string {
  const bearer = /^Bearer\s+(.+)$/i.exec(header("authorization") ?? "")?.[1];
  return bearer ?? header("x-api-key") ?? url.searchParams.get("api_key") ?? "";
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
