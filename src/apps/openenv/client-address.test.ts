// Clients by address: networks of IPv6 as one, proxies believed only when they are trusted.
import { expect, test } from "vitest";
import { networkOf, Proxies } from "./client-address.ts";

const from = (remoteAddress: string, forwarded?: string) => ({
  socket: { remoteAddress },
  headers: forwarded === undefined ? {} : { "x-forwarded-for": forwarded },
});

test("without trusted proxies the header is ignored", () => {
  expect(new Proxies().addressOf(from("203.0.113.9", "1.2.3.4"))).toBe("203.0.113.9");
  expect(new Proxies(["10.0.0.0/8"]).addressOf(from("203.0.113.9", "1.2.3.4"))).toBe("203.0.113.9");
});

test("with trusted proxies, the last untrusted address is the client's", () => {
  const proxies = new Proxies(["10.0.0.0/8", "2001:db8::1"]);
  expect(proxies.addressOf(from("10.1.2.3", "6.6.6.6, 1.2.3.4"))).toBe("1.2.3.4"); // the client wrote the first itself
  expect(proxies.addressOf(from("::ffff:10.1.2.3", "1.2.3.4, 10.9.9.9"))).toBe("1.2.3.4");
  expect(proxies.addressOf(from("2001:db8::1", "2001:db8::7"))).toBe("2001:db8::7");
  expect(proxies.addressOf(from("10.1.2.3", "1.2.3.4, nonsense"))).toBe("10.1.2.3");
  expect(proxies.addressOf(from("10.1.2.3"))).toBe("10.1.2.3");
});

test.each([
  ["1.2.3.4:5555", "1.2.3.4"],
  ["[2001:db8::7]:443", "2001:db8::7"],
  ["[2001:db8::7]", "2001:db8::7"],
  ["2001:db8::7:443", "2001:db8::7:443"], // already an address
  ["[::ffff:1.2.3.4]:443", "1.2.3.4"],
  ["1.2.3.4,", "1.2.3.4"],
  ["6.6.6.6, , 1.2.3.4:1 ,, 10.0.0.9:80, ", "1.2.3.4"],
  ["1.2.3.4, [nonsense]:1", "10.1.2.3"],
  [" , ,", "10.1.2.3"],
])("X-Forwarded-For %j from a trusted proxy means %s", (forwarded, address) => {
  expect(new Proxies(["10.0.0.0/8"]).addressOf(from("10.1.2.3", forwarded))).toBe(address);
});

test.each(["10.0.0.0/33", "ten", "10.0.0.0/8/8", "::/x", ""])("%j is no network", (text) => {
  expect(() => new Proxies([text])).toThrow(/not an address or network/);
});

test("an IPv6 /64 is one client, an IPv4 address another", () => {
  expect(networkOf("203.0.113.9")).toBe("203.0.113.9");
  expect(networkOf("2001:db8:1:2:3:4:5:6")).toBe("2001:db8:1:2::/64");
  expect(networkOf("2001:0DB8:1:2::9")).toBe("2001:db8:1:2::/64");
  expect(networkOf("2001:db8::1")).toBe("2001:db8:0:0::/64");
  expect(networkOf("::1")).toBe("0:0:0:0::/64");
  expect(networkOf("fe80::1%eth0")).toBe("fe80:0:0:0::/64");
});
