// Generates a synthetic run folder of any size from a seed, like one that a long training leaves.
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { EpisodeRecord, StepRecord, Summary } from "../../../gym/evaluation/index.ts";
import { random } from "../../../random.ts";
import type {
  EpisodeLine,
  Evaluation,
  MetricLine,
  TimingLine,
  TrainingResult,
  Warning,
} from "../../../rl/run/records.ts";

export interface SyntheticRunOptions {
  readonly steps: number;
  readonly episodes: number;
  /** Episodes per question and step. @default 8 */
  readonly generations?: number;
  /** Steps between evaluations. @default a fiftieth of the steps */
  readonly evalEvery?: number;
}

/** Writes the folder; success follows an S-shaped learning curve. */
export function writeSyntheticRun(
  folder: string,
  { steps, episodes, generations = 8, evalEvery = Math.max(1, Math.round(steps / 50)) }: SyntheticRunOptions,
): void {
  mkdirSync(folder, { recursive: true });
  const skill = (step: number) => 0.02 + 0.92 / (1 + Math.exp(-10 * (step / steps - 0.35)));
  const config = {
    model_name: "synthetic",
    max_steps: steps,
    num_generations: generations,
    eval_steps: evalEvery,
    seed: 1,
  };
  writeFileSync(
    join(folder, "config.yaml"),
    Object.entries(config)
      .map(([key, value]) => `${key}: ${value}\n`)
      .join(""),
  );
  const metrics: MetricLine[] = [];
  const timings: TimingLine[] = [];
  for (let step = 0; step <= steps; step++) {
    const noise = random("synthetic", step);
    const rate = skill(step);
    if (step > 0) {
      metrics.push(metricsOf(step, rate, () => noise.next() - 0.5));
      timings.push(timingOf(step, 1 + 0.2 * noise.next()));
    }
    if (step % evalEvery === 0) metrics.push(evaluationOf(step, rate));
  }
  writeLines(join(folder, "metrics.jsonl"), metrics);
  writeLines(join(folder, "timings.jsonl"), timings);
  writeLines(join(folder, "warnings.jsonl"), [WARNING]);
  const each = episodes / steps;
  writeLines(
    join(folder, "episodes.jsonl"),
    (function* () {
      for (let n = 0; n < episodes; n++) {
        const step = Math.min(steps, Math.floor(n / each) + 1);
        const inStep = n - Math.ceil((step - 1) * each);
        const line = episodeOf(n, skill(step));
        yield { ...line, step, group: Math.floor(inStep / generations), generation: inStep % generations };
      }
    })(),
  );
  const result: TrainingResult = {
    run: folder,
    model_name: "synthetic",
    seconds: steps * 1.1,
    steps,
    episodes,
    tokens: episodes * 150,
    warnings: 1,
    random: evaluationWith(0.01),
    before: evaluationWith(skill(0)),
    after: evaluationWith(skill(steps)),
  };
  writeFileSync(join(folder, "results.json"), `${JSON.stringify(result)}\n`);
  const players = ["random", "before", "after"];
  const questions = Array.from({ length: 6 }, (_, i) => {
    const played = players.map((player, at) => ({ ...episodeOf(i, at === 2 ? 1 : 0), player }) as EpisodeRecord);
    const { question_id, question, database_name } = played[0]!;
    return { question_id, question, database_name, seen: false, episodes: played };
  });
  writeFileSync(join(folder, "comparison.json"), `${JSON.stringify({ players, questions })}\n`);
}

const WARNING: Warning = {
  step: 3,
  code: "no_spread",
  message: "in no group did the episodes differ in reward",
  remedy: "warm the model up, or ask easier questions",
};

/** Writes lines in large chunks, since a hundred thousand small writes would dominate. */
function writeLines(path: string, lines: Iterable<object>): void {
  const file = openSync(path, "w");
  let text = "";
  for (const line of lines) {
    text += `${JSON.stringify(line)}\n`;
    if (text.length < 1 << 20) continue;
    writeSync(file, text);
    text = "";
  }
  writeSync(file, text);
  closeSync(file);
}

function metricsOf(step: number, rate: number, noise: () => number): MetricLine {
  const near = (value: number, by = 0.05) => Math.max(0, value + by * noise());
  const right = Math.min(1, near(rate, 0.1));
  return {
    step,
    epoch: step / 10,
    num_tokens: step * 15_000,
    loss: 0.01 * noise(),
    grad_norm: near(0.5, 0.2),
    learning_rate: 1e-3,
    reward: right + 0.2,
    reward_std: near(0.4),
    frac_reward_zero_std: near(rate * 0.7, 0.1),
    "rewards/reward_correctness/mean": right,
    "rewards/reward_correctness/std": near(0.3),
    "rewards/reward_progress/mean": near(rate),
    "rewards/reward_progress/std": near(0.2),
    "rewards/reward_operational/mean": near(0.06, 0.01),
    "rewards/reward_operational/std": near(0.02),
    "completions/mean_length": near(30, 4),
    "completions/min_length": 4,
    "completions/max_length": near(90, 20),
    "completions/clipped_ratio": near(0.02),
    "completions/mean_terminated_length": near(29, 4),
    entropy: near(0.6 - 0.5 * rate),
    kl: near(0.02, 0.01),
    "clip_ratio/region_mean": near(0.01, 0.01),
    "clip_ratio/low_mean": near(0.005, 0.005),
    "clip_ratio/high_mean": near(0.005, 0.005),
    "sampling/surprise": near(0.3),
    "groups/skipped": near(0.4),
    "actions/per_episode": near(3, 0.5),
    "actions/parse_failure_rate": near(0.01),
    "actions/repeat_rate": near(0.01),
    "actions/invalid_rate": near(0.05),
  };
}

