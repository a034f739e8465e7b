// The names a server answers to. A page of a foreign site may point its own name at this machine, and is then the
// "same site" for a browser; the name in its requests gives it away.

/** Whether a name means this machine only. */
export function isLoopback(name: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(name);
}

/** Whether an address to listen on means every network of this machine. */
export function isEveryAddress(host: string): boolean {
  return host === "0.0.0.0" || host === "::" || host === "";
}

/** The names for a server that listens on `host`: this machine's, that address, and those given; "any" when it listens everywhere and none is given. */
export function hostsFor(host: string, given: readonly string[] = []): readonly string[] | "any" {
  if (isEveryAddress(host)) return given.length > 0 ? given : "any";
  return [host, ...given];
}

/** Whether a Host header names a server of these names. Names of this machine always do; the port does not matter. */
export function isAllowedHost(header: string | undefined, hosts: readonly string[] | "any"): boolean {
  if (hosts === "any" || header === undefined) return true; // browsers always send one
  const name = nameOf(header);
  return isLoopback(name) || hosts.some((host) => nameOf(host) === name);
}

/** A host without port, brackets and final dot. */
function nameOf(host: string): string {
  const bare = /^\[(.*)\]/.exec(host)?.[1] ?? (host.split(":").length > 2 ? host : host.replace(/:\d*$/, ""));
  return bare.toLowerCase().replace(/\.$/, "");
}
