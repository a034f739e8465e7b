// Settings as flags and as files: what is wrong with them is said in one line.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../../../test/helpers/data-files.ts";
import { type Explanation, explain } from "../terminal/error-line.ts";
import { type ConfigFlags, configOf } from "./train-config.ts";

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
  [{ lossType: "gpro" }, /loss_type cannot be: "gpro"; expected one of "grpo"/],
  [{ learningRate: "-1" }, /learning_rate cannot be: -1; .*>0/],
  [{ difficultyFilter: "easy,mediun" }, /difficulty_filter\.1 cannot be: "mediun"; .*"medium"/],
  [{ maxContextTokens: "12" }, /max_new_tokens must be below max_context_tokens \(12\): 96; a turn must leave room/],
  [{ sftDatabaseShare: "2" }, /sft_database_share cannot be: 2; .*<=1/],
  [{ preset: "startr" }, /no such preset: startr; did you mean starter\?/],
  [{ config: "nothing.yaml" }, /no such config file: nothing\.yaml/],
])("%j is wrong use", (flags, message) => {
  expect(explained(() => configOf(flags))).toEqual({ line: expect.stringMatching(message), exitCode: 2 });
});

test.each([
  ["reward: {step_csot: 0}", /no such setting: reward\.step_csot; did you mean reward\.step_cost\?/],
  ["epsilon: high", /epsilon cannot be: "high"; expected number/],
  ["- a list", /does not hold settings: .*; write `key: value` lines/],
  ["imitation_steps: 120", /no such setting any more: imitation_steps; .* has sft_steps/],
  ["open: [1", /is not YAML: .* at line \d/],
])("a config file that holds %j is wrong use", (text, message) => {
  const file = join(temporaryFolder(), "wrong.yaml");
  writeFileSync(file, `${text}\n`);
  expect(explained(() => configOf({ config: file }))).toEqual({ line: expect.stringMatching(message), exitCode: 2 });
});

test("settings of before are read from flags and files, with one line", () => {
  const file = join(temporaryFolder(), "before.yaml");
  writeFileSync(file, "imitation_episodes: 16\nimitation_epochs: 1\n");
  for (const flags of [{ config: file }, { preset: "none", imitationEpisodes: "16", imitationEpochs: "1" }]) {
    const lines: string[] = [];
    expect(configOf(flags, (line) => lines.push(line))).toMatchObject({ sft_steps: 2, sft_overlap: true });
    expect(lines).toEqual([expect.stringMatching(/^deprecated: imitation_episodes, imitation_epochs; read as sft_/)]);
  }
});
