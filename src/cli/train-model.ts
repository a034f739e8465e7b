// The model a training begins with: loaded, and taught by imitation first where the config says so.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { type LoadedModel, loadModelAndTokenizer } from "../engine/index.node.ts";
import { rulesOf } from "../env/index.ts";
import { UsageError } from "../errors.ts";
import { windowOf } from "../model/params.ts";
import { checkRoom } from "../players/index.ts";
import type { DataSet } from "../questions/index.ts";
import { type GRPOConfig, imitate, type WarmupStep } from "../training/index.ts";
import { formatNumber, type Output, styled } from "./output.ts";
import { engineOptions } from "./train-config.ts";

/** Loads the model, after imitation where that is asked for. Null when that was interrupted. */
export async function trainingModel(
  config: GRPOConfig,
  data: DataSet,
  run: string,
  out: Output,
  signal: AbortSignal,
): Promise<LoadedModel | null> {
  const { model_name: name, imitation_episodes } = config;
  const folder = imitation_episodes > 0 ? await warmedOf(name, config, data, run, out, signal) : name;
  if (folder === null) return null;
  const model = await loadModelAndTokenizer(folder, engineOptions(config));
  try {
    checkWindow(config, model);
  } catch (error) {
    await model.engine.close();
    throw error;
  }
  return model;
}

/** The model as others name it: a path that does not depend on where one stands, or a name on the Hub. */
export function baseName(name: string): string {
  return existsSync(name) ? resolve(name) : name;
}

/** The model after imitation, in the run's folder: whole, or as an adapter where adapters are learned. */
async function warmedOf(
  name: string,
  config: GRPOConfig,
  data: DataSet,
  run: string,
  out: Output,
  signal: AbortSignal,
): Promise<string | null> {
  const what = `imitation of ${formatNumber(config.imitation_episodes)} right episodes on training databases …`;
  const folder = join(run, "warmed");
  if (existsSync(folder)) return folder; // a resumed run finds it: saving is all or nothing
  out.line(styled("dim", what));
  const model = await loadModelAndTokenizer(name, { ...engineOptions(config), reference: false });
  try {
    checkWindow(config, model);
    const { interrupted, transcripts, tokens, last_loss } = await imitate(model, data, config, {
      signal,
      onStep: shown(out),
    });
    if (interrupted) return null;
    if (config.use_peft) await model.engine.saveAdapter(folder, baseName(model.folder));
    else await model.engine.saveModel(folder);
    out.line(
      `warmed up on ${formatNumber(transcripts)} episodes, ${formatNumber(tokens)} tokens: loss ${last_loss.toFixed(3)}`,
    );
    return folder;
  } finally {
    await model.engine.close();
  }
}

/** Tells how far it is: on a terminal always, elsewhere every ten steps. */
function shown(out: Output): (step: WarmupStep) => void {
  return ({ step, loss }) => {
    const line = `imitation: step ${formatNumber(step)}, loss ${loss.toFixed(3)}`;
    if (process.stderr.isTTY) out.progress(line);
    else if (step % 10 === 0) out.line(line);
  };
}

function checkWindow(settings: GRPOConfig, { config, turns }: LoadedModel): void {
  const { max_context_tokens, max_new_tokens, prompt, shots } = settings;
  const window = windowOf(config);
  if (max_context_tokens <= window) {
    checkRoom(turns, { prompt, shots }, { max_context_tokens, max_new_tokens }, rulesOf(settings));
    return;
  }
  throw new UsageError({
    what: `max_context_tokens is above the window of ${window} that the engine computes for this model`,
    value: max_context_tokens,
    remedy: `give --max-context-tokens ${window}`,
  });
}
