// The whole recipe on two CPU cores: SFT and GRPO on different databases, with dynamic sampling and worker threads, killed in
// the middle of each and resumed to the same bytes. Tests the stages, not the score.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { ended, sqlenv, start } from "../helpers/cli-process.ts";
import { signalAt } from "../helpers/training-place.ts";
import { hasMinimind, minimindFolder } from "../reference/read.ts";

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-recipe-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const SETTINGS = {
  ...{ "--preset": "spider-smollm2", "--model-name": "starter", "--questions-path": "starter", "--device": "cpu" },
  ...{ "--sft-steps": 3, "--sft-batch-tokens": 1500, "--sft-max-context-tokens": 1024, "--max-steps": 2 },
  ...{ "--per-device-train-batch-size": 8, "--num-generations": 4, "--dynamic-sampling": 2, "--pass-k": 0 },
  ...{ "--max-new-tokens": 48, "--max-completion-length": 192, "--max-context-tokens": 1024, "--step-budget": 4 },
  ...{ "--eval-step-budget": 4, "--final-eval-episodes": 3, "--final-eval-sampled-episodes": 2, "--eval-steps": 0 },
  ...{ "--save-steps": 1, "--comparison-episodes": 1, "--environment-threads": 1, "--difficulty-filter": "easy" },
};
const args = (run: string, settings: Readonly<Record<string, string | number>> = {}) => [
  ...["train", "--output-dir", join(scratch, run)],
  ...Object.entries({ ...SETTINGS, ...settings }).flatMap(([flag, value]) => [flag, String(value)]),
];
const json = (run: string, file: string) => JSON.parse(readFileSync(join(scratch, run, file), "utf8"));

test("the starter goes through all stages", { timeout: 600_000 }, async () => {
  const { code, stdout, stderr } = await sqlenv([...args("whole"), "--json"]);
  expect(code, stderr).toBe(0);
  const result = JSON.parse(stdout);
  const split = json("whole", "split.json");
  expect(result).toMatchObject({ steps: 2, split, sft: { steps: 3 } });
  expect(Object.keys(result.accuracy)).toEqual(["base", "before", "after"]);
  expect(split.sft.databases.filter((name: string) => split.grpo.databases.includes(name))).toEqual([]);
  const asked = readFileSync(join(scratch, "whole", "episodes.jsonl"), "utf8")
    .trimEnd()
    .split("\n");
  for (const line of asked) expect(split.grpo.databases).toContain(JSON.parse(line).database_name);
  const learned = asked.filter((line) => JSON.parse(line).advantage !== 0);
  expect(learned.length).toBeGreaterThan(0); // else GRPO would have resumed without anything to repeat
});

test.skipIf(!hasMinimind)(
  `a pretrained model of another architecture goes through all stages${hasMinimind ? "" : " (minimind2-small is not here)"}`,
  { timeout: 600_000 },
  async () => {
    const { code, stdout, stderr } = await sqlenv([...args("pretrained", await pretrained()), "--json"]);
    expect(code, stderr).toBe(0);
    const { sft, steps, accuracy } = JSON.parse(stdout);
    expect({ sft: sft.steps, steps, stages: Object.keys(accuracy) }).toEqual({
      ...{ sft: 1, steps: 1, stages: ["base", "before", "after"] },
    });
  },
);

/** As little as has every stage: its episodes take ten times as long as the starter's. */
async function pretrained(): Promise<Readonly<Record<string, string | number>>> {
  return {
    ...{ "--model-name": await minimindFolder(), "--sft-steps": 1, "--max-steps": 1, "--dynamic-sampling": 0 },
    ...{ "--per-device-train-batch-size": 4, "--max-new-tokens": 16, "--max-completion-length": 32 },
    ...{ "--step-budget": 2, "--eval-step-budget": 2, "--final-eval-episodes": 1, "--final-eval-sampled-episodes": 1 },
  };
}

test("a run killed during SFT and during GRPO resumes to the same bytes", { timeout: 600_000 }, async () => {
  const run = join(scratch, "killed");
  const killedAt = async (arguments_: string[], moment: (said: string) => boolean) => {
    const child = start(arguments_);
    const end = ended(child);
    let said = "";
    child.stdout.on("data", (text: string) => {
      said += text;
    });
    expect(await signalAt(child, run, () => moment(said), "SIGKILL")).toBe(true);
    return end;
  };
  await killedAt(args("killed", { "--threads": 2 }), (said) => said.includes("SFT: step 1/3"));
  expect(existsSync(join(run, "sft"))).toBe(false);
  const base = readFileSync(join(run, "base.json"));
  const resume = ["train", "--resume", run, "--threads", "1"];
  const again = await killedAt(resume, () => existsSync(join(run, "checkpoints", "step-1")));
  expect(again.stdout).not.toMatch(/untrained model/); // the base evaluation is not repeated
  expect(again.stdout).toMatch(/supervised fine-tuning/);
  const { code, stdout, stderr } = await sqlenv(resume);
  expect(code, stderr).toBe(0);
  expect(stdout).not.toMatch(/supervised fine-tuning/);
  expect(readFileSync(join(run, "base.json")).equals(base)).toBe(true);
  for (const file of [
    ...["split.json", "base.json", "before.json", "outcomes.json", "metrics.jsonl", "episodes.jsonl"],
    ...["warnings.jsonl", "sft/model.safetensors", "model/model.safetensors"],
  ])
    expect(readFileSync(join(run, file)).equals(readFileSync(join(scratch, "whole", file))), file).toBe(true);
  expect(readdirSync(run).filter((name) => name.startsWith("."))).toEqual([]); // nothing half-written is left
});

test("questions used for SFT are rewarded on request only, with a warning", { timeout: 600_000 }, async () => {
  const settings = { "--sft-overlap": "true", "--max-steps": 1, "--dynamic-sampling": 0 };
  const { code, stdout, stderr } = await sqlenv(args("overlap", settings));
  expect(code, stderr).toBe(0);
  expect(stdout).toMatch(/GRPO may ask the \d+ questions that SFT demonstrated: .* no spread/);
  const [first] = readFileSync(join(scratch, "overlap", "warnings.jsonl"), "utf8").split("\n");
  expect(JSON.parse(first!)).toMatchObject({ step: 0, code: "imitated_and_rewarded" });
});
