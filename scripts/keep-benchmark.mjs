// Stores a benchmark for the documents, and draws them again. NAME is engine, engine-wasm, engine-avx2, grpo or cuda; several files are
// several runs of the same command, of which medians are shown.
//   npm run -s sqlenv -- bench engine --quick --json --peer PYTHON > engine.json
//   node scripts/keep-benchmark.mjs engine engine.json
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { FOLDER, isBusy, SCHEMAS, stored } from "./benchmarks.mjs";
import { draw } from "./peer-bars.mjs";

function fail(text) {
  console.error(`error: ${text}`);
  process.exit(2);
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { check: { type: "boolean", default: false } }, // only checks the files
});
const [name, ...files] = positionals;
if (!Object.hasOwn(SCHEMAS, name ?? "") || files.length === 0)
  fail(`usage: keep-benchmark.mjs ${Object.keys(SCHEMAS).join("|")} FILE.json … [--check]`);

const runs = files.map((file) => {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    return fail(`cannot read ${file}: ${error.message}`);
  }
});
const parsed = stored(name).safeParse({ format: "sqlenv-benchmark-1", name, runs });
if (!parsed.success) {
  const [{ path, message }] = parsed.error.issues;
  const [, run, ...key] = path;
  fail(`${files[run] ?? name} is not the --json of this benchmark with a peer: ${key.join(".")}: ${message}`);
}
const commands = new Set(parsed.data.runs.map(({ measured }) => measured.command));
if (commands.size > 1) fail(`the files are of different commands: ${[...commands].join("; ")}`);
parsed.data.runs.forEach((run, i) => {
  if (isBusy(run)) console.warn(`warning: ${files[i]}: other programs used the machine; the documents will say so`);
});
if (!values.check) {
  writeFileSync(`${FOLDER}/${name}.json`, `${JSON.stringify(parsed.data, null, 1)}\n`);
  draw();
  console.log(`wrote docs/results/bench/${name}.json, docs/images/peers.svg and the pages' tables`);
}
