// Runs the notebooks from the first cell to the last and reports problems. Run by `npm run notebooks`;
// --settings '{"max_steps": 30}' changes the training, --save stores the outputs in notebooks/, --out FOLDER writes the
// executed notebooks there, --only train_grpo.ipynb runs one of them.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { expectedResults, problemsOf, staleness } from "./notebook-checks.mjs";
import { findDeno, hasJupyter, NOTEBOOKS, runNotebooks } from "./notebook-run.mjs";

const text = { type: "string" };
const { values } = parseArgs({ options: { settings: text, out: text, only: text, save: { type: "boolean" } } });
const root = fileURLToPath(new URL("..", import.meta.url));
const notebooks = join(root, "notebooks");
const names = NOTEBOOKS.filter((name) => name === (values.only ?? name));
if (names.length === 0) {
  console.error(`no such notebook: ${values.only}; there are ${NOTEBOOKS.join(" and ")}`);
  process.exit(2);
}
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
  names,
  onStart: (name) => console.log(`${name} …`),
});
for (const [name, notebook] of Object.entries(executed)) {
  const problems = [...problemsOf(notebook), ...(values.save ? staleness(notebook, expectedResults(root)) : [])];
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
