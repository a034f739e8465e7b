// Access control: the Host header, the Origin of web pages and the API key. The key also identifies the client; without
// keys its address does.
import { createHash, timingSafeEqual } from "node:crypto";
import { isAllowedHost } from "./allowed-hosts.ts";
import { networkOf } from "./client-address.ts";
import { WrongKeys } from "./wrong-keys.ts";

export interface AccessOptions {
  /** API keys; one is required by every request but GET /health. @default none */
  readonly apiKeys?: readonly string[] | undefined;
  /** Origins of web pages that may use the server besides its own; "*" allows all. @default none */
  readonly origins?: readonly string[] | undefined;
  /** Host names the server accepts besides this machine's. @default "any" */
  readonly hosts?: readonly string[] | "any";
}

export interface Refusal {
  readonly status: 401 | 403 | 429 | 503;
  readonly detail: string;
  /** Seconds after which to try again. */
  readonly retryAfter?: number;
}

/** An admitted request and its client. */
export interface Admitted {
  readonly client: string;
}

/** The parts of a request that access control reads. */
export interface Caller {
  readonly address: string;
  readonly url: URL;
  readonly header: (name: string) => string | undefined;
  /** Whether it is a WebSocket upgrade: browsers can then send a key only in the URL. */
  readonly isUpgrade: boolean;
}

/** Admits or refuses requests by their headers. */
export class Access {
  readonly #keys: readonly Buffer[];
  readonly #origins: ReadonlySet<string>;
  readonly #hosts: readonly string[] | "any";
  readonly #wrongKeys = new WrongKeys();

  constructor({ apiKeys = [], origins = [], hosts = "any" }: AccessOptions = {}) {
    this.#keys = apiKeys.map(digest);
    this.#origins = new Set(origins);
    this.#hosts = hosts;
  }

  /** Refuses a wrong Host or Origin; undefined if both are allowed. Checked first. */
  refuseOrigin(caller: Caller): Refusal | undefined {
    const { url, header } = caller;
    if (!isAllowedHost(header("host"), this.#hosts) || !isAllowedHost(url.host, this.#hosts))
      return { status: 403, detail: "Host not allowed: name it with --allowed-host" };
    if (!this.allowsOrigin(caller)) return { status: 403, detail: "Origin not allowed" };
    return undefined;
  }

  /** Identifies the client, or refuses it. */
  admit(caller: Caller, now = performance.now()): Admitted | Refusal {
    const address = networkOf(caller.address);
    if (this.#keys.length === 0 || caller.url.pathname === "/health") return { client: address };
    const shown = digest(keyOf(caller));
    let found = -1;
    for (const [i, key] of this.#keys.entries()) if (timingSafeEqual(key, shown)) found = i; // compares all keys: constant time
    if (found >= 0) return { client: `key ${found + 1}` };
    // After the comparison: others at the same address must not lock out a client with a valid key.
    const wait = this.#wrongKeys.waitOf(address, now);
    if (wait > 0) return { status: 429, detail: "Too many wrong keys", retryAfter: Math.ceil(wait / 1000) };
    this.#wrongKeys.miss(address, now);
    return { status: 401, detail: "Unauthorized" };
  }

  /** Programs send no Origin. A web page must be the server's own or an allowed one. */
  allowsOrigin({ url, header }: Pick<Caller, "url" | "header">): boolean {
    const origin = header("origin");
    if (origin === undefined || this.#origins.has("*") || this.#origins.has(origin)) return true;
    const page = URL.canParse(origin) ? new URL(origin) : undefined;
    return page !== undefined && page.host === url.host;
  }
}

/** The request's key: `Authorization: Bearer`, `X-API-Key`, or for sockets `?api_key=`. */
function keyOf({ url, header, isUpgrade }: Caller): string {
  const bearer = /^Bearer\s+(.+)$/i.exec(header("authorization") ?? "")?.[1];
  return bearer ?? header("x-api-key") ?? (isUpgrade ? url.searchParams.get("api_key") : null) ?? "";
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
