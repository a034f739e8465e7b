// SHA-256 sums of a run's inputs. With other questions, databases, weights or reward functions, a resumed run would be
// another run, so it is refused.
import { createHash } from "node:crypto";
import { createReadStream, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join, resolve, sep } from "node:path";
import { pipeline } from "node:stream/promises";
import { UsageError } from "../../errors.ts";
import type { DataSet } from "../../gym/data/index.ts";
import { packageInfo } from "../../io/package-info.node.ts";
import { resolveModel } from "../../lm/model/formats/hub.node.ts";
import type { GRPOConfig } from "../config.ts";
import type { ServerEnvironment } from "../openenv/server-environment.ts";
import { type RunInputs, runInputsSchema } from "./records.ts";
import type { RunStore } from "./store.ts";

/** The name of the file in a run's folder. */
export const INPUTS_FILE = "inputs.json";

export interface InputSources {
  readonly version: string;
  readonly data?: DataSet | undefined;
  readonly environment?: ServerEnvironment | undefined;
  readonly modelFolders: readonly string[];
  readonly rewardFile: string | null;
}

/** Files of a model folder that are loaded. Others may change: tools that share a cache add their own. */
const MODEL_FILES =
  /^(config|generation_config|tokenizer|tokenizer_config|chat_template|adapter_config|.+\.safetensors\.index)\.json$|\.safetensors$|^chat_template\.jinja$/;

export interface CheckInputsOptions {
  /** The folder or GGUF file that was loaded. */
  readonly modelFolder: string;
  readonly data?: DataSet | undefined;
  /** The environment on a server, in place of a data set. */
  readonly environment?: ServerEnvironment | undefined;
  readonly config: GRPOConfig;
  readonly store: RunStore;
  readonly resume: boolean;
  /** Continue even if inputs have changed. */
  readonly accept: boolean;
  readonly onNote?: ((text: string) => void) | undefined;
}

/** Writes the sums of a new run; refuses to resume one whose inputs have changed, by name. */
export async function checkInputs(options: CheckInputsOptions): Promise<void> {
  const { modelFolder, data, environment, config, store, resume, accept, onNote } = options;
  const run = resolve(store.name);
  const folders = [await resolveModel(config.model_name), modelFolder].map((folder) => resolve(folder));
  const now = await sumInputs({
    version: packageInfo().version,
    data,
    environment,
    rewardFile: config.reward_funcs,
    modelFolders: folders.filter((folder) => !folder.startsWith(run + sep)), // what a stage saved belongs to the run
  });
  const kept = resume ? readInputs(store.name) : null;
  if (kept) {
    const changed = changedInputs(kept, now).join(", ");
    if (changed && !accept)
      throw new UsageError({
        what: "the run was begun with other inputs; what has changed is",
        value: changed,
        remedy: "restore it, start a new run, or continue with --accept-changes",
      });
    if (changed) onNote?.(`accepted: ${changed} changed since the run was begun`);
    if (kept.version !== now.version)
      onNote?.(`the run was begun with sqlenv ${kept.version}, this is ${now.version}: results may differ`);
  } else if (resume) {
    onNote?.("this run does not say what it was begun with: whether anything has changed since is not known");
  }
  store.write(INPUTS_FILE, `${JSON.stringify(now, null, 2)}\n`);
}

/** Hashes the current inputs. */
export async function sumInputs(sources: InputSources): Promise<RunInputs> {
  const { version, data, environment, modelFolders, rewardFile } = sources;
  const names = [...new Set(data?.questions.map(({ database_name }) => database_name))].sort();
  const databases = data?.file ? names.map((name) => [name, sha256(data.file!(name))]) : [];
  const model: Record<string, string> = {};
  for (const [i, path] of [...new Set(modelFolders)].entries())
    for (const file of modelFiles(path))
      model[i === 0 ? basename(file) : `${i}/${basename(file)}`] = await fileSum(file);
  return {
    version,
    questions: sha256(JSON.stringify(data?.questions ?? environment?.serverTasks ?? [])),
    databases: Object.fromEntries(databases) as Record<string, string>,
    model,
    reward_funcs: rewardFile === null ? {} : { [rewardFile]: await fileSum(rewardFile) },
    ...(environment && { environment: describe(environment) }),
  };
}

/** What replies and observations mean on a server. */
function describe({ name, action_template, observation_field }: ServerEnvironment): Record<string, string> {
  return { name, action_template, observation_field: observation_field ?? "" };
}

/** The files that are loaded: a GGUF file itself, or those of a folder. */
function modelFiles(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  const names = readdirSync(path).filter((name) => MODEL_FILES.test(name));
  return names.sort().map((name) => join(path, name));
}

/** The recorded inputs of a run; null for a run of an earlier version. */
export function readInputs(run: string): RunInputs | null {
  const file = join(run, INPUTS_FILE);
  if (!existsSync(file)) return null;
  try {
    return runInputsSchema.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return null; // damaged: nothing can be compared
  }
}

/** Names of the inputs that differ, without the version. */
export function changedInputs(before: RunInputs, now: RunInputs): string[] {
  const changed = (what: string, old: Readonly<Record<string, string>>, kept: Readonly<Record<string, string>>) => {
    const names = [...new Set([...Object.keys(old), ...Object.keys(kept)])].filter((name) => old[name] !== kept[name]);
    if (names.length === 0) return [];
    const more = names.length > 3 ? ` and ${names.length - 3} more` : "";
    return [`${what} (${names.slice(0, 3).join(", ")}${more})`];
  };
  return [
    ...(before.questions === now.questions ? [] : [now.environment ? "the tasks" : "the questions"]),
    ...changed("the environment", before.environment ?? {}, now.environment ?? {}),
    ...changed("databases", before.databases, now.databases),
    ...changed("the model", before.model, now.model),
    ...changed("the reward file", before.reward_funcs, now.reward_funcs),
  ];
}

function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

/** Read in chunks: weights may exceed the maximum array length. */
async function fileSum(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path, { highWaterMark: 2 ** 20 }), hash);
  return hash.digest("hex");
}
