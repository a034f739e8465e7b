// A PostgreSQL server of its own for a test: Debian's programs, a temporary data folder, a port on loopback, and an
// unprivileged user, since PostgreSQL refuses to run as root.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export const PASSWORD = "open sesame";

/** The folder of initdb and postgres; undefined if they are not installed. */
export function postgresPrograms(): string | undefined {
  const root = "/usr/lib/postgresql";
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : [];
  return versions.map((version) => join(root, version, "bin")).find((folder) => existsSync(join(folder, "initdb")));
}

export interface PostgresServer {
  readonly port: number;
  /** Runs SQL as the owner. */
  run(sql: string): void;
  stop(): Promise<void>;
}

/** Starts a server with the user `tester`, and waits until it accepts connections. */
export async function startPostgres(programs: string): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), "sqlenv-postgres-"));
  const isRoot = process.getuid?.() === 0;
  const idOf = (flag: string) => Number(execFileSync("id", [flag, "nobody"], { encoding: "utf8" }));
  const user = isRoot ? { uid: idOf("-u"), gid: idOf("-g") } : {};
  const secret = join(folder, "password");
  writeFileSync(secret, PASSWORD, { mode: 0o600 });
  if (isRoot) for (const path of [folder, secret]) chownSync(path, user.uid!, user.gid!);
  const options = { cwd: folder, ...user };
  const data = join(folder, "data");
  execFileSync(
    join(programs, "initdb"),
    ["-D", data, "-U", "tester", "-A", "scram-sha-256", `--pwfile=${secret}`, "-E", "UTF8", "--no-sync"],
    { ...options, stdio: "pipe" },
  );
  const port = await freePort();
  const server = spawn(
    join(programs, "postgres"),
    ["-D", data, "-h", "127.0.0.1", "-p", String(port), "-k", folder, "-c", "fsync=off"],
    { ...options, stdio: ["ignore", "ignore", "pipe"] },
  );
  for await (const line of createInterface({ input: server.stderr })) if (line.includes("ready to accept")) break;
  server.stderr.resume();
  return {
    port,
    run: (sql) =>
      void execFileSync(
        join(programs, "psql"),
        ["-h", "127.0.0.1", "-p", String(port), "-U", "tester", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-q"],
        { input: sql, env: { ...process.env, PGPASSWORD: PASSWORD }, stdio: ["pipe", "pipe", "pipe"] },
      ),
    stop: async () => {
      const closed = once(server, "close");
      server.kill("SIGQUIT");
      await closed;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, "close");
  return port;
}
