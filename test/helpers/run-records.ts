// Records of a small synthetic run, for tests of reports and pages.
import type { EpisodeRecord, Summary } from "../../src/gym/evaluation/index.ts";
import type {
  Comparison,
  EpisodeLine,
  Evaluation,
  MetricLine,
  TimingLine,
  TrainingResult,
} from "../../src/rl/run/records.ts";

/** An episode of one DESCRIBE, one QUERY and one ANSWER; every text can be replaced. */
export function episode(
  player: string,
  correctness: 0 | 1,
  {
    question = "How many lamps are there?",
    sql = "SELECT count(*) FROM lamp",
    cell = "12",
    error = null as string | null,
  } = {},
): EpisodeRecord {
  const parts = { exec_ok: 0.02, new_info: 0.01, repeat: 0, step_cost: -0.005, progress: 0, correctness: 0 };
  const step = (action_type: "DESCRIBE" | "QUERY" | "ANSWER", argument: string, result: string, count: number) => {
    const last = action_type === "ANSWER";
    const reward_breakdown = last ? { ...parts, exec_ok: 0, new_info: 0, correctness } : parts;
    const reward = last ? correctness - 0.005 : 0.025;
    return {
      action: { action_type, argument },
      text: `${action_type}: ${argument}`,
      parse_error: null,
      reward_breakdown,
      observation: {
        question,
        schema_info: "lamp",
        result,
        error: action_type === "QUERY" ? error : null,
        error_class: null,
        step_count: count,
        budget_remaining: 10 - count,
        action_history: [],
        reward_breakdown,
        done: last,
        reward,
      },
    };
  };
  const steps = [
    step("DESCRIBE", "lamp", "lamp: 12 rows\nid INTEGER primary key", 1),
    step("QUERY", sql, `count(*) | name\n${cell} | x`, 2),
    step("ANSWER", cell, "", 3),
  ];
  return {
    ...{ player, question_id: "shop_1", question, database_name: "shop", difficulty: "easy", answer_type: "integer" },
    ...{
      split: "eval",
      seen: false,
      start: { ...steps[0]!.observation, result: "", reward: null },
      steps,
      correctness,
    },
    ...{ progress: 0, operational: 0.06, reward: correctness + 0.045, step_count: 3, done_reason: "answered" },
    ...{ parse_failures: 0, repeats: 0, invalid: 0, error: null },
  };
}

/** Random and before are wrong, after is right. */
export function comparison(
  texts: Parameters<typeof episode>[2] = {},
  players = ["random", "before", "after"],
): Comparison {
  const episodes = players.map((player, i) => episode(player, i === players.length - 1 ? 1 : 0, texts));
  const { question_id, question, database_name, seen } = episodes[0]!;
  return { players, questions: [{ question_id, question, database_name, seen, episodes }] };
}

function evaluation(rate: number): Evaluation {
  const summary = (at: number): Summary => ({
    ...{ episodes: 100, scored: 100, success_rate: at, success_ci: [Math.max(0, at - 0.05), Math.min(1, at + 0.05)] },
    ...{ ci_method: "cluster_t_by_database", mean_reward: at, mean_steps: 3.5 },
    ...{ tries: 1, solved_in_tries: at },
    behaviour: { described_first: at, answers_seen: at, steps_to_solve: 3, repeats: 0 },
  });
  const decodings = (at: number) => ({ greedy: summary(at), sampled: summary(at - 0.01) });
  return { seen: decodings(rate + 0.02), unseen: decodings(rate) };
}

export const RESULT: TrainingResult = {
  ...{ run: "lamps", model_name: "starter", seconds: 432, steps: 40, episodes: 1280, tokens: 64_000, warnings: 1 },
  ...{ random: evaluation(0.02), before: evaluation(0.1), after: evaluation(0.8) },
};

/** Metrics of `steps` steps, with an evaluation every ten. */
export function metrics(steps = 40): MetricLine[] {
  const evaluation = (step: number): MetricLine => ({
    step,
    ...Object.fromEntries(
      ["seen", "unseen"].flatMap((place) =>
        ["greedy", "sampled"].flatMap((decoding) => {
          const rate = 0.1 + (0.7 * step) / steps;
          const key = `eval_${place}/${decoding}/success`;
          return [
            [`${key}_rate`, rate],
            [`${key}_ci_low`, rate - 0.05],
            [`${key}_ci_high`, rate + 0.05],
          ];
        }),
      ),
    ),
  });
  const trained = (step: number): MetricLine => ({
    ...{ step, loss: 0.01, entropy: 1 - step / 100, grad_norm: 0.5, reward_std: 0.2, frac_reward_zero_std: 0.25 },
    ...{ reward: step / steps, "rewards/reward_correctness/mean": step / steps, "rewards/reward_progress/mean": 0.4 },
    ...{ "rewards/reward_operational/mean": 0.06, "completions/mean_length": 50, "completions/clipped_ratio": 0.1 },
  });
  const lines = [evaluation(0)];
  for (let step = 1; step <= steps; step++) {
    lines.push(trained(step));
    if (step % 10 === 0) lines.push(evaluation(step));
  }
  return lines;
}

export const TIMINGS: readonly TimingLine[] = [1, 2].map((step) => ({
  ...{
    step,
    step_time: 2,
    sampling: 1,
    environment: 0.2,
    rewards: 0.01,
    training: 0.7,
    tokens_per_s: 1500,
    elapsed: 2.5 * step,
  },
}));

/** A line of episodes.jsonl. */
export function episodeLine(step: number, correctness: 0 | 1 = 1): EpisodeLine {
  return {
    ...episode("model", correctness),
    ...{ step, group: 0, generation: 0, rewards: { reward_correctness: correctness }, total_reward: correctness },
    ...{ advantage: 0.5, completion_tokens: 50, prompt_tokens: 300, segments: 1, truncated: false },
  };
}
