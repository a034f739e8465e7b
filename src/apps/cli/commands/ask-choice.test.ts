import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createDatabase, DatabasePool, loadSqlite } from "../../../gym/sql/index.ts";
import { chooseModels } from "./ask-choice.ts";
import type { AskedDatabase } from "./ask-data.ts";

await loadSqlite();
const bytes = createDatabase([{ name: "item", ddl: "CREATE TABLE item (id INTEGER)", rows: [[1]] }]);
const sum = createHash("sha256").update(bytes).digest("hex");
const asked: AskedDatabase = {
  source: "shop.sqlite",
  name: "shop",
  databases: new DatabasePool({ names: ["shop"], read: () => bytes }),
  file: () => bytes,
};

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sqlenv-choice-"));
  vi.stubEnv("HF_HUB_CACHE", join(folder, "hub"));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

const runs = () => join(folder, "runs");
const choose = (source = "shop.sqlite") => chooseModels({ ...asked, source }, runs());

function write(...[path, text = "{}"]: [path: string, text?: string]): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

/** A run that knows these databases, finished at this second; parts may be missing. */
function run(name: string, second: number, databases: object, { data = "starter", without = "", settings = "" } = {}) {
  const inputs = { version: "0", questions: "", databases, model: {}, reward_funcs: {} };
  const files = {
    "config.yaml": `questions_path: ${data}\n${settings}`,
    "inputs.json": JSON.stringify(inputs),
    "model/config.json": "{}",
    "results.json": "{}",
  };
  for (const [file, text] of Object.entries(files)) if (file !== without) write(join("runs", name, file), text);
  if (without !== "results.json") utimesSync(join(runs(), name, "results.json"), second, second);
  return join(runs(), name);
}

/** A model in the Hub's cache. */
function cached(name: string): string {
  const commit = "a".repeat(40);
  const repo = join("hub", `models--${name.replace("/", "--")}`);
  write(join(repo, "refs/main"), commit);
  for (const file of ["config.json", "tokenizer.json", "model.safetensors"])
    write(join(repo, "snapshots", commit, file));
  return name;
}

test("the newest finished run that was trained on the database's bytes, whatever the names", () => {
  run("older", 10, { other_name: sum });
  const newer = run("newer", 20, { shop: sum });
  run("not-finished", 30, { shop: sum }, { without: "results.json" });
  run("without-model", 30, { shop: sum }, { without: "model/config.json" });
  run("elsewhere", 30, { shop: sum }, { settings: "env: http://127.0.0.1:1\ntasks: tasks.json\n" });
  run("on-starter", 40, { shop: "0".repeat(64), zoo: "1" });
  write("runs/notes.txt");
  expect(choose()).toEqual([{ model: newer, reason: "the newest training on this database" }]);
});

test("else one on this data set, else one on a database of this name", () => {
  const named = run("named", 10, { shop: "0".repeat(64) });
  expect(choose()[0]).toEqual({
    model: named,
    reason: "the newest training on a database of this name, which has changed since",
  });
  const on = run("on", 5, {}, { data: "made/shop-questions" });
  expect(choose("./made/shop-questions/")[0]).toEqual({ model: on, reason: "the newest training on this data set" });
});

test("else pretrained models in the Hub's cache, the largest known first; small ones and others are not taken", () => {
  run("other", 10, { zoo: "1" });
  const small = cached("Qwen/Qwen3-0.6B");
  cached("HuggingFaceTB/SmolLM2-135M-Instruct");
  cached("some/encoder");
  expect(choose().map(({ model }) => model)).toEqual([small]);
  const large = cached("Qwen/Qwen3-1.7B");
  expect(choose().map(({ model }) => model)).toEqual([large, small]);
  expect(choose()[0].reason).toMatch(/^a pretrained model in the Hub's cache; no training in .*runs\/ used/);
});

test("else one line that says what to do; the bundled starter is never taken", () => {
  expect(() => choose()).toThrow(
    /^no model to ask: .*; name one with --model .*sqlenv data make shop.sqlite --out DIR/,
  );
});
