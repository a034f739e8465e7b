// An episode so far as code: curl requests to a server, or TypeScript with the package.
import type { Link } from "./permalink.ts";

const SERVER = "http://localhost:8000";

/** Requests to `sqlenv serve`, one per line. */
export function asCurl({ data, question, budget, actions }: Link, server = SERVER): string {
  const post = (path: string, body: object) =>
    `curl -s ${server}${path} -H 'content-type: application/json' -d ${shellText(JSON.stringify(body))}`;
  const isBundled = data.kind === "bundled" && data.seed === 42;
  const about = isBundled
    ? `sqlenv serve --step-budget ${budget}`
    : `for a server with the ${data.kind} data set, seed ${data.seed}; by default \`sqlenv serve\` has the bundled one`;
  return [
    `# ${about}`,
    post("/reset", { question_id: question }),
    ...actions.map(({ action_type, argument }) => post("/step", { action: { action_type, argument } })),
  ].join("\n");
}

/** A program that plays the same actions. */
export function asTypeScript({ data, question, budget, actions }: Link): string {
  const { kind, seed } = data;
  const forms = kind === "starter" ? ", forms: STARTER_FORMS" : "";
  const made =
    kind === "bundled"
      ? `bundledDataSet({ seed: ${seed} })`
      : `practiceSet({ seed: ${seed}, seen: 16, unseen: 8${forms} })`;
  const names = ["loadSqlite", made.split("(")[0]!, "SQLEnvironment", ...(forms === "" ? [] : ["STARTER_FORMS"])];
  return [
    `import { ${names.join(", ")} } from "sqlenv";`,
    "",
    "await loadSqlite();",
    `const env = new SQLEnvironment(${made}, { step_budget: ${budget} });`,
    `env.reset({ question_id: ${JSON.stringify(question)} });`,
    ...actions.map(
      ({ action_type, argument }) =>
        `console.log(env.step({ action_type: "${action_type}", argument: ${JSON.stringify(argument)} }));`,
    ),
    "console.log(env.outcome);",
    "",
  ].join("\n");
}

/** Text quoted for a POSIX shell. */
function shellText(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
