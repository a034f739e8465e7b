// Runs both notebooks from the first cell to the last and reports problems. Run by `npm run notebooks`;
// --settings '{"max_steps": 30}' changes the training, --save stores the outputs in notebooks/, --out FOLDER writes the
// executed notebooks there.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { problemsOf } from "./notebook-checks.mjs";
import { findDeno, hasJupyter, runNotebooks } from "./notebook-run.mjs";

const text = { type: "string" };
const { values } = parseArgs({ options: { settings: text, out: text, save: { type: "boolean" } } });
const notebooks = fileURLToPath(new URL("../notebooks", import.meta.url));
const deno = findDeno();
if (!hasJupyter() || deno === null) {
  console.error(
    `notebooks need ${deno === null ? "deno" : "jupyter"}; on Debian: apt-get install jupyter-client jupyter-core jupyter-nbconvert python3-nbclient python3-ipykernel, and npm brings deno`,
  );
  process.exit(1);
}

const started = performance.now();
const executed = await runNotebooks({
  deno,
  settings: JSON.parse(values.settings ?? "{}"),
  onStart: (name) => console.log(`${name} …`),
});
for (const [name, notebook] of Object.entries(executed)) {
  const problems = problemsOf(notebook);
  console.log(problems.length === 0 ? `${name}: as it should be` : `${name}:\n  ${problems.join("\n  ")}`);
  if (problems.length > 0) process.exitCode = 1;
  if (values.out) {
    mkdirSync(values.out, { recursive: true });
    writeFileSync(join(values.out, name), JSON.stringify(notebook, null, 1));
  }
  if (values.save && problems.length === 0) save(name, notebook);
}
console.log(`${Math.round((performance.now() - started) / 1000)} s`);

/** Stores the outputs in the notebook without changing its cells. */
function save(name, { cells }) {
  const file = join(notebooks, name);
  const kept = JSON.parse(readFileSync(file, "utf8"));
  for (const [i, cell] of kept.cells.entries()) {
    if (cell.cell_type !== "code") continue;
    cell.outputs = cells[i].outputs;
    cell.execution_count = cells[i].execution_count;
  }
  writeFileSync(file, `${JSON.stringify(kept, null, 1)}\n`);
}
