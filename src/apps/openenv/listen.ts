// Listens on an address, with an error that says what to do if that fails.
import type { Server } from "node:http";
import { SqlEnvError } from "../../errors.ts";

export function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const isTaken = cause.code === "EADDRINUSE";
      const what = isTaken ? "the port is in use" : `cannot listen (${cause.code ?? cause.message})`;
      const remedy = isTaken ? "name another with --port, or 0 for any that is free" : "check --host and --port";
      reject(new SqlEnvError("listen", { what, value: `${host}:${port}`, remedy, cause }));
    });
    server.listen(port, host, resolve);
  });
}
