// Who may come in: by the name they call the server, the web page they come from, and the key they show. The key also
// says which client they are; without keys that is their address.
import { createHash, timingSafeEqual } from "node:crypto";
import { isAllowedHost } from "./allowed-hosts.ts";
import { networkOf } from "./client-address.ts";
import { WrongKeys } from "./wrong-keys.ts";

export interface AccessOptions {
  /** Any of them is asked of every request but GET /health. @default none */
  readonly apiKeys?: readonly string[] | undefined;
  /** Origins of web pages that may use the server besides its own; "*" lets all. @default none */
  readonly origins?: readonly string[] | undefined;
  /** Names the server answers to besides those of this machine. @default "any" */
  readonly hosts?: readonly string[] | "any";
}

export interface Refusal {
  readonly status: 401 | 403 | 429 | 503;
  readonly detail: string;
  /** Seconds after which to try again. */
  readonly retryAfter?: number;
}

/** Someone who was let in; `client` says who. */
export interface Admitted {
  readonly client: string;
}

/** The parts of a request that access depends on. */
export interface Caller {
  readonly address: string;
  readonly url: URL;
  readonly header: (name: string) => string | undefined;
  /** Whether a WebSocket is asked for: browsers can show a key only in the address then. */
  readonly isUpgrade: boolean;
}

/** Decides on requests, by their heads alone. */
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

  /** Why a request may not come from where it comes from; undefined when it may. Asked before anything else. */
  refuseOrigin(caller: Caller): Refusal | undefined {
    const { url, header } = caller;
    if (!isAllowedHost(header("host"), this.#hosts) || !isAllowedHost(url.host, this.#hosts))
      return { status: 403, detail: "Host not allowed: name it with --allowed-host" };
    if (!this.allowsOrigin(caller)) return { status: 403, detail: "Origin not allowed" };
    return undefined;
  }

  /** Says which client a caller is, or why it is not let in. */
  admit(caller: Caller, now = performance.now()): Admitted | Refusal {
    const address = networkOf(caller.address);
    if (this.#keys.length === 0 || caller.url.pathname === "/health") return { client: address };
    const shown = digest(keyOf(caller));
    let found = -1;
    for (const [i, key] of this.#keys.entries()) if (timingSafeEqual(key, shown)) found = i; // all, so that time tells nothing
    if (found >= 0) return { client: `key ${found + 1}` };
    // After the comparison: others at the same address must not be able to lock out those who have a key.
    const wait = this.#wrongKeys.waitOf(address, now);
    if (wait > 0) return { status: 429, detail: "Too many wrong keys", retryAfter: Math.ceil(wait / 1000) };
    this.#wrongKeys.miss(address, now);
    return { status: 401, detail: "Unauthorized" };
  }

  /** Programs send no origin. A page must be the server's own, or one that was allowed. */
  allowsOrigin({ url, header }: Pick<Caller, "url" | "header">): boolean {
    const origin = header("origin");
    if (origin === undefined || this.#origins.has("*") || this.#origins.has(origin)) return true;
    const page = URL.canParse(origin) ? new URL(origin) : undefined;
    return page !== undefined && page.host === url.host;
  }
}

/** The key a caller shows: `Authorization: Bearer`, `X-API-Key`, or for sockets `?api_key=`. */
function keyOf({ url, header, isUpgrade }: Caller): string {
  const bearer = /^Bearer\s+(.+)$/i.exec(header("authorization") ?? "")?.[1];
  return bearer ?? header("x-api-key") ?? (isUpgrade ? url.searchParams.get("api_key") : null) ?? "";
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
