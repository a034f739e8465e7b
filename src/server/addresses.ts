// Who a request comes from: an address, as the network or a trusted proxy tells it.
import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";
import { UsageError } from "../errors.ts";

/** Proxies whose `X-Forwarded-For` is believed. */
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

  /** The address a request came from: the last one in the chain of proxies that is not trusted itself. */
  addressOf({
    socket,
    headers,
  }: Pick<IncomingMessage, "headers"> & { socket: { remoteAddress?: string | undefined } }) {
    let address = plain(socket.remoteAddress ?? "unknown");
    if (!this.isTrusted(address)) return address;
    const chain = [headers["x-forwarded-for"] ?? []].flat().join(",").split(",");
    for (let i = chain.length - 1; i >= 0; i--) {
      const next = plain(chain[i]!.trim());
      if (isIP(next) === 0) break; // not an address: nothing before it can be believed
      address = next;
      if (!this.isTrusted(address)) break;
    }
    return address;
  }
}

/** What counts as one client: an IPv4 address, or the /64 network that a single IPv6 customer has. */
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

/** An IPv4 address that arrives in IPv6's dress, without it. */
function plain(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  return mapped ?? address.replace(/^\[(.*)\]$/, "$1");
}
