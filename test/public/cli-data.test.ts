// `sqlenv data` as a person or a script uses it.
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ended, type Ran, sqlenvInside, start } from "../helpers/cli-process.ts";
import { makeZip, petsDatabase, spiderFiles, temporaryFolder, writeFiles } from "../helpers/data-files.ts";

const environment = (home: string) => ({ SQLENV_HOME: home, NO_COLOR: "1" });

function sqlenv(args: readonly string[], home = "/nonexistent"): Promise<Ran> {
  return sqlenvInside(args, "", environment(home));
}

async function json(
  args: readonly string[],
  home?: string,
): Promise<{ code: number | null; value: Record<string, unknown> }> {
  const { code, stdout } = await sqlenv([...args, "--json"], home);
  expect(stdout.trimEnd().split("\n")).toHaveLength(1);
  return { code, value: JSON.parse(stdout) };
}

async function spiderFolder(): Promise<string> {
  const folder = temporaryFolder();
  writeFiles(join(folder, "mini"), await spiderFiles());
  return join(folder, "mini");
}

test("prints help and version, and reports usage errors", async () => {
  const cases = await Promise.all(
    [
      ["--version"],
      ["data", "--help"],
      [],
      ["dta"],
      ["data", "chek"],
      ["data", "check", "--jsno"],
      ["data", "import"],
      ["data", "check", "--seed", "x"],
    ].map((args) => sqlenv(args)),
  );
  const [version, help, none, ...wrong] = cases;
  expect(version).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/), stderr: "" });
  expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining("import"), stderr: "" });
  expect(none).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/ play .*\n.* train .*\n.* serve /),
    stderr: "",
  });
  expect(wrong.map(({ code, stdout }) => [code, stdout])).toEqual(wrong.map(() => [2, ""]));
  expect(wrong.map(({ stderr }) => stderr)).toEqual([
    "error: unknown command 'dta'; did you mean data? (usage)\n",
    "error: unknown command 'chek'; did you mean check? (usage)\n",
    "error: unknown option '--jsno'; did you mean --json? (usage)\n",
    "error: missing required argument 'source'; see --help (usage)\n",
    "error: --seed takes a whole number: x; for example --seed 42 (usage)\n",
  ]);
});

