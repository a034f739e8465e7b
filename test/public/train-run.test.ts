// `sqlenv train`, one whole run: its files, its determinism, and that its numbers can be recomputed.
import { createHash } from "node:crypto";
import { cpSync, existsSync, readFileSync, rmSync } from "node:fs";
import { loadModelFolder } from "sqlenv/lm/model/node";
import { computeAdvantages, type EpisodeLine } from "sqlenv/rl";
import { afterAll, describe, expect, test } from "vitest";
import { sqlenvInside } from "../helpers/cli-process.ts";
import { TrainingPlace } from "../helpers/training-place.ts";

const NUM_GENERATIONS = 3;
const SETTINGS = { "--eval-steps": 2, "--eval-episodes": 2 };
const place = await TrainingPlace.make();
const ran = await place.train("one", SETTINGS, "--json");
afterAll(() => place.remove());

const trained = () => place.lines("one", "metrics.jsonl").filter((line) => "loss" in line);

describe("a whole run", () => {
  test("succeeds, with one JSON object on stdout and everything else on stderr", () => {
    expect(ran.code, ran.stderr).toBe(0);
    expect(ran.stdout.trimEnd().split("\n")).toHaveLength(1);
    expect(ran.stderr).toMatch(/^step 4\/4 {2}reward -?\d/m);
    const result = JSON.parse(ran.stdout);
    expect(result).toMatchObject({ run: place.path("one"), steps: 4, seconds: expect.any(Number), episodes: 24 });
    for (const player of ["random", "before", "after"])
      for (const where of ["seen", "unseen"])
        for (const decoding of ["greedy", "sampled"])
          expect(result[player][where][decoding]).toMatchObject({
            episodes: 2,
            success_rate: expect.any(Number),
            success_ci: [expect.any(Number), expect.any(Number)],
            mean_reward: expect.any(Number),
            mean_steps: expect.any(Number),
          });
    expect(result.eval_ids_sha256).toMatch(/^[0-9a-f]{64}$/);
    expect(JSON.parse(place.text("one", "results.json"))).toEqual(result);
    const next = `ask --data ${place.data} --database park --model ${place.path("one")}\n`;
    expect(ran.stderr).toContain("next:\n  ask it a question of your own:\n");
    expect(ran.stderr).toContain(next);
  });

  test.each([
    ["config.yaml", /^learning_rate: 0\.01$/m],
    ["metrics.jsonl", /^\{"step":0,/],
    ["timings.jsonl", /"tokens_per_s":/],
    ["episodes.jsonl", /"advantage":/],
    ["learning_curve.svg", /^<svg /],
    ["learning_curve.png", /^\ufffdPNG/],
    ["comparison.html", /^<!doctype html>/i],
    ["comparison.md", /^# /],
    ["report.html", /^<!doctype html>/i],
    ["results.json", /"after"/],
    ["model/README.md", /sqlenv/i],
    ["checkpoints/step-4/trainer.json", /"step":4/],
    ["checkpoints/step-4/engine.safetensors", /./],
  ])("writes %s", (file, content) => {
    expect(place.text("one", file)).toMatch(content);
  });

  test("keeps the greedy episodes of both evaluations, and the gold of every question played", () => {
    const gold = JSON.parse(place.text("one", "gold.json"));
    const [before, after] = ["before", "after"].map((stage) => place.lines("one", `evaluation-${stage}.jsonl`));
    const ids = (lines: readonly Record<string, unknown>[]) => lines.map(({ question_id }) => question_id).sort();
    expect(before).toHaveLength(4); // final_eval_episodes on each split
    expect(ids(after!)).toEqual(ids(before!));
    expect(after!.every(({ player, steps }) => player === "after" && Array.isArray(steps))).toBe(true);
    const { unseen, seen } = JSON.parse(place.text("one", "results.json")).after;
    const right = after!.filter(({ correctness }) => correctness === 1).length;
    expect(right).toBe(2 * unseen.greedy.success_rate + 2 * seen.greedy.success_rate);
    for (const { question_id } of [...after!, ...place.lines("one", "episodes.jsonl")])
      expect(gold[question_id as string]).toEqual({
        query: expect.stringMatching(/^select/i),
        answer: expect.any(String),
      });
  });

  test("keeps the configured number of checkpoints, and nothing half-written", () => {
    expect(existsSync(place.path("one", "checkpoints", "step-3"))).toBe(true);
    expect(existsSync(place.path("one", "checkpoints", "step-2"))).toBe(false);
    expect(place.files("one").filter((name) => /(^|\/)\./.test(name))).toEqual([]);
  });

  test("the saved model loads and differs from the initial one", async () => {
    const [before, after] = await Promise.all([place.model, place.path("one", "model")].map(loadModelFolder));
    for (const name of ["model.embed_tokens.weight", "model.norm.weight"])
      expect(await after!.weights.read(name)).not.toEqual(await before!.weights.read(name));
    await Promise.all([before!.weights.close(), after!.weights.close()]);
  });

  test("metrics have TRL's names and no timings", () => {
    const lines = place.lines("one", "metrics.jsonl");
    expect(lines.map(({ step, loss }) => (loss === undefined ? `evaluation ${step}` : step))).toEqual([
      ...["evaluation 0", 1, 2, "evaluation 2", 3, 4, "evaluation 4"],
    ]);
    const names = [
      ...["loss", "grad_norm", "learning_rate", "num_tokens", "epoch"],
      ...["mean", "min", "max"].flatMap((kind) => [
        `completions/${kind}_length`,
        `completions/${kind}_terminated_length`,
      ]),
      "completions/clipped_ratio",
      ...["reward_correctness", "reward_progress", "reward_operational"].flatMap((name) => [
        `rewards/${name}/mean`,
        `rewards/${name}/std`,
      ]),
      ...["reward", "reward_std", "frac_reward_zero_std"],
    ];
    // Without spread in any group there is no gradient, and nothing to compare.
    const learned = [
      "entropy",
      ...["low_mean", "high_mean", "region_mean", "low_min", "high_max"].map((name) => `clip_ratio/${name}`),
    ];
    expect(trained().filter((line) => line.frac_reward_zero_std! < 1).length).toBeGreaterThan(1);
    for (const line of trained()) {
      const wanted = line.frac_reward_zero_std === 1 ? names : [...names, ...learned];
      expect(wanted.filter((name) => typeof line[name] !== "number")).toEqual([]);
      expect(Object.keys(line).filter((name) => /time|second|per_s$|elapsed/.test(name))).toEqual([]);
    }
  });
});

const RESULTS = ["metrics.jsonl", "episodes.jsonl", "comparison.json", "model/model.safetensors"];
const expectSame = (run: string, other: string) => {
  for (const file of RESULTS)
    expect(readFileSync(place.path(run, file)).equals(readFileSync(place.path(other, file))), file).toBe(true);
};

describe.concurrent("a run gives the same bytes", () => {
  test("with the same command and any number of threads", async () => {
    expect((await place.trainInside("again", { ...SETTINGS, "--threads": 2 })).code).toBe(0);
    expectSame("again", "one");
  });

  // Another hash means that a seed no longer gives what it gave before: change it with an entry in the changelog only.
  test("as in earlier versions", () => {
    const hash = (file: string) => {
      const bytes = readFileSync(place.path("one", file));
      return createHash("sha256").update(bytes).digest("hex").slice(0, 16);
    };
    expect({
      metrics: hash("metrics.jsonl"),
      episodes: hash("episodes.jsonl"),
      weights: hash("model/model.safetensors"),
    }).toEqual({ metrics: "25fa9624495a780a", episodes: "eb9f4f73692007e8", weights: "208e794b1f7b026f" });
  });

  test("with any context limit that no episode reaches", async () => {
    expect((await place.trainInside("larger", { ...SETTINGS, "--max-context-tokens": 1024 })).code).toBe(0);
    expect(place.lines("one", "episodes.jsonl").every(({ segments }) => segments === 1)).toBe(true);
    expectSame("larger", "one");
  });
});

test("a small context cuts histories into segments, and the model still learns", async () => {
  const settings = { "--max-context-tokens": 200, "--step-budget": 5, "--max-completion-length": 60 };
  const { code, stderr } = await place.trainInside("cut", { ...settings, "--max-steps": 3 });
  expect(code, stderr).toBe(0);
  const episodes = place.lines<EpisodeLine>("cut", "episodes.jsonl");
  expect(episodes.some(({ segments }) => segments > 1)).toBe(true);
  const lines = place.lines("cut", "metrics.jsonl").filter(({ loss }) => loss !== undefined);
  for (const line of lines) {
    const those = episodes.filter(({ step }) => step === line.step);
    expect(line["episodes/segments"]).toBeCloseTo(those.reduce((sum, { segments }) => sum + segments, 0) / 6, 9);
    // Training computes each token in the context it was sampled in, so log-probs are equal.
    expect(line["sampling/sampling_logp_difference/max"] ?? 0).toBeLessThan(1e-3);
  }
  expect(lines.some(({ grad_norm }) => grad_norm > 0)).toBe(true);
});

describe("episodes.jsonl is enough to recompute", () => {
  const steps = () =>
    [1, 2, 3, 4].map((step) => place.lines<EpisodeLine>("one", "episodes.jsonl").filter((e) => e.step === step));
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const std = (values: readonly number[]) =>
    Math.sqrt(values.reduce((sum, value) => sum + (value - mean(values)) ** 2, 0) / (values.length - 1));

  test("rewards and their spread", () => {
    for (const [i, episodes] of steps().entries()) {
      const line = trained()[i]!;
      const totals = episodes.map(({ total_reward }) => total_reward!);
      const groups = [0, 1].map((group) => episodes.filter((e) => e.group === group).map((e) => e.total_reward!));
      const flat = groups.filter((group) => std(group) < 1e-8).length / groups.length;
      const expected: Record<string, number> = {
        reward: mean(totals),
        reward_std: std(totals),
        frac_reward_zero_std: flat,
      };
      for (const name of ["correctness", "progress", "operational"] as const) {
        const rewards = episodes.map((episode) => episode.rewards[`reward_${name}`]!);
        expect(rewards).toEqual(episodes.map((episode) => episode[name]));
        expected[`rewards/reward_${name}/mean`] = mean(rewards);
        expected[`rewards/reward_${name}/std`] = std(rewards);
      }
      for (const [name, value] of Object.entries(expected)) expect(line[name], name).toBeCloseTo(value, 9);
    }
    expect(trained().some(({ reward_std }) => reward_std > 0)).toBe(true); // otherwise the test above would be trivial
  });

  test("advantages", () => {
    for (const episodes of steps()) {
      expect(episodes.map(({ group, generation }) => [group, generation])).toEqual([
        ...[0, 1].flatMap((group) => [0, 1, 2].map((generation) => [group, generation])),
      ]);
      const rows = episodes.map(({ rewards }) => Object.values(rewards));
      const { advantages, rewards } = computeAdvantages(rows, { num_generations: NUM_GENERATIONS });
      for (const [i, episode] of episodes.entries()) {
        expect(episode.advantage).toBeCloseTo(advantages[i]!, 9);
        expect(episode.total_reward).toBeCloseTo(rewards[i]!, 9);
      }
    }
  });

  test("lengths and tokens", () => {
    let tokens = 0;
    for (const [i, episodes] of steps().entries()) {
      const line = trained()[i]!;
      const ended = episodes.filter(({ truncated }) => !truncated);
      for (const [name, those] of [
        ["length", episodes],
        ["terminated_length", ended],
      ] as const) {
        const lengths = those.length === 0 ? [0] : those.map(({ completion_tokens }) => completion_tokens);
        expect(line[`completions/mean_${name}`]).toBeCloseTo(mean(lengths), 9);
        expect(line[`completions/min_${name}`]).toBe(Math.min(...lengths));
        expect(line[`completions/max_${name}`]).toBe(Math.max(...lengths));
      }
      expect(line["completions/clipped_ratio"]).toBeCloseTo(1 - ended.length / episodes.length, 9);
      tokens += episodes.reduce((sum, episode) => sum + episode.prompt_tokens + episode.completion_tokens, 0);
      expect(line.num_tokens).toBe(tokens);
    }
  });
});

describe("sqlenv eval --run", () => {
  const evaluate = (...args: readonly string[]) => sqlenvInside(["eval", "--run", ...args]);

  test("repeats the run's last evaluation with the run's own settings: the same numbers and episodes", async () => {
    const out = place.path("again.jsonl");
    const { stdout, stderr, code } = await evaluate(place.path("one"), "--threads", "1", "--out", out, "--json");
    expect(code, stderr).toBe(0);
    const { after } = JSON.parse(place.text("one", "results.json"));
    expect(JSON.parse(stdout)).toMatchObject({ agrees: true, evaluation: after, recorded: after, step_budget: 3 });
    expect(stderr).toContain("the numbers agree with the training's report");
    expect(stderr).toMatch(/seed 42, 3 actions per episode, 12 tokens per turn, rules env-1/);
    const played = (file: string) =>
      place
        .lines(file)
        .map(({ question_id, correctness, steps }) => JSON.stringify([question_id, correctness, steps]))
        .sort();
    expect(played("again.jsonl")).toEqual(played("one/evaluation-after.jsonl"));
  });

  test("refuses what the run decides, a run without a trained model, and a folder that is no run", async () => {
    const unfinished = place.path("unfinished");
    cpSync(place.path("one"), unfinished, { recursive: true });
    rmSync(place.path("unfinished", "model"), { recursive: true });
    const existing = place.path("one", "config.yaml");
    for (const [args, message] of [
      [
        [place.path("one"), "--data", "bundled"],
        /cannot be combined with: --data; leave it out, or evaluate RUN\/model/,
      ],
      [[place.path("one"), "--max-tokens", "5"], /cannot be combined with: --max-new-tokens/],
      [[unfinished], /the run has no trained model: .*unfinished\/model; finish the training with .*--resume/],
      [[place.path("nowhere"), "--out", existing], /no such run: .*nowhere/],
    ] as const) {
      const { stdout, stderr, code } = await evaluate(...args);
      expect({ stdout, code }, stderr).toEqual({ stdout: "", code: 2 });
      expect(stderr).toMatch(message);
    }
    expect(place.text("one", "config.yaml")).toContain("learning_rate"); // --out was not emptied
    const neither = await sqlenvInside(["eval"]);
    expect(neither.stderr).toMatch(/nothing to evaluate; give --player \(random, .*\), or --run/);
  });
});
