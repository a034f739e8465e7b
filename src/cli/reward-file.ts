// Reward functions of one's own, from a file given on the command line. A TypeScript file works on every Node: its
// types are stripped here where Node does not do that itself. (Other TypeScript files it imports need a Node that does.)
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { messageOf, UsageError } from "../errors.ts";
import { REWARD_FUNCTIONS, type RewardFunction } from "../training/index.ts";

/** The three of the environment, then the file's: all functions it exports, in the order of their names. */
export async function rewardFunctions(file: string | null): Promise<readonly RewardFunction[]> {
  if (file === null) return REWARD_FUNCTIONS;
  if (!existsSync(file)) throw new UsageError({ what: "no such reward file", value: file });
  let exported: Record<string, unknown>;
  try {
    exported = await importFile(resolve(file));
  } catch (cause) {
    throw new UsageError({ what: `the reward file cannot be loaded: ${messageOf(cause)}`, value: file, cause });
  }
  const functions = Object.entries(exported)
    .filter(([, value]) => typeof value === "function")
    .map(([name, value]) => named(name, value as RewardFunction));
  if (functions.length === 0)
    throw new UsageError({
      what: "the reward file exports no functions",
      value: file,
      remedy: "export function myReward(completions, context) { return completions.map(() => 0) }",
    });
  return [...REWARD_FUNCTIONS, ...functions];
}

/** A default export has the name of no one. */
function named(name: string, value: RewardFunction): RewardFunction {
  if (value.name !== "" && value.name !== "default") return value;
  return Object.defineProperty(value, "name", { value: name === "default" ? "custom_reward" : name });
}

async function importFile(path: string): Promise<Record<string, unknown>> {
  if (!/\.[cm]?ts$/.test(path) || (process.features as { typescript?: unknown }).typescript)
    return import(pathToFileURL(path).href);
  const { transformSync } = await import("@swc/wasm-typescript");
  const { code } = transformSync(readFileSync(path, "utf8"), { mode: "strip-only" });
  const stripped = join(dirname(path), `.${basename(path)}.${process.pid}.mjs`); // beside it, so that its imports resolve
  writeFileSync(stripped, code);
  try {
    return await import(pathToFileURL(stripped).href);
  } finally {
    rmSync(stripped, { force: true });
  }
}
