// The wrong answers of the default training's last evaluation on unseen databases, stored in docs/results/starter.json
// by kept-run.mjs, as a table of docs/results.md:
//   node scripts/failures.mjs
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const path = (file) => fileURLToPath(new URL(`../${file}`, import.meta.url));
const [START, END] = ["<!-- failures -->", "<!-- /failures -->"];
const MOST = 90; // characters of a cell

/** What is stored of each wrong episode: the question, and query and answer of gold and of the model. */
export function wrongAnswers(episodes, gold) {
  const last = (steps, type) => steps.findLast(({ action }) => action.action_type === type)?.action.argument ?? null;
  return episodes
    .filter(({ seen, correctness }) => !seen && correctness !== 1)
    .map(({ question_id, question, steps }) => ({
      question,
      gold: { query: gold[question_id].query, answer: gold[question_id].answer },
      model: { query: last(steps, "QUERY"), answer: last(steps, "ANSWER") },
    }));
}

const LEAD =
  "Every wrong answer of the run's own evaluation on unseen databases (greedy), with the gold query and answer beside it. Names are invented on purpose, so that nothing can be known by heart:";

/** docs/results.md with the table of these; unchanged if none are stored. */
export function withFailures(page, failures) {
  if (failures === undefined) return page;
  const [before, rest] = page.split(START);
  const after = rest?.split(END)[1];
  if (after === undefined) throw new Error(`docs/results.md has no ${START} … ${END}`);
  const rows = failures.map(({ question, gold, model }) => [plain(question), both(gold), both(model)]);
  const head = ["question", "gold query and answer", "its query and answer"];
  const table = [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
  return `${before}${START}\n\n${LEAD}\n\n${table}\n\n${END}${after}`;
}

const both = ({ query, answer }) =>
  `${query === null ? "no query" : code(query)} → ${answer === null ? "no answer" : code(answer)}`;
const code = (text) => `\`${plain(text).replaceAll("`", "'")}\``;
function plain(text) {
  const line = text.replace(/\s+/g, " ").trim();
  return (line.length > MOST ? `${line.slice(0, MOST - 1)}…` : line).replaceAll("|", "\\|");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { failures } = JSON.parse(readFileSync(path("docs/results/starter.json"), "utf8"));
  writeFileSync(path("docs/results.md"), withFailures(readFileSync(path("docs/results.md"), "utf8"), failures));
}
