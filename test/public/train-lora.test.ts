// Training with adapters: SFT first, a kill in between, PEFT's files, merged models.
import { existsSync, readFileSync, statSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import * as library from "sqlenv";
import { loadModelFolder, openSafetensors } from "sqlenv/lm/model/node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ALL, QUICK } from "../helpers/cases.ts";
import { ended, sqlenv, sqlenvInside, start } from "../helpers/cli-process.ts";
import { prepare } from "../helpers/prepare.ts";
import { difference } from "../helpers/tiny-model.ts";
import { TrainingPlace } from "../helpers/training-place.ts";

const { loadModelAndTokenizer } = library;

/** The preset for Qwen3 with settings for a tiny model. */
const ADAPTERS = {
  ...{ "--preset": "qwen3-0.6b", "--prompt": "compact", "--shots": 0, "--pass-k": 2, "--pass-questions": 2 },
  ...{ "--use-peft": "true", "--lora-r": 4, "--lora-alpha": 8, "--beta": 0.05, "--easy-steps": 2 },
  ...{ "--sft-steps": 2, "--sft-batch-tokens": 1000, "--sft-learning-rate": 0.01, "--sft-max-context-tokens": 1024 },
};

const place = await TrainingPlace.make();
afterAll(() => place.remove());
const ran = await place.trainInside("one", ADAPTERS);

describe("a run that learns adapters", () => {
  test("says what it learns", () => {
    expect(ran.code, ran.stderr).toBe(0);
    expect(ran.stdout).toMatch(
      /split by database, seed 42: SFT uses \d questions on 1 database; GRPO asks \d questions on 1 database$/m,
    );
    expect(ran.stdout).toMatch(/parameters, [\d,]+ learned in adapters/);
  });

  test("evaluates the untrained model, then SFT, then where GRPO begins, then after it, on a split that is kept", () => {
    const order = ["untrained model", "supervised fine-tuning", "GRPO begins with", "▸ GRPO\n", "the trained model"];
    const places = order.map((words) => ran.stdout.indexOf(words));
    expect(places).not.toContain(-1);
    expect(places.toSorted((a, b) => a - b)).toEqual(places);
    const split = JSON.parse(place.text("one", "split.json"));
    const result = JSON.parse(place.text("one", "results.json"));
    expect(result).toMatchObject({ split, sft: { steps: 2 }, base: { unseen: { greedy: { episodes: 2 } } } });
    const rewarded = new Set(place.lines("one", "episodes.jsonl").map(({ database_name }) => database_name));
    expect([...rewarded]).toEqual(split.grpo.databases);
    expect(split.sft.databases).not.toEqual(split.grpo.databases);
    const outcomes = JSON.parse(place.text("one", "outcomes.json"));
    expect(outcomes.stages).toEqual(["base", "before", "after"]);
    expect(Object.values(outcomes.questions).flatMap((of) => Object.keys(of as object))).toHaveLength(4); // two on seen databases, two on unseen ones
    expect(result.paired.map(({ from, to }: { from: string; to: string }) => `${from} ${to}`)).toContain("base before");
    expect(place.text("one", "report.html")).toMatch(/Split by database, seed 42: SFT \d questions on 1 database/);
  });

  test("leaves an adapter for the model it began with, and the whole model", async () => {
    const config = JSON.parse(place.text("one", "adapter/adapter_config.json"));
    expect(config).toMatchObject({ peft_type: "LORA", r: 4, lora_alpha: 8, base_model_name_or_path: place.model });
    const adapter = await openSafetensors(place.path("one", "adapter/adapter_model.safetensors"));
    expect(adapter.info("base_model.model.model.layers.0.mlp.down_proj.lora_A.weight").shape).toEqual([4, 32]);
    const moved = await adapter.read("base_model.model.model.layers.0.mlp.down_proj.lora_B.weight");
    expect(moved.some((value) => value !== 0)).toBe(true);
    await adapter.close();
    const [before, after] = [await loadModelFolder(place.model), await loadModelFolder(place.path("one", "model"))];
    const same = (name: string) => Promise.all([before.weights.read(name), after.weights.read(name)]);
    const [norm, normAfter] = await same("model.norm.weight");
    expect(normAfter).toEqual(norm); // only adapted weights change
    const [down, downAfter] = await same("model.layers.0.mlp.down_proj.weight");
    expect(downAfter).not.toEqual(down);
    await Promise.all([before.weights.close(), after.weights.close()]);
  });

  test("checkpoints hold the adapters, not the model", () => {
    const size = (file: string) => statSync(place.path(file)).size;
    expect(size("one/checkpoints/step-4/engine.safetensors")).toBeLessThan(size("model/model.safetensors"));
  });

  test("the first steps ask easy questions only", () => {
    const lines = place.lines("one", "episodes.jsonl");
    const kinds = new Set(lines.filter(({ step }) => step <= 2).map(({ difficulty }) => difficulty));
    expect(kinds).toEqual(new Set(["easy"]));
  });

  test.runIf(QUICK)("adapter, merged folder and the run's model speak alike, and the KL term began at 0", async () => {
    const merged = place.path("merged");
    const { code, stderr } = await sqlenvInside(["export", "--model", place.path("one", "adapter"), "--merge", merged]);
    expect(code, stderr).toBe(0);
    const tokens = Array.from({ length: 40 }, (_, i) => (7 * i) % 250);
    const logprobs: Float32Array[] = [];
    for (const folder of [place.path("one", "model"), place.path("one", "adapter"), merged]) {
      const { engine } = await loadModelAndTokenizer(folder, { trains: false, device: "cpu", threads: 1 });
      logprobs.push((await engine.logprobs([{ tokens, weights: [] }]))[0]!);
      await engine.close();
    }
    expect(difference(logprobs[1]!, logprobs[0]!)).toBeLessThan(1e-5);
    expect(difference(logprobs[2]!, logprobs[0]!)).toBeLessThan(1e-5);
    const metrics = place.lines("one", "metrics.jsonl").filter((line) => "kl" in line);
    expect(metrics[0]!.kl).toBe(0); // the reference is the model after SFT
    expect(metrics.at(-1)!.kl).toBeGreaterThan(0);
  });

  test.skipIf(!ALL)("killed in the middle and resumed, the same bytes", async () => {
    const run = place.path("killed");
    const child = start([...place.args("killed", ADAPTERS)]);
    const done = ended(child);
    while (child.exitCode === null && !existsSync(`${run}/checkpoints/step-2`)) await setTimeout(1); // polls the folder
    child.kill("SIGKILL");
    await done;
    const { code, stderr } = await sqlenv(["train", "--resume", run, "--threads", "2"]);
    expect(code, stderr).toBe(0);
    for (const file of [
      "metrics.jsonl",
      "episodes.jsonl",
      "split.json",
      "outcomes.json",
      "model/model.safetensors",
      "adapter/adapter_model.safetensors",
    ])
      expect(readFileSync(`${run}/${file}`).equals(readFileSync(place.path("one", file))), file).toBe(true);
  });
});

describe.runIf(QUICK)("the same training from code", () => {
  const phases: string[] = [];
  const read = new Set<string>();
  let result: library.TrainingResult | null;
  beforeAll(async () => {
    const config = library.resolveConfig({ ...library.presetNamed("qwen3-0.6b"), ...IN_CODE });
    const prepared = await prepare(watchReads(config, read));
    const onPhase = (phase: string) => void phases.push(phase);
    result = await library.runTraining({ prepared, report: library.trainingReport, onPhase });
    await prepared.close();
  });

  const IN_CODE: library.GRPOConfigInput = {
    ...{ model_name: place.model, questions_path: place.data, output_dir: place.path("by-code"), threads: 1 },
    ...{ prompt: "compact", shots: 0, pass_k: 2, pass_questions: 2, difficulty_filter: ["easy", "medium", "hard"] },
    ...{ use_peft: true, lora_r: 4, lora_alpha: 8, beta: 0.05, easy_steps: 2 },
    ...{ sft_steps: 2, sft_batch_tokens: 1000, sft_learning_rate: 0.01, sft_max_context_tokens: 1024 },
    ...{ per_device_train_batch_size: 6, gradient_accumulation_steps: 1, num_generations: 3, num_train_epochs: 10 },
    ...{ max_steps: 4, learning_rate: 0.01, step_budget: 3, max_new_tokens: 12, max_completion_length: 36 },
    ...{ max_context_tokens: 512, eval_steps: 0, final_eval_episodes: 2, comparison_episodes: 2, save_steps: 1 },
  };

  test("does SFT, then learns adapters by GRPO", () => {
    expect(phases).toEqual(["base", "sft", "random", "before", "pass_at_k", "training", "after"]);
    expect(result).toMatchObject({ steps: 4, sft: { steps: 2 }, base: { unseen: { greedy: { episodes: 2 } } } });
  });

  test("writes the command's files, with the same bytes if they contain no times", () => {
    expect(place.files("by-code")).toEqual(place.files("one"));
    const weights = ["sft/adapter_model", "adapter/adapter_model", "model/model"].map((file) => `${file}.safetensors`);
    for (const file of [...weights, "episodes.jsonl", "metrics.jsonl", "split.json", "outcomes.json"])
      expect(readFileSync(place.path("by-code", file)).equals(readFileSync(place.path("one", file))), file).toBe(true);
  });

  test("reads every setting", () => {
    const others = [
      // By self-taught rounds, which this model is too weak for (self-taught.test.ts).
      ...["self_taught_samples", "self_taught_questions", "self_taught_learning_rate"],
      // With sync_ref_model, which LoRA has no use for, and with use_adaptive_entropy (trainer tests).
      ...["ref_model_mixup_alpha", "ref_model_sync_steps"],
      ...["entropy_coef_delta", "entropy_coef_min", "entropy_coef_max"],
      ...["base_model", "engine_checkpoint"], // of a remote engine (remote-engine.test.ts)
      "invalid_action_reward", // in the environment of a server (train-openenv.test.ts)
    ];
    const left = Object.keys(library.resolveConfig()).filter((key) => !read.has(key));
    expect(left.sort()).toEqual(others.sort());
  });

  /** A proxy of the config that records which settings are read by name; copying all of them does not count. */
  function watchReads<T extends object>(config: T, read: Set<string>): T {
    let copied: PropertyKey | undefined; // a copy asks for a key's descriptor, then for its value
    return new Proxy(config, {
      getOwnPropertyDescriptor(target, key) {
        copied = key;
        return Reflect.getOwnPropertyDescriptor(target, key);
      },
      get(target, key) {
        if (key !== copied) read.add(String(key));
        copied = undefined;
        return Reflect.get(target, key);
      },
    });
  }
});

test.runIf(QUICK)("SFT can train an adapter, and a training continues with it", async () => {
  const out = place.path("warm");
  const lines = place.path("transcripts.jsonl");
  const small = ["--steps", "2", "--batch-tokens", "500", "--threads", "1", "--device", "cpu"];
  const lora = ["--use-peft", "--lora-r", "4", "--lora-alpha", "8", "--lora-target-modules", "q_proj,v_proj"];
  const warm = await sqlenvInside([
    "sft",
    "--model",
    place.model,
    "--out",
    out,
    "--transcripts",
    lines,
    ...small,
    ...lora,
  ]);
  expect(warm.code, warm.stderr).toBe(0);
  const settings = {
    ...{ "--model-name": out, "--use-peft": "true", "--lora-r": 4, "--lora-alpha": 8, "--max-steps": 1 },
    "--lora-target-modules": "q_proj,v_proj",
  };
  const { code, stderr } = await place.trainInside("on", settings);
  expect(code, stderr).toBe(0);
  const config = JSON.parse(place.text("on", "adapter/adapter_config.json"));
  expect(config).toMatchObject({ target_modules: ["q_proj", "v_proj"], base_model_name_or_path: place.model });
});

describe.runIf(QUICK)("what will happen, told before", () => {
  test("a Qwen3 that is not on this machine, without a GPU: stages, weights, memory, and where it would fit", async () => {
    const { code, stdout, stderr } = await sqlenvInside(
      ["train", "--preset", "qwen3-0.6b", "--dry-run", "--device", "cpu"],
      "",
      { HF_HUB_CACHE: place.path("empty") },
    );
    expect(code, stderr).toBe(0);
    const said = stdout + stderr;
    expect(said).toMatch(
      /1\. SFT on right episodes on practice worlds and \(40 %\) on \d+ questions on 3 training databases/,
    );
    expect(said).toMatch(/2\. GRPO on the \d+ easy training questions: 8 questions × 8 episodes/);
    expect(said).toMatch(/3\. GRPO on \d+ training questions \(easy, medium\)/);
    expect(said).toMatch(
      /weights: not here yet\. `.*train` fetches Qwen\/Qwen3-0\.6B from the Hub, 1\.5 GB into .*empty/,
    );
    expect(said).toMatch(/hf download Qwen\/Qwen3-0\.6B/);
    expect(said).toMatch(/it does not fit: the CPU engine can have [\d.]+ GB here/);
    expect(said).toMatch(/^GPU +precision +needs +would use +a step +in all$/m);
    expect(said).toMatch(/^T4 +fp32 +[\d.]+ GB +[\d.]+ GB +\d+ s +1:\d\d:\d\d$/m);
    const lines = said.split("\n");
    const at = (text: RegExp) => lines.findIndex((line) => text.test(line));
    expect(at(/it does not fit the CPU/)).toBeLessThan(at(/settings that differ from the defaults/));
    expect(said).not.toMatch(/vespo|adam_beta1/);
  });

  test("a model that is here and fits: a step is played and measured", async () => {
    const { code, stdout, stderr } = await place.trainInside("never", ADAPTERS, "--dry-run", "--json");
    expect(code, stderr).toBe(0);
    const plan = JSON.parse(stdout);
    expect(plan).toMatchObject({ fits: true, total_steps: 4, step_time: expect.any(Number) });
    expect(plan.stages.map(({ name }: { name: string }) => name)).toEqual(["sft", "easy", "all"]);
    expect(existsSync(place.path("never"))).toBe(false);
  });
});
