// `sqlenv bench grpo --data`: GRPO steps of a real model on real questions, with environments in the main thread and on
// threads, alternating.
import type { DataSet } from "../../../gym/data/index.ts";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import { EnvironmentThreads } from "../../../gym/evaluation/environments/threads.node.ts";
import { localEnvironments } from "../../../gym/evaluation/index.ts";
import { type GRPOConfig, loadQuestionPrompts, resolveConfig } from "../../../rl/index.ts";
import { environmentThreadCount } from "../../../rl/run/environments.node.ts";
import { loadForTraining } from "../../../rl/run/model.node.ts";
import { benchLiveGRPO, type LiveResult, type LiveSide, liveSteps, WARM_STEPS } from "../../bench/live-grpo.ts";
import { percent } from "../../reports/format.ts";
import { drawTable, formatNumber, type Output, printable } from "../terminal/output.ts";
import { configOf } from "./train-config.ts";

export interface LiveOptions {
  readonly data: string;
  readonly model?: string;
  readonly device?: string;
  readonly preset?: string;
  readonly config?: string;
  readonly questions?: number;
  readonly numGenerations?: number;
  readonly environmentThreads?: number;
  readonly threads?: number;
  readonly steps?: number;
}

interface LiveBench {
  readonly model: string;
  readonly data: string;
  readonly device: string;
  readonly variant: string;
  readonly parameters: number;
  readonly episodes: number;
  readonly max_instructions: number | null;
  readonly steps: number;
  readonly sides: readonly LiveResult[];
  /** Median seconds per step with environments in the main thread, divided by the median with threads. */
  readonly ratio: number | null;
}

const STEPS = 10;

/** Measures, prints a table and returns the result. */
export async function benchLive(options: LiveOptions, out: Output): Promise<LiveBench> {
  const { steps = STEPS } = options;
  const data = await resolveDataSet(options.data);
  const settings = settingsOf(options);
  const model = await loadForTraining(settings.model_name, settings);
  const { device, variant, parameters } = model.engine.facts;
  const threads = environmentThreadCount(options.environmentThreads ?? null, device);
  const sides: LiveSide[] = [{ threads: 0, environments: localEnvironments(data) }];
  let pool: EnvironmentThreads | undefined;
  try {
    if (threads > 0) {
      pool = await startThreads(data, settings, threads);
      sides.push({ threads, environments: pool });
    }
    const all = liveSteps(steps, sides.length);
    const config = resolveConfig({ ...settings, max_steps: all, num_train_epochs: all });
    let done = 0;
    const results = await benchLiveGRPO(model, data, config, sides, ({ threads }, { step, environment }) => {
      const where = sideName(threads);
      out.progress(
        `step ${++done} of ${all}, ${where}: ${step.toFixed(2)} s, ${environment.toFixed(2)} s of it for environments`,
      );
    });
    out.endProgress();
    const [main, other] = results;
    const bench: LiveBench = {
      model: config.model_name,
      data: data.name,
      device,
      variant,
      parameters,
      episodes: config.per_device_train_batch_size * config.gradient_accumulation_steps,
      max_instructions: config.max_instructions,
      steps,
      sides: results,
      ratio: other ? main!.median_s.step / other.median_s.step : null,
    };
    out.line(describe(bench));
    return bench;
  } finally {
    await Promise.allSettled([model.engine.close(), pool?.close()]);
    data.databases.close();
  }
}

function startThreads(data: DataSet, config: GRPOConfig, threads: number): Promise<EnvironmentThreads> {
  const ahead = loadQuestionPrompts(data, config).map(({ question_id }) => question_id);
  return EnvironmentThreads.start(data, { threads, ahead });
}

/** A preset's settings, reduced to GRPO steps: no SFT, no evaluation. */
function settingsOf(options: LiveOptions): GRPOConfig {
  const { data, model, device, preset, config, questions, numGenerations, threads, environmentThreads } = options;
  const named = preset === undefined && config === undefined ? "spider-smollm2" : preset;
  const settings = configOf({ ...(named !== undefined && { preset: named }), ...(config !== undefined && { config }) });
  const group = numGenerations ?? settings.num_generations;
  const batch = settings.per_device_train_batch_size * settings.gradient_accumulation_steps;
  const asked = questions ?? Math.max(1, Math.floor(batch / group));
  return resolveConfig({
    ...settings,
    questions_path: data,
    num_generations: group,
    per_device_train_batch_size: asked * group,
    gradient_accumulation_steps: 1,
    generation_batch_size: null,
    steps_per_generation: null,
    easy_steps: 0,
    sft_steps: 0,
    pass_k: 0,
    eval_steps: 0,
    logging_steps: 1,
    ...(model !== undefined && { model_name: model }),
    ...(device !== undefined && { device }),
    ...(threads !== undefined && { threads }),
    environment_threads: environmentThreads ?? null,
  });
}

function describe(bench: LiveBench): string {
  const { sides, ratio } = bench;
  const names = sides.map(({ environment_threads: n }) => sideName(n));
  const seconds = (part: keyof LiveResult["median_s"]) => sides.map(({ median_s }) => median_s[part].toFixed(3));
  const sum = (key: "stopped" | "timeouts" | "unscorable") =>
    sides.map(({ steps }) => formatNumber(steps.reduce((total, step) => total + step[key], 0)));
  const rows = [
    ["step", ...seconds("step")],
    ["sampling", ...seconds("sampling")],
    ["waiting for environments", ...seconds("environment")],
    ["learning", ...seconds("training")],
    ["rest", ...seconds("rest")],
    ["(CPU time of environments)", ...seconds("environment_work")],
    ["share of environments", ...sides.map(({ environment_share: x }) => percent(x))],
    ["longest step / median", ...sides.map(({ longest_over_median: x }) => x.toFixed(2))],
    ["waiting in the longest step", ...sides.map(({ longest_environment_s: x }) => x.toFixed(3))],
    ["queries over the instruction budget", ...sum("stopped")],
    ["queries over the time limit", ...sum("timeouts")],
    ["episodes without a score", ...sum("unscorable")],
  ];
  return [
    `${printable(bench.model)} on ${printable(bench.data)}, ${bench.variant}: ${bench.episodes} episodes per step, ${bench.steps} steps each after ${WARM_STEPS} for warmup; median seconds`,
    drawTable(["environments in", ...names], rows),
    ...(ratio === null ? [] : [`speedup of threads over the main thread: ${ratio.toFixed(2)}×`]),
    "",
  ].join("\n");
}

function sideName(threads: number): string {
  return threads === 0 ? "main thread" : threads === 1 ? "1 thread" : `${threads} threads`;
}
