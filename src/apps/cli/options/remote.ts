// --engine, --base-model and --engine-checkpoint: a model on a server of the Tinker API.
import type { Command } from "commander";
import type { LoadRemoteOptions } from "../../../lm/engine/index.node.ts";

export interface RemoteFlags {
  readonly engine?: string;
  readonly baseModel?: string;
  readonly engineCheckpoint?: string;
}

export function addRemoteOptions(command: Command): Command {
  return command
    .optionsGroup("Remote engine options:")
    .option(
      "--engine <url>",
      "server of the Tinker API that runs the model; --model gives the tokenizer; key: $TINKER_API_KEY",
    )
    .option("--base-model <name>", "the model's name there (default: the first that it lists)")
    .option("--engine-checkpoint <path>", "a checkpoint there, tinker://… (default: the base model)");
}

export function remoteOptions({ baseModel, engineCheckpoint }: RemoteFlags, url: string): LoadRemoteOptions {
  return {
    url,
    ...(baseModel !== undefined && { baseModel }),
    ...(engineCheckpoint !== undefined && { checkpoint: engineCheckpoint }),
  };
}
