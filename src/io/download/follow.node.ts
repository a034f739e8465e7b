// Follows redirects: never from https to http, and never from the internet into a private network.
import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";

const MAX_REDIRECTS = 5;

/** A redirect that is refused; a retry would not change that. */
export class RedirectError extends Error {}

/** Sends a GET request and follows redirects; `authorization` is only sent to the first origin. */
export async function follow(
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Response> {
  const first = new URL(url);
  let at = first;
  for (let redirects = 0; ; redirects++) {
    const { authorization: _, ...others } = headers;
    const sent = at.origin === first.origin ? headers : others;
    const response = await fetch(at, { headers: sent, redirect: "manual", signal });
    const location = response.headers.get("location");
    if (response.status < 300 || response.status >= 400 || location === null) return response;
    await response.body?.cancel();
    if (redirects === MAX_REDIRECTS) throw new RedirectError(`more than ${MAX_REDIRECTS} redirects`);
    const next = new URL(location, at);
    await check(first, at, next);
    at = next;
  }
}

async function check(first: URL, from: URL, to: URL): Promise<void> {
  if (to.protocol !== "https:" && to.protocol !== "http:")
    throw new RedirectError(`redirected to ${to.protocol} instead of http or https`);
  if (from.protocol === "https:" && to.protocol === "http:")
    throw new RedirectError(`redirected from https to http (${to.host})`);
  if (to.host === from.host || (await isPrivate(first.hostname))) return;
  if (await isPrivate(to.hostname))
    throw new RedirectError(`redirected to an address of a private network (${to.host})`);
}

// https://www.iana.org/assignments/iana-ipv4-special-registry, and its counterpart for IPv6
const PRIVATE = new BlockList();
for (const [address, bits] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16], // metadata services of clouds, with credentials
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
] as const)
  PRIVATE.addSubnet(address, bits, "ipv4");
for (const [address, bits] of [
  ["::", 127],
  ["64:ff9b:1::", 48],
  ["fc00::", 7],
  ["fe80::", 10],
  ["ff00::", 8],
] as const)
  PRIVATE.addSubnet(address, bits, "ipv6");

/** Whether a host is, or has, an address that the internet does not route. An unknown name is left to the request. */
export async function isPrivate(hostname: string): Promise<boolean> {
  const host = hostname.replace(/^\[|\]$/g, "");
  if (/(?:^|\.)localhost\.?$/i.test(host)) return true;
  const addresses = isIP(host) ? [{ address: host }] : await lookup(host, { all: true }).catch(() => []);
  return addresses.some(({ address }) => {
    const mapped = /^::ffff:(?:(\d+\.\d+\.\d+\.\d+)|([0-9a-f]{1,4}):([0-9a-f]{1,4}))$/i.exec(address);
    const plain = mapped ? (mapped[1] ?? dotted(mapped[2]!, mapped[3]!)) : address;
    return PRIVATE.check(plain, isIP(plain) === 6 ? "ipv6" : "ipv4");
  });
}

/** The last 32 bits of an IPv6 address as IPv4 writes them. */
function dotted(high: string, low: string): string {
  const [a, b] = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return [a >> 8, a & 255, b >> 8, b & 255].join(".");
}
