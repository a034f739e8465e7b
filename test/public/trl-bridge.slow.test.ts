// TRL's GRPOTrainer on our server, with tools and with text: its rewards equal our environment's.
// Needs a Python with TRL, named by SQLENV_PYTHON; without one these tests are skipped with a message.
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { RunningServer } from "sqlenv/apps/openenv";
import type { QuestionRecord } from "sqlenv/gym/data";
import { type ActionType, SQLEnvironment } from "sqlenv/gym/env";
import { afterAll, describe, expect, test } from "vitest";
import { without } from "../helpers/needs.ts";
import { serve } from "../helpers/server-place.ts";
import { smallDataSet } from "../helpers/small-data.ts";

const bridge = fileURLToPath(new URL("../../integrations/trl/", import.meta.url));
const python = process.env.SQLENV_PYTHON ?? "";

function hasTrl(): boolean {
  if (python === "") return false;
  try {
    execFileSync(python, ["-c", "import trl, aiohttp, torch"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

const isThere = hasTrl();
const note = without("trl", isThere, "set SQLENV_PYTHON to a Python that has it");

type Turn = readonly [ActionType, string];

/** Four ways to play a question, distinguishable by their first action. */
function variantsOf({ gold_sql, gold_answer, tables_involved }: QuestionRecord): readonly (readonly Turn[])[] {
  const table = tables_involved[0]!;
  return [
    [
      ["DESCRIBE", table],
      ["QUERY", gold_sql],
      ["ANSWER", gold_answer],
    ],
    [
      ["SAMPLE", table],
      ["ANSWER", "surely not this"],
    ],
    [
      ["QUERY", gold_sql],
      ["QUERY", gold_sql],
      ["ANSWER", gold_answer],
    ],
    [
      ["QUERY", "SELECT nothing FROM nowhere"],
      ["DESCRIBE", table],
      ["ANSWER", "nor this"],
    ],
  ];
}

interface Given {
  readonly question_id: string;
  readonly variant: number;
  readonly value: number;
}

describe.skipIf(!isThere)(`TRL${note}`, () => {
  let server: RunningServer | undefined;
  afterAll(() => server?.close());

  test.each(["environment_factory", "rollout_func"])(
    "%s: two training steps get the same rewards as ours",
    async (way) => {
      const data = await smallDataSet();
      server ??= await serve();
      const asked = data.questions.filter(
        ({ split, question_text }) => split === "train" && !question_text.includes('"'),
      );
      const scripts = asked.map((question) => ({
        question_id: question.question_id,
        question: question.question_text,
        variants: variantsOf(question),
      }));
      const file = join(mkdtempSync(join(tmpdir(), "sqlenv-trl-")), "scripts.json");
      writeFileSync(file, JSON.stringify(scripts));
      const options = { cwd: bridge, maxBuffer: 1 << 26, env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" } };
      const { stdout } = await promisify(execFile)(python, ["check_bridge.py", server.url, file, way], options);
      const { records, log } = JSON.parse(stdout.trim().split("\n").at(-1)!) as {
        records: Record<string, Given[]>;
        log: Record<string, number>[];
      };
      expect(Object.keys(records)).toEqual(["reward_correctness", "reward_progress", "reward_operational"]);
      const env = new SQLEnvironment(data, { step_budget: 15 });
      const seen = new Set<number>();
      for (const [name, given] of Object.entries(records)) {
        expect(given.length).toBe(8); // two steps of four completions
        for (const { question_id, variant, value } of given) {
          seen.add(variant);
          env.reset({ question_id });
          const script = scripts.find((known) => known.question_id === question_id)!;
          for (const [action_type, argument] of script.variants[variant]!) env.step({ action_type, argument });
          const part = name.replace("reward_", "") as "correctness" | "progress" | "operational";
          expect(value, `${name} of ${question_id}, variant ${variant}`).toBe(env.outcome[part]);
        }
      }
      expect([...seen].sort()).toEqual([0, 1, 2, 3]);
      expect(log.filter((line) => "rewards/reward_correctness/mean" in line)).toHaveLength(2);
      expect(log[0]!["rewards/reward_correctness/mean"]).toBe(0.5); // two of the four variants are right
      expect(log[0]!.grad_norm).toBeGreaterThan(0);
    },
    300_000,
  );

  test("a tiny random Qwen3 trains to the end", async () => {
    server ??= await serve();
    const out = mkdtempSync(join(tmpdir(), "sqlenv-trl-"));
    const flags = ["train_tiny.py", "--url", server.url, "--steps", "2", "--out", out, "--way", "environment_factory"];
    const options = { cwd: bridge, maxBuffer: 1 << 26, env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" } };
    const { stdout } = await promisify(execFile)(python, flags, options);
    expect(stdout).toContain('"train_runtime"');
  }, 300_000);
});