function timingOf(step: number, seconds: number): TimingLine {
  return {
    step,
    step_time: seconds,
    sampling: 0.5 * seconds,
    environment: 0.08 * seconds,
    rewards: 0.01 * seconds,
    training: 0.38 * seconds,
    tokens_per_s: 30_000 / seconds,
    elapsed: 1.1 * step,
  };
}

function evaluationOf(step: number, rate: number): MetricLine {
  const line: Record<string, number> & { step: number } = { step };
  for (const [split, by] of [
    ["seen", 0.03],
    ["unseen", 0],
  ] as const)
    for (const [decoding, less] of [
      ["greedy", 0],
      ["sampled", 0.05],
    ] as const) {
      const at = Math.min(1, Math.max(0, rate + by - less));
      line[`eval_${split}/${decoding}/episodes`] = 48;
      line[`eval_${split}/${decoding}/success_rate`] = at;
      line[`eval_${split}/${decoding}/success_ci_low`] = Math.max(0, at - 0.08);
      line[`eval_${split}/${decoding}/success_ci_high`] = Math.min(1, at + 0.08);
      line[`eval_${split}/${decoding}/reward`] = at;
      line[`eval_${split}/${decoding}/steps`] = 3;
    }
  return line;
}

function evaluationWith(rate: number): Evaluation {
  const summary: Summary = {
    episodes: 192,
    scored: 192,
    success_rate: rate,
    success_ci: [Math.max(0, rate - 0.04), Math.min(1, rate + 0.04)],
    ci_method: "cluster_t_by_database",
    mean_reward: rate,
    mean_steps: 3,
    tries: 1,
    solved_in_tries: rate,
    behaviour: { described_first: rate, answers_seen: rate, steps_to_solve: 3, repeats: 0.1 },
  };
  return { seen: { greedy: summary, sampled: summary }, unseen: { greedy: summary, sampled: summary } };
}

const NOUNS = ["wines", "drivers", "dancers", "tailors", "guards", "nurses", "judges", "lamps", "boats", "poems"];

/** Generates an episode about as large on disk as a real one. */
function episodeOf(n: number, skill: number): Omit<EpisodeLine, "step" | "group" | "generation"> {
  const noise = random("synthetic episode", n);
  const table = NOUNS[n % NOUNS.length]!;
  const question = `How many ${table} have a rating above ${Math.floor(noise.next() * 50)}?`;
  const looks = noise.next() < 0.1 + 0.9 * skill;
  const correctness = noise.next() < skill ? 1 : 0;
  const answer = String(Math.floor(noise.next() * 100));
  const actions: [type: "DESCRIBE" | "QUERY" | "ANSWER", argument: string, result: string][] = [
    ...(looks
      ? ([
          ["DESCRIBE", table, `${table}: 28 rows\nname TEXT\nrating INTEGER\ncity TEXT\nprice REAL`],
          ["QUERY", `SELECT COUNT(*) FROM ${table} WHERE rating > 20`, `COUNT(*)\n${answer}`],
        ] as [(typeof actions)[number][0], string, string][])
      : []),
    ["ANSWER", answer, ""],
  ];
  const history: string[] = [];
  const steps = actions.map(([action_type, argument, result], i): StepRecord => {
    const last = i === actions.length - 1;
    history.push(`${action_type}: ${argument}`);
    const reward_breakdown = {
      exec_ok: last ? 0 : 0.02,
      new_info: last ? 0 : 0.01,
      repeat: 0,
      step_cost: -0.005,
      progress: 0,
      correctness: last ? correctness : 0,
    };
    const reward = Object.values(reward_breakdown).reduce((sum, part) => sum + part, 0);
    const observation = {
      question,
      schema_info: `${table}(name, rating, city, price)`,
      result,
      error: null,
      error_class: null,
      step_count: i + 1,
      budget_remaining: 9 - i,
      action_history: [...history],
      reward_breakdown,
      done: last,
      reward,
    };
    return {
      action: { action_type, argument },
      text: `${action_type}: ${argument}`,
      parse_error: null,
      observation,
      reward_breakdown,
    };
  });
  const start = { ...steps[0]!.observation, result: "", step_count: 0, action_history: [], done: false, reward: null };
  const total = correctness + (looks ? 0.25 : 0);
  return {
    player: "model",
    question_id: `${table}_${n % 400}`,
    question,
    database_name: `${table}_world`,
    difficulty: "easy",
    answer_type: "integer",
    split: "train",
    seen: true,
    start,
    steps,
    correctness,
    progress: looks ? 1 : 0,
    operational: looks ? 0.06 : 0,
    reward: total,
    step_count: steps.length,
    done_reason: "answered",
    parse_failures: 0,
    repeats: 0,
    invalid: 0,
    error: null,
    truncated: n % 97 === 0,
    completion_tokens: 8 * steps.length,
    rewards: { reward_correctness: correctness, reward_progress: looks ? 1 : 0, reward_operational: looks ? 0.06 : 0 },
    total_reward: total,
    advantage: Number((2 * noise.next() - 1).toFixed(4)),
    prompt_tokens: 125,
    segments: 1,
  };
}
