// Settings as flags and as files: what is wrong with them is said in one line.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../../../test/helpers/data-files.ts";
import { presetNamed } from "../../../rl/index.ts";
import { type Explanation, explain } from "../terminal/error-line.ts";
import { addConfigOptions, type ConfigFlags, configOf, typedSettings } from "./train-config.ts";

/** What a person is told of what is thrown. */
function explained(act: () => unknown): Explanation | null {
  try {
    act();
    return null;
  } catch (error) {
    return explain(error);
  }
}

test.each<[ConfigFlags, RegExp]>([
  [{ lossType: "gpro" }, /loss_type takes grpo, .* or vespo: gpro/],
  [{ learningRate: "-1" }, /learning_rate must be above 0: -1/],
  [{ learningRate: "abc" }, /learning_rate takes a number: abc; for example 5e-6 /],
  [{ threads: "0" }, /threads must be at least 1: 0 /],
  [{ maxSteps: "0" }, /max_steps is out of range \(give -1 or a number from 1\): 0 /],
  [{ usePeft: "maybe" }, /use_peft takes true or false: maybe /],
  [{ difficultyFilter: "easy,mediun" }, /difficulty_filter\.1 takes easy, medium or hard: mediun/],
  [{ maxContextTokens: "12" }, /max_new_tokens must be below max_context_tokens \(12\): 96; a turn must leave room/],
  [{ sftDatabaseShare: "2" }, /sft_database_share must be at most 1: 2/],
  [{ preset: "startr" }, /no such preset: startr; did you mean starter\?/],
  [{ config: "nothing.yaml" }, /no such config file: nothing\.yaml/],
])("%j is wrong use", (flags, message) => {
  expect(explained(() => configOf(flags))).toEqual({ line: expect.stringMatching(message), exitCode: 2 });
});

test.each([
  ["reward: {step_csot: 0}", /no such setting: reward\.step_csot; did you mean reward\.step_cost\?/],
  ["epsilon: high", /epsilon takes a number: high; for example 0\.2/],
  ["- a list", /does not hold settings but: a list; write `key: value` lines/],
  ["imitation_steps: 120", /no such setting any more: imitation_steps; .* has sft_steps/],
  ["open: [1", /is not YAML: .* at line \d/],
])("a config file that holds %j is wrong use", (text, message) => {
  const file = join(temporaryFolder(), "wrong.yaml");
  writeFileSync(file, `${text}\n`);
  expect(explained(() => configOf({ config: file }))).toEqual({ line: expect.stringMatching(message), exitCode: 2 });
});

test("without --preset, the model selects the preset, and a line says so", () => {
  const chosen = (flags: ConfigFlags) => {
    const notes: string[] = [];
    const config = configOf(flags, undefined, (line) => notes.push(line));
    return { config, notes };
  };
  expect(chosen({})).toMatchObject({ config: { model_name: "starter", step_budget: 8 }, notes: [] });
  expect(chosen({ modelName: "Qwen/Qwen3-0.6B" })).toMatchObject({
    config: { use_peft: true, learning_rate: 2e-5, questions_path: "bundled" },
    notes: [expect.stringMatching(/preset qwen3-0\.6b, chosen for Qwen\/Qwen3-0\.6B/)],
  });
  const file = join(temporaryFolder(), "my.yaml");
  writeFileSync(file, "max_steps: 60\n");
  expect(chosen({ config: file })).toMatchObject({
    config: { model_name: "starter", max_steps: 60, learning_rate: 1e-3 },
    notes: [expect.stringMatching(/not in .*my\.yaml are those of the preset starter/)],
  });
  expect(chosen({ config: file, preset: "none" }).config).toMatchObject({ model_name: "Qwen/Qwen3-1.7B" });
});

test("on questions of data make the starter gets SFT before GRPO, and a line says so", () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, "questions"));
  writeFileSync(join(folder, "report.json"), "{}");
  const file = join(folder, "more.yaml");
  writeFileSync(file, "max_steps: 60\n");
  const chosen = (flags: ConfigFlags) => {
    const notes: string[] = [];
    const { questions_path, sft_split, sft_steps, max_steps, learning_rate } = configOf(flags, undefined, (line) =>
      notes.push(line),
    );
    return { questions_path, sft_split, isSft: sft_steps > 0, max_steps, learning_rate, notes };
  };
  const own = presetNamed("own-starter");
  const { learning_rate, max_steps } = own;
  const notes = [
    expect.stringMatching(/preset own-starter, chosen for questions made by data make .*: SFT on most of them, then/),
  ];
  const recipe = { questions_path: folder, sft_split: "question", isSft: true, learning_rate, max_steps, notes };
  expect(chosen({ questionsPath: folder })).toEqual(recipe);
  expect(chosen({ questionsPath: folder, modelName: "starter" })).toEqual(recipe);
  expect(chosen({ questionsPath: folder, config: file })).toEqual({ ...recipe, max_steps: 60 });
  expect(chosen({ questionsPath: folder, preset: "starter" })).toMatchObject({ isSft: false, notes: [] });
  for (const name of ["bundled", "practice", "starter", "an-imported-set", file])
    expect(chosen({ questionsPath: name })).toMatchObject({ isSft: false, learning_rate: 1e-3, max_steps: 40 });
  expect(chosen({ questionsPath: folder, modelName: "Qwen/Qwen3-0.6B" })).toMatchObject({
    notes: [expect.stringMatching(/preset qwen3-0\.6b, chosen for Qwen/)],
  });
});

test("former settings are accepted in flags and files, with a deprecation line", () => {
  const file = join(temporaryFolder(), "before.yaml");
  writeFileSync(file, "imitation_episodes: 16\nimitation_epochs: 1\n");
  for (const flags of [{ config: file }, { preset: "none", imitationEpisodes: "16", imitationEpochs: "1" }]) {
    const lines: string[] = [];
    expect(configOf(flags, (line) => lines.push(line))).toMatchObject({ sft_steps: 2, sft_overlap: true });
    expect(lines).toEqual([expect.stringMatching(/^deprecated: imitation_episodes, imitation_epochs; read as sft_/)]);
  }
});

test("--data is another name of --questions-path", () => {
  const command = addConfigOptions(new Command());
  command.parseOptions(["--data", "shop-questions"]);
  expect(typedSettings(command.opts())).toEqual({ questions_path: "shop-questions" });
});
