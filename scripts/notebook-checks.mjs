// Checks an executed notebook: no errors, the lines its text promises, pictures, a rising curve, and a significant gain.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Everything a cell printed or showed as text, in order. */
export function textOf(cell) {
  return (cell.outputs ?? [])
    .map(({ text, data }) => [text ?? data?.["text/plain"] ?? [], data?.["text/markdown"] ?? []].flat(2).join(""))
    .join("\n");
}

/** Whether a cell shows something of this MIME type. */
function shows(cell, type) {
  return (cell.outputs ?? []).some(({ data }) => data?.[type] !== undefined);
}

const LINES = [
  ...[/Project root: \S/, /Running on: \S/, /Loaded 473 questions/, /Smoke test passed/],
  ...[/weights before: sha256 [0-9a-f]{64}/, /saved to \S/, /weights after: sha256 [0-9a-f]{64}/],
];
const TYPESCRIPT_LINES = [/\d+ training and \d+ evaluation questions/, /held-out questions are still answered wrong/];
/** Characters of a code line that fit the notebook's page. */
const LINE_LENGTH = 92;

/** The problems of an executed notebook, as sentences; empty if it is fine. */
export function problemsOf({ cells, metadata }) {
  const code = cells.filter(({ cell_type }) => cell_type === "code");
  const text = code.map(textOf).join("\n");
  const byId = (id) => code.find((cell) => cell.id === id) ?? {};
  const isTypeScript = metadata.kernelspec.name === "deno";
  const errors = code.flatMap(({ id, outputs }) =>
    outputs
      .filter(({ output_type }) => output_type === "error")
      .map(({ ename, evalue }) => `cell ${id} failed: ${ename} ${evalue}`),
  );
  const missing = [...LINES, ...(isTypeScript ? TYPESCRIPT_LINES : [])]
    .filter((line) => !line.test(text))
    .map((line) => `nothing matches ${line}`);
  const notRun = code
    .filter(({ execution_count }) => execution_count === null)
    .map(({ id }) => `cell ${id} was not run`);
  const pictures = [isTypeScript ? "train" : "behaviour", "curve"]
    .filter((id) => !shows(byId(id), "image/png"))
    .map((id) => `cell ${id} shows no picture`);
  const long = code
    .filter((cell) => !cell.metadata.tags?.includes("parameters")) // whose lines depend on the settings
    .filter(({ source }) =>
      [source]
        .flat()
        .join("")
        .split("\n")
        .some(({ length }) => length > LINE_LENGTH),
    )
    .map(({ id }) => `cell ${id} has a line of more than ${LINE_LENGTH} characters`);
  const temporary = /\/tmp\/\S*/.exec(JSON.stringify(code.map(({ outputs }) => outputs)));
  return [
    ...[...errors, ...notRun, ...missing, ...pictures, ...long],
    ...(temporary ? [`an output names a temporary folder: ${temporary[0].slice(0, 60)}`] : []),
    ...(isTypeScript ? curveProblems(text) : []),
    ...evaluationProblems(text),
  ];
}

/** The reward in the first and last steps. */
function curveProblems(text) {
  const said = /reward (-?[\d.]+) at the start, (-?[\d.]+) at the end/.exec(text);
  if (!said) return ["no rewards"];
  const [first, last] = said.slice(1).map(Number);
  return last > first + 0.1 ? [] : [`the reward does not rise: ${first}, then ${last}`];
}

/** Success on unseen databases, greedy: "random | before | after | verdict", with or without intervals. */
function readEvaluation(text) {
  const rate = String.raw`[:| ]+([\d.]+) %(?: \([^)]*\))?`;
  const row = new RegExp(`unseen databases, greedy${rate}${rate}${rate}[:| ]+([a-z ]+)`).exec(text);
  if (!row) return null;
  const [random, before, after] = row.slice(1, 4).map(Number);
  return { random, before, after, verdict: row[4].trim() };
}

function evaluationProblems(text) {
  const found = readEvaluation(text);
  if (!found) return ["no before and after"];
  const { before, after, verdict } = found;
  return verdict === "better" ? [] : [`success is not better: ${before} %, then ${after} % (${verdict})`];
}

/**
 * Whether saved outputs are of another model or training than the project's: the bundled starter's weights, by hash, and
 * the results of the default training that the documents quote, in percent.
 */
export function staleness({ cells }, { sha256, before, after }) {
  const text = cells.map(textOf).join("\n");
  const weights = /weights before: sha256 ([0-9a-f]{64})/.exec(text)?.[1];
  const found = readEvaluation(text);
  return [
    ...(weights === sha256 ? [] : [`it started from other weights than models/starter: ${weights}`]),
    ...(found?.before === before && found?.after === after
      ? []
      : [`its results are not those of docs/results/starter.json: ${found?.before} %, then ${found?.after} %`]),
  ];
}

/** What saved outputs must show, by the bundled model and the stored results of the default training. */
export function expectedResults(root) {
  const weights = readFileSync(join(root, "models/starter/model.safetensors"));
  const results = JSON.parse(readFileSync(join(root, "docs/results/starter.json"), "utf8"));
  const rate = (stage) => Number((100 * results[stage].unseen.greedy.success_rate).toFixed(1));
  const sha256 = createHash("sha256").update(weights).digest("hex");
  return { sha256, before: rate("before"), after: rate("after") };
}
