// A request's client address, from the connection or a trusted proxy.
import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";
import { UsageError } from "../../errors.ts";

/** Proxies whose `X-Forwarded-For` is trusted. */
export class Proxies {
  readonly #trusted = new BlockList();
  readonly #any: boolean;

  /** Addresses, or networks such as 10.0.0.0/8. */
  constructor(trusted: readonly string[] = []) {
    this.#any = trusted.length > 0;
    for (const text of trusted) {
      const [address = "", bits, ...rest] = text.split("/");
      const version = isIP(address);
      const size = bits === undefined ? (version === 4 ? 32 : 128) : Number(bits);
      if (version === 0 || rest.length > 0 || !Number.isInteger(size) || size < 0 || size > (version === 4 ? 32 : 128))
        throw new UsageError({ what: "not an address or network", value: text, remedy: "such as 10.0.0.0/8" });
      this.#trusted.addSubnet(address, size, version === 4 ? "ipv4" : "ipv6");
    }
  }

  isTrusted(address: string): boolean {
    return this.#any && isIP(address) !== 0 && this.#trusted.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
  }

  /** The client's address: the last one in the chain of proxies that is not itself trusted. */
  addressOf({
    socket,
    headers,
  }: Pick<IncomingMessage, "headers"> & { socket: { remoteAddress?: string | undefined } }) {
    let address = plain(socket.remoteAddress ?? "unknown");
    if (!this.isTrusted(address)) return address;
    const header = [headers["x-forwarded-for"] ?? []].flat().join(",");
    const chain = header.split(",").map((element) => element.trim());
    for (const element of chain.filter((text) => text !== "").reverse()) {
      const next = plain(withoutPort(element));
      if (isIP(next) === 0) break; // not an address: nothing before it can be trusted
      address = next;
      if (!this.isTrusted(address)) break;
    }
    return address;
  }
}

/** The key of one client: an IPv4 address, or the /64 network of an IPv6 address. */
export function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  const [head = "", tail] = address.replace(/%.*$/, "").split("::");
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) {
    const after = tail === "" ? 0 : tail.split(":").length + (tail.includes(".") ? 1 : 0);
    while (groups.length + after < 8) groups.push("0");
  }
  const network = [...groups, "0", "0", "0", "0"].slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(":")}::/64`;
}

/** An address without brackets; IPv4-mapped IPv6 addresses become IPv4. */
function plain(text: string): string {
  const address = text.replace(/^\[(.*)\]$/, "$1");
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
}

/** Strips the port from `1.2.3.4:5555` and `[2001:db8::1]:443`, as some proxies write them. A bare IPv6 address has none. */
function withoutPort(text: string): string {
  return /^(\[[^\]]*\]|[\d.]+):\d{1,5}$/.exec(text)?.[1] ?? text;
}