test("check counts usable questions, as JSON and as a table", async () => {
  const folder = await spiderFolder();
  const reasons = { gold_empty: 1, gold_only_nulls: 1, gold_fails: 1, database_missing: 1 };
  const checked = await json(["data", "check", "--data", folder]);
  expect(checked).toMatchObject({
    code: 0,
    value: {
      name: "mini",
      databases: 2,
      train: 2,
      eval: 2,
      eval_seen: 0,
      eval_unseen: 2,
      failed: [],
      by_reason: { train: reasons, eval: reasons },
    },
  });
  const { code, stdout, stderr } = await sqlenv(["data", "check", "--data", folder]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain("mini: 2 databases, 4 of 12 questions usable");
  expect(stdout).toContain("nothing failed");
});

test("check exits with 1 when a bundled or practice set has a fault", async () => {
  const folder = temporaryFolder();
  const question = { question_text: "How many?", database_name: "pets", gold_sql: "SELECT count(*) FROM pet" };
  writeFiles(folder, {
    "databases/pets/pets.sqlite": await petsDatabase(),
    "questions/questions_train.json": [question, { ...question, gold_answer: "99" }],
  });
  const checked = await json(["data", "check", "--data", folder]);
  expect(checked.code).toBe(1);
  expect(checked.value.failed).toEqual([
    { id: "pets_train_001", reason: "gold_mismatch", detail: "gold_answer is 99, the query gives 3" },
  ]);
  writeFileSync(join(folder, "questions/questions_train.json"), "[");
  const broken = await sqlenv(["data", "check", "--data", folder]);
  expect(broken).toMatchObject({ code: 1, stdout: "" });
  expect(broken.stderr).toMatch(
    /^error: question file is not JSON: \/.*questions_train\.json; .* \(question_load\)\n$/,
  );
  const verbose = await sqlenv(["--verbose", "data", "check", "--data", folder]);
  expect(verbose.stderr).toMatch(/\n\s+at /);
});

test("import, list, show, export and convert work together", async () => {
  const home = temporaryFolder();
  const folder = await spiderFolder();
  const imported = await json(["data", "import", folder, "--name", "small"], home);
  expect(imported).toMatchObject({ code: 0, value: { name: "small", layout: "spider" } });
  expect((await sqlenv(["data", "import", folder, "--name", "small"], home)).stderr).toMatch(
    /already imported: small; .*--replace/,
  );

  const listed = await json(["data", "list"], home);
  const names = (listed.value.datasets as { name: string }[]).map(({ name }) => name);
  expect(names).toEqual(["bundled", "practice", "starter", "spider10", "small"]);

  const shown = await sqlenv(["data", "show", "pets_dev", "--data", "small"], home);
  expect(shown.code).toBe(0);
  expect(shown.stdout).toMatch(/pet {2}3 rows\n {2}id +integer +primary key\n {2}owner_id +integer +→ owner\.id\n/);
  expect(shown.stdout).toContain("How many pets are there?");
  expect(shown.stdout).not.toContain("SELECT");
  expect((await sqlenv(["data", "show", "PETS_DEV", "--data", "small", "--gold"], home)).stdout).toContain(
    "SELECT count(*) FROM pet\n    3\n",
  );
  expect((await sqlenv(["data", "show", "pets_dev", "--data", "small", "--sql"], home)).stdout).toContain(
    "CREATE TABLE pet (",
  );
  const one = await json(["data", "show", "--data", "small", "--question", "pets_dev_eval_001"], home);
  expect(Object.keys(one.value)).not.toContain("gold_answer");
  const misspelt = await sqlenv(["data", "show", "pets_dv", "--data", "small"], home);
  expect(misspelt).toMatchObject({
    code: 2,
    stderr: "error: no such database: pets_dv; did you mean pets_dev? (usage)\n",
  });

  const out = temporaryFolder();
  const exported = await json(["data", "export", join(out, "a"), "--data", "small"], home);
  expect(exported.value).toMatchObject({ databases: 2, questions: { train: 2, eval: 2 } });
  writeFileSync(
    join(out, "mini.zip"),
    makeZip(
      Object.entries(await spiderFiles()).map(([name, data]) => ({
        name: `in/${name}`,
        data: data instanceof Uint8Array ? data : JSON.stringify(data),
      })),
    ),
  );
  await json(["data", "convert", join(out, "mini.zip"), join(out, "b")], home);
  for (const name of ["a", "b"]) {
    expect(readdirSync(join(out, name, "questions"))).toEqual(["questions_eval.json", "questions_train.json"]);
    expect(await json(["data", "check", "--data", join(out, name)])).toMatchObject({
      code: 0,
      value: { train: 2, eval: 2, failed: [] },
    });
  }
});

test("a missing data set or file is reported in one line", async () => {
  const home = temporaryFolder();
  const spider = await sqlenv(["data", "check", "--data", "spider10"], home);
  expect(spider).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^error: spider10 needs .*data import.*\n$/),
  });
  const bundle = await sqlenv(["data", "check", "--data", "bundeld"], home);
  expect(bundle.stderr).toBe("error: no such data set: bundeld; did you mean bundled? (unknown_dataset)\n");
});

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)(
  "%s during an import ends it with its exit code and leaves no half-imported set",
  async (signal, expected) => {
    const home = temporaryFolder();
    let asked = () => {};
    const request = new Promise<void>((resolve) => (asked = resolve));
    const server = createServer((_, response) => {
      response.writeHead(200, { "content-length": 1000 }).write("PK");
      asked();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const child = start(
      ["data", "import", `http://127.0.0.1:${(server.address() as AddressInfo).port}/x.zip`],
      environment(home),
    );
    const finished = ended(child);
    await request;
    child.kill(signal);
    expect((await finished).code).toBe(expected);
    const left = existsSync(join(home, "datasets")) ? readdirSync(join(home, "datasets")) : [];
    expect(left.filter((name) => !name.startsWith(".download-"))).toEqual([]);
  },
);

test("check finds no fault in the bundled set", async () => {
  const checked = await json(["data", "check"]);
  expect(checked).toMatchObject({
    code: 0,
    value: {
      databases: 12,
      train: 473,
      eval: 203,
      eval_seen: 101,
      eval_unseen: 102,
      train_databases: 8,
      failed: [],
      rejected: [],
    },
  });
});
