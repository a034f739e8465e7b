// Checks an executed notebook: no errors, the lines its text promises, a rising curve, and results before and after training.

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

const LINES = [/Project root: \S/, /Running on: \S/, /Loaded 473 questions/, /Smoke test passed/];
const COUNTS = /473 training and 203 evaluation questions/;

/** The problems of an executed notebook, as sentences; empty if it is fine. */
export function problemsOf({ cells }) {
  const code = cells.filter(({ cell_type }) => cell_type === "code");
  const text = code.map(textOf).join("\n");
  const byId = (id) => code.find((cell) => cell.id === id) ?? {};
  const isTypeScript = code.some(({ source }) => [source].flat().join("").includes('from "sqlenv"'));
  const errors = code.flatMap(({ id, outputs }) =>
    outputs
      .filter(({ output_type }) => output_type === "error")
      .map(({ ename, evalue }) => `cell ${id} failed: ${ename} ${evalue}`),
  );
  const missing = [...LINES, ...(isTypeScript ? [COUNTS] : [])]
    .filter((line) => !line.test(text))
    .map((line) => `nothing matches ${line}`);
  const notRun = code
    .filter(({ execution_count }) => execution_count === null)
    .map(({ id }) => `cell ${id} was not run`);
  const pictures = (isTypeScript ? ["train", "curve"] : ["curve"])
    .filter((id) => !shows(byId(id), "image/png"))
    .map((id) => `cell ${id} shows no picture`);
  return [...errors, ...notRun, ...missing, ...pictures, ...curveProblems(text), ...evaluationProblems(text)];
}

/** The reward in the first and last steps, as the trainings print it. */
function curveProblems(text) {
  const steps = [...text.matchAll(/^step +\d+\/\d+ +reward (-?[\d.]+)/gm)].map((match) => Number(match[1]));
  const said = /reward (-?[\d.]+) at the start, (-?[\d.]+) at the end/.exec(text);
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [first, last] = said ? said.slice(1).map(Number) : [mean(steps.slice(0, 3)), mean(steps.slice(-3))];
  if (last > first + 0.1) return [];
  return [Number.isFinite(first + last) ? `the reward does not rise: ${first}, then ${last}` : "no rewards"];
}

function evaluationProblems(text) {
  const said = /uccess on [\w ,]+: ([\d.]+) %.* before, ([\d.]+) %.* after/.exec(text);
  if (!said) return ["no before and after"];
  const [before, after] = said.slice(1).map(Number);
  return after > before + 5 ? [] : [`success does not rise: ${before} %, then ${after} %`];
}
