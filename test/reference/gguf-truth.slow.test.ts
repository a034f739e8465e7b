// A real GGUF file against transformers: tokens of 1,000 texts and greedy continuations of 20 prompts agree.
// SQLENV_GGUF names the file, SQLENV_GGUF_TRUTH what test/reference/gguf_truth.py wrote about it:
//   python test/reference/gguf_truth.py FILE.gguf SPIDER_FOLDER TRUTH.json
//   SQLENV_GGUF=FILE.gguf SQLENV_GGUF_TRUTH=TRUTH.json npx vitest run --mode slow test/reference/gguf-truth.slow.test.ts
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const { SQLENV_GGUF: file, SQLENV_GGUF_TRUTH: truth } = process.env;
const script = fileURLToPath(new URL("../../scripts/gguf-truth.mjs", import.meta.url));

test("tokens and greedy continuations equal those of transformers", { timeout: 600_000 }, (context) => {
  if (!file || !truth) return context.skip("no GGUF file: set SQLENV_GGUF and SQLENV_GGUF_TRUTH");
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, file, truth], { encoding: "utf8" });
  expect(status, stdout + stderr).toBe(0);
});
