// `sqlenv data make postgres://…` against a real server.
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Ran, sqlenvInside } from "../helpers/cli-process.ts";
import { without } from "../helpers/needs.ts";
import { PASSWORD, type PostgresServer, postgresPrograms, startPostgres } from "../helpers/postgres.ts";

const programs = postgresPrograms();
const missing = without("postgresql", programs !== undefined, "install Debian's postgresql");

describe.skipIf(programs === undefined)(`a PostgreSQL database${missing}`, () => {
  let server: PostgresServer;
  let folder: string;
  let address: string;

  const sqlenv = (args: readonly string[], password = PASSWORD): Promise<Ran> =>
    sqlenvInside(args, "", { NO_COLOR: "1", PGPASSWORD: password });
  const out = (name: string) => join(folder, name);

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "sqlenv-test-"));
    server = await startPostgres(programs!);
    address = `postgres://tester@127.0.0.1:${server.port}/postgres`;
    server.run(`
      CREATE TYPE mood AS ENUM ('calm', 'wild');
      CREATE TABLE harbors (harbor_id int PRIMARY KEY, name text NOT NULL, country varchar(40), opened date, is_deep boolean);
      INSERT INTO harbors SELECT i, 'Port ' || chr(64 + i), (ARRAY['Norway','Peru','Kenya'])[1 + i % 3],
        date '1990-01-05' + i * 200, i % 2 = 0 FROM generate_series(1, 12) AS i;
      CREATE TABLE boats (id bigint PRIMARY KEY, boat_name text, harbor_id int REFERENCES harbors, price numeric(10,2),
        "lengthM" real, crew_mood mood, built timestamptz, plan jsonb, owner_email text);
      INSERT INTO boats SELECT i, 'Boat ' || i, 1 + (i * 7) % 12, 1000 + (i * 37) % 900 + 0.5, 5 + i % 11,
        (CASE WHEN i % 3 = 0 THEN 'wild' ELSE 'calm' END)::mood, timestamptz '2001-02-03 04:05:06+02' + i * interval '9 days',
        '{"a": 1}', 'owner' || i || '@boats.example' FROM generate_series(1, 400) AS i;
      CREATE TABLE secrets (id int PRIMARY KEY, word text);
      INSERT INTO secrets VALUES (1, 'hidden'), (2, 'veiled');
      CREATE ROLE reader LOGIN PASSWORD '${PASSWORD}';
      GRANT SELECT ON harbors, boats TO reader;
      CREATE SCHEMA other; CREATE TABLE other.pets (id int PRIMARY KEY, name text);
    `);
  });

  afterAll(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test("is copied with its keys, types and values, and gets questions", async () => {
    const made = await sqlenv(["data", "make", address, "--out", out("all"), "--questions", "100", "--json"]);
    expect(made).toMatchObject({ code: 0 });
    const [report] = JSON.parse(made.stdout).databases;
    expect(report).toMatchObject({ name: "postgres", tables: 3, rows: 414, questions: 100 });
    expect(report.references).toEqual([
      { table: "boats", column: "harbor_id", to: "harbors", key: "harbor_id", declared: true },
    ]);
    expect(report.left_out).toContainEqual({ name: "boats.plan", reason: "values of type jsonb are not copied" });
    const kinds = Object.fromEntries(
      report.columns.map(({ table, column, kind }: Record<string, string>) => [`${table}.${column}`, kind]),
    );
    expect(kinds).toMatchObject({
      "harbors.opened": "date",
      "harbors.is_deep": "flag",
      "boats.price": "money",
      "boats.crew_mood": "category",
      "boats.built": "date",
      "boats.harbor_id": "reference",
    });
    const check = await sqlenv(["data", "check", "--data", out("all"), "--json"]);
    expect(JSON.parse(check.stdout)).toMatchObject({ train: 80, eval: 20, failed: [] });
    const again = await sqlenv(["data", "make", address, "--out", out("again"), "--questions", "100", "--json"]);
    expect(JSON.parse(again.stdout)).toEqual(JSON.parse(made.stdout));
  });

  test("is sampled with references whole, and without excluded columns", async () => {
    const made = await sqlenv([
      ..."data make".split(" "),
      address,
      ...["--out", out("sample"), "--questions", "20", "--max-rows", "5", "--exclude", "*.owner_email", "--json"],
    ]);
    expect(made).toMatchObject({ code: 0 });
    const [report] = JSON.parse(made.stdout).databases;
    expect(report.references).toHaveLength(1); // it would be dropped if a boat's harbor were missing
    expect(report.left_out.map(({ name }: { name: string }) => name)).toEqual(
      expect.arrayContaining(["boats", "harbors"]),
    );
    expect(report.columns.map(({ column }: { column: string }) => column)).not.toContain("owner_email");
  });

  test("tables that the user may not read are left out, and another schema can be chosen", async () => {
    const reader = address.replace("tester@", "reader@");
    const made = await sqlenv(["data", "make", reader, "--out", out("reader"), "--questions", "20", "--json"]);
    expect(JSON.parse(made.stdout).databases[0].left_out).toContainEqual({
      name: "secrets",
      reason: "this user may not read it",
    });
    const other = await sqlenv(["data", "make", address, "--out", out("other"), "--schema", "other"]);
    expect(other.stderr).toContain("no question can be made: postgres; it has no rows");
  });

  test("a wrong password, a password in the address, no server and no database give one line each", async () => {
    const cases = await Promise.all([
      sqlenv(["data", "make", address, "--out", out("none")], "wrong"),
      sqlenv(["data", "make", address.replace("tester@", "tester:hunter2@"), "--out", out("none")]),
      sqlenv(["data", "make", "postgres://tester@127.0.0.1:1/postgres", "--out", out("none")]),
      sqlenv(["data", "make", address.replace(/postgres$/, "nothing"), "--out", out("none")]),
      sqlenv(["data", "make", `${address}?shema=x`, "--out", out("none")]),
    ]);
    for (const { code, stdout, stderr } of cases) {
      expect([code === 0, stdout]).toEqual([false, ""]);
      expect(stderr.trimEnd().split("\n")).toHaveLength(1);
      expect(stderr).not.toContain("hunter2");
    }
    const parts = [
      "password authentication failed",
      "PGPASSWORD",
      "ECONNREFUSED",
      'database "nothing" does not exist',
      "shema",
    ];
    for (const [i, { stderr }] of cases.entries()) expect(stderr).toContain(parts[i]);
    expect(existsSync(out("none"))).toBe(false);
  });

  test("a connection that drops in the middle leaves nothing behind", async () => {
    const proxy = createServer((client) => {
      const upstream = connect(server.port, "127.0.0.1");
      let received = 0;
      client.pipe(upstream).on("error", () => {});
      client.on("error", () => {});
      upstream.on("data", (bytes: Buffer) => {
        received += bytes.length;
        if (received < 20_000) client.write(bytes);
        else for (const socket of [client, upstream]) socket.destroy();
      });
    });
    await new Promise<void>((done) => proxy.listen(0, "127.0.0.1", done));
    const { port } = proxy.address() as AddressInfo;
    const before = readdirSync(folder);
    const { code, stderr } = await sqlenv([
      "data",
      "make",
      address.replace(/:\d+\//, `:${port}/`),
      "--out",
      out("cut"),
    ]);
    proxy.close();
    expect(code).toBe(1);
    expect(stderr).toContain("PostgreSQL: Connection terminated unexpectedly");
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    expect(readdirSync(folder)).toEqual(before);
  });

  test("its tables are as before", () => {
    server.run("SELECT 1 / (count(*) = 400)::int FROM boats");
  });
});
