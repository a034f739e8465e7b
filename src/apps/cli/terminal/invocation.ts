// How the user started this program, so that every command printed works when it is typed again.
import { delimiter, dirname, relative, resolve } from "node:path";

/** Commands that texts of this package may name. */
const NAMED =
  /\bsqlenv (?=(?:train|play|playground|ask|eval|serve|data|sft|compare|report|export|bench|doctor|help)\b|--?[a-z])/g;

/** What to type before a command's name: `sqlenv`, `npx sqlenv`, `npm run -s sqlenv --` or `node PATH`. */
export function invocation(
  env: Readonly<Record<string, string | undefined>> = process.env,
  script = process.argv[1] ?? "",
): string {
  // npm sets these variables for its scripts; a clone of this package has a script named `sqlenv`.
  if (env.npm_lifecycle_event !== undefined && env.npm_lifecycle_event !== "npx" && env.npm_package_name === "sqlenv")
    return "npm run -s sqlenv --";
  if (env.npm_execpath !== undefined) return "npx sqlenv";
  const path = script.replaceAll("\\", "/");
  if (/\/node_modules\/\.bin\/sqlenv$/.test(path)) return isOnPath(script, env) ? "sqlenv" : "npx sqlenv";
  if (/\/sqlenv$/.test(path) || path === "") return "sqlenv";
  // On Windows, npm's shims run this file by its own path.
  if (path.includes("/node_modules/sqlenv/"))
    return path.startsWith(`${process.cwd().replaceAll("\\", "/")}/`) ? "npx sqlenv" : "sqlenv";
  const near = relative(process.cwd(), script);
  return /(?:^|\/)apps\/cli\/main\.js$/.test(path) ? `node ${near.startsWith("..") ? script : near}` : "sqlenv";
}

/** Rewrites the `sqlenv …` commands in a text to start the way the user started this program. */
export function asTyped(text: string, prefix = invocation()): string {
  return prefix === "sqlenv" ? text : text.replace(NAMED, `${prefix} `);
}

function isOnPath(script: string, { PATH = "" }: Readonly<Record<string, string | undefined>>): boolean {
  return PATH.split(delimiter).some((folder) => folder !== "" && resolve(folder) === dirname(resolve(script)));
}
