// Allowed host names, against DNS rebinding: a foreign site may point its own name at this machine and is then same-origin
// for a browser, but its requests still carry that name in the Host header.

/** Whether a name or address is a loopback one. */
export function isLoopback(name: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(name);
}

/** Whether listening on this address means listening on every interface. */
export function isEveryAddress(host: string): boolean {
  return host === "0.0.0.0" || host === "::" || host === "";
}

/** Allowed names for a server listening on `host`: loopback, `host` and the given ones; "any" if it listens everywhere and none is given. */
export function hostsFor(host: string, given: readonly string[] = []): readonly string[] | "any" {
  if (isEveryAddress(host)) return given.length > 0 ? given : "any";
  return [host, ...given];
}

/** Whether a Host header is allowed. Loopback names always are; the port is ignored. */
export function isAllowedHost(header: string | undefined, hosts: readonly string[] | "any"): boolean {
  if (hosts === "any" || header === undefined) return true; // only programs omit the header: browsers always send it
  const name = nameOf(header);
  return isLoopback(name) || hosts.some((host) => nameOf(host) === name);
}

/** A host without port, brackets and final dot. */
function nameOf(host: string): string {
  const bare = /^\[(.*)\]/.exec(host)?.[1] ?? (host.split(":").length > 2 ? host : host.replace(/:\d*$/, ""));
  return bare.toLowerCase().replace(/\.$/, "");
}
