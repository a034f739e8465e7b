// Whether a run that is resumed is still the run that was begun: the same questions, databases, weights and reward file.
import { resolve, sep } from "node:path";
import { UsageError } from "../../../errors.ts";
import type { DataSet } from "../../../gym/data/index.ts";
import type { LoadedModel } from "../../../lm/engine/index.node.ts";
import { resolveModel } from "../../../lm/model/formats/hub.node.ts";
import type { GRPOConfig } from "../../../rl/index.ts";
import type { RunFolder } from "../../../rl/run/folder.node.ts";
import { changedInputs, INPUTS_FILE, readInputs, sumInputs } from "../../../rl/run/inputs.node.ts";
import { packageInfo } from "../package-info.ts";
import { type Output, printable, styled } from "../terminal/output.ts";

export interface InputOptions {
  readonly model: LoadedModel;
  readonly data: DataSet;
  readonly config: GRPOConfig;
  readonly store: RunFolder;
  readonly resume: boolean;
  /** Continue although something is different. */
  readonly accept: boolean;
}

/** Keeps the sums of a new run, and refuses to resume an old one when they are others, by name. */
export async function checkInputs(
  { model, data, config, store, resume, accept }: InputOptions,
  out: Output,
): Promise<void> {
  const run = resolve(store.name);
  const folders = [await resolveModel(config.model_name), model.folder].map((folder) => resolve(folder));
  const now = await sumInputs({
    ...{ version: packageInfo().version, data, rewardFile: config.reward_funcs },
    modelFolders: folders.filter((folder) => !folder.startsWith(run + sep)), // what a stage made is the run's own
  });
  const kept = resume ? readInputs(store.name) : null;
  const note = (text: string) => out.line(styled("yellow", text));
  if (kept) {
    const changed = changedInputs(kept, now).join(", ");
    if (changed && !accept)
      throw new UsageError({
        what: "the run was begun with other inputs; what has changed is",
        value: changed,
        remedy: "restore it, start a new run, or continue with --accept-changes",
      });
    if (changed) note(`accepted: ${printable(changed)} changed since the run was begun`);
    if (kept.version !== now.version)
      note(`the run was begun with sqlenv ${printable(kept.version)}, this is ${now.version}: results may differ`);
  } else if (resume) {
    note("this run does not say what it was begun with: whether anything has changed since is not known");
  }
  store.write(INPUTS_FILE, `${JSON.stringify(now, null, 2)}\n`);
}
