// Wrong input of every kind gets one line that says what is wrong, with which value, and what to do.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { smallDataFolder, sqlenvInside as sqlenv } from "../helpers/cli-process.ts";

const folder = mkdtempSync(join(tmpdir(), "sqlenv-messages-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string, text = "") => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
const [sqlite, csv, page] = [file("shop.sqlite"), file("x.csv", "a,b"), file("page")];
const spider = file("spider.json", JSON.stringify([{ db_id: "x", question: "How many?", query: "SELECT 1" }]));
mkdirSync(join(folder, "databases"));
file("databases/x.sqlite");

async function refused(args: readonly string[]): Promise<string> {
  const { stdout, stderr, code } = await sqlenv(args, "", { SQLENV_HOME: folder });
  expect({ stdout, ok: code === 0 }).toEqual({ stdout: "", ok: false });
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  return stderr.trimEnd();
}

const model = ["eval", "--player", "model", "--model", "starter"];

test.each<[readonly string[], RegExp]>([
  [["serve", "--port", "99999"], /--port takes a number from 0 to 65535: 99999 \(usage\)/],
  [["report", "x", "--serve", "--port", "80a"], /--port takes a number from 0 to 65535: 80a/],
  [["export", "--model", "starter", "--gguf", "/nope/x.gguf"], /cannot write --gguf: \/nope\/x\.gguf; name a file in/],
  [
    ["export", "--model", "starter", "--merge", join(page, "m")],
    /--merge is a file, or is below one: .*; name another/,
  ],
  [["playground", "--out", page], /--out is a file, or is below one: .*page; name another folder/],
  [["playground", "--out", "/proc/x"], /--out .*: \/proc\/x; name another folder/],
  [[...model, "--max-new-tokens", "0"], /--max-new-tokens takes a whole number from 1: 0/],
  [[...model, "--threads", "0"], /--threads takes a whole number from 1: 0/],
  [["eval", "--player", "oracle", "--data", "practise"], /no such data set: practise; did you mean practice\?/],
  [["eval", "--player", "oracle", "--data", "/nope/q.json"], /no such file or folder: \/nope\/q\.json; check the path/],
  [
    ["play", "--data", "postgres://db/shop"],
    /not a data set: postgres:\/\/db\/shop; write questions about it first: .*data make ADDRESS/,
  ],
  [["play", "--data", "https://x.org/s.zip"], /import it first: .*data import https:\/\/x\.org\/s\.zip/],
  [["play", "--data", sqlite], /not a folder or question file: .*; a database alone has no questions/],
  [["data", "import", sqlite], /not a data set: .*shop\.sqlite; a database alone has no questions/],
  [["data", "import", csv], /not a data set: .*x\.csv; a database alone has no questions/],
  [["data", "import", join(folder, "gone.zip")], /no such file or folder: .*gone\.zip; check the path/],
  [["data", "check", "--data", spider], /has the keys of Spider or BIRD \(db_id, question\); import .* data import/],
])("%j", async (args, message) => {
  expect(await refused(args)).toMatch(message);
});

test("a port that is in use", async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port } = other.address() as AddressInfo;
  const line = await refused(["serve", "--port", String(port), "--threads", "1", "--data", await smallDataFolder()]);
  expect(line).toMatch(
    /^error: the port is in use: 127\.0\.0\.1:\d+; name another with --port, or 0 for any that is free/,
  );
  other.close();
});
