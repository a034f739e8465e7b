// From two tables to a trained model: `data make`, then `train` with the settings that are chosen for such questions, a
// little of each stage. Killed in the middle, it resumes to the same bytes. Tests the stages, not the score.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sqlenv, start } from "../helpers/cli-process.ts";
import { signalAt } from "../helpers/training-place.ts";
import { hasMinimind, minimindFolder } from "../reference/read.ts";

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-own-data-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const data = join(scratch, "lakes-questions");

const SIZES = {
  ...{ "--sft-steps": 3, "--sft-batch-tokens": 1500, "--max-steps": 2, "--save-steps": 1 },
  ...{ "--per-device-train-batch-size": 16, "--num-generations": 4, "--eval-steps": 0, "--comparison-episodes": 1 },
  ...{ "--step-budget": 4, "--max-new-tokens": 48, "--max-completion-length": 192, "--final-eval-episodes": 4 },
};
const args = (run: string, settings: Readonly<Record<string, string | number>> = {}) => [
  ...["train", "--data", data, "--output-dir", join(scratch, run)],
  ...Object.entries({ ...SIZES, ...settings }).flatMap(([flag, value]) => [flag, String(value)]),
];
const text = (run: string, file: string) => readFileSync(join(scratch, run, file), "utf8");

const LAKES = [
  ...["name,continent,area km2,depth m,salty", "Superior,America,82100,406,no", "Huron,America,59600,229,no"],
  ...["Victoria,Africa,68800,83,no", "Tanganyika,Africa,32900,1470,no", "Malawi,Africa,29600,706,no"],
  ...["Baikal,Asia,31500,1642,no", "Balkhash,Asia,16400,26,yes", "Ladoga,Europe,17700,230,no"],
  ...["Onega,Europe,9700,127,no", "Titicaca,America,8372,281,no", "Turkana,Africa,6405,109,yes"],
];

beforeAll(async () => {
  mkdirSync(join(scratch, "geo"));
  writeFileSync(join(scratch, "geo", "lakes.csv"), `${LAKES.join("\n")}\n`);
  const made = await sqlenv(["data", "make", join(scratch, "geo"), "--out", data, "--questions", "80"]);
  expect(made.code, made.stderr).toBe(0);
});

test("the starter goes through SFT and GRPO on different questions about one database", {
  timeout: 600_000,
}, async () => {
  const { code, stdout, stderr } = await sqlenv([...args("whole", { "--threads": 2 })]);
  expect(code, stderr).toBe(0);
  expect(stdout).toMatch(/preset own-starter, chosen for questions made by data make/);
  expect(stdout).toMatch(
    /split by question, seed 42: SFT uses \d+ questions on 1 database; GRPO asks \d+ questions on 1/,
  );
  expect(stdout).toMatch(/SFT has fewer than 500 questions, which a small model learns by heart/);
  const split = JSON.parse(text("whole", "split.json"));
  expect(split).toMatchObject({ unit: "question", overlap: false, sft: { databases: split.grpo.databases } });
  const questions: { question_id: string; gold_sql: string }[] = JSON.parse(
    readFileSync(join(data, "questions", "questions_train.json"), "utf8"),
  );
  expect(split.sft.questions + split.grpo.questions).toBe(questions.length);
  const result = JSON.parse(text("whole", "results.json"));
  expect(Object.keys(result.accuracy)).toEqual(["base", "before", "after"]);
  expect(result).toMatchObject({ steps: 2, sft: { steps: 3 }, accuracy: { after: { seen: { questions: 4 } } } });
  expect(result.paired.map(({ from, to }: { from: string; to: string }) => `${from} ${to}`)).toContain("base before");
});

test("killed during GRPO it resumes to the same bytes", { timeout: 600_000 }, async () => {
  const run = join(scratch, "killed");
  const child = start(args("killed", { "--threads": 1 }));
  const isSaved = () => existsSync(join(run, "checkpoints", "step-1"));
  expect(await signalAt(child, run, isSaved, "SIGKILL")).toBe(true);
  const { code, stderr } = await sqlenv(["train", "--resume", run, "--threads", "2"]);
  expect(code, stderr).toBe(0);
  for (const file of [
    ...["split.json", "base.json", "before.json", "outcomes.json", "metrics.jsonl", "episodes.jsonl"],
    ...["sft/model.safetensors", "model/model.safetensors"],
  ])
    expect(readFileSync(join(run, file)).equals(readFileSync(join(scratch, "whole", file))), file).toBe(true);
});

test.skipIf(!hasMinimind)(
  `a pretrained model of another architecture is trained on them by the presets for its size${hasMinimind ? "" : " (minimind2-small is not here)"}`,
  { timeout: 600_000 },
  async () => {
    const settings = {
      ...{ "--preset": "smollm2-135m", "--model-name": await minimindFolder(), "--device": "cpu", "--pass-k": 0 },
      ...{ "--sft-steps": 1, "--max-steps": 1, "--per-device-train-batch-size": 4, "--max-new-tokens": 16 },
      ...{ "--max-completion-length": 32, "--step-budget": 2, "--final-eval-episodes": 1 },
    };
    const { code, stderr } = await sqlenv(args("pretrained", settings));
    expect(code, stderr).toBe(0);
    const { sft, split } = JSON.parse(text("pretrained", "results.json"));
    expect({ steps: sft.steps, unit: split.unit }).toEqual({ steps: 1, unit: "question" });
  },
);
