// The environments of integrations/trl, which need Python's standard library only. Training is in trl-bridge.slow.test.ts.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type ActionType, SQLEnvironment } from "sqlenv/gym/env";
import { expect, test } from "vitest";
import { without } from "../helpers/needs.ts";
import { runPython } from "../helpers/python.ts";
import { serve } from "../helpers/server-place.ts";
import { smallDataSet } from "../helpers/small-data.ts";

const bridge = fileURLToPath(new URL("../../integrations/trl/", import.meta.url));
const python = process.env.SQLENV_PYTHON || "python3";
const isThere = spawnSync(python, ["-c", "import sys; sys.exit(sys.version_info < (3, 11))"]).status === 0;
const note = without("python3", isThere, "install Python 3.11 or later");

interface Seen {
  readonly played: (number | null)[][];
  readonly said: string[];
  readonly lost: null[];
  readonly again: number[];
  readonly questions: { question_id: string }[];
}

test.skipIf(!isThere)(
  `TRL's environments can be pickled, play in threads, survive an ended session and leave none${note}`,
  async () => {
    const data = await smallDataSet();
    const server = await serve({ apiKeys: ["secret"] });
    const asked = data.questions.filter(({ split }) => split === "train");
    const episodes = [...asked, ...asked, ...asked].map(({ question_id, gold_sql, gold_answer }, i) => ({
      question_id,
      actions: [
        ["describe", "maker"],
        ["query", i % 3 === 0 ? gold_sql : "SELECT 'ü', '\u{1f600}'"],
        ["answer", i % 2 === 0 ? gold_answer : "surely not this"],
      ] as const,
    }));
    const folder = mkdtempSync(join(tmpdir(), "sqlenv-trl-"));
    const file = join(folder, "episodes.json");
    writeFileSync(file, JSON.stringify(episodes));
    const seen = await runPython<Seen>(python, bridge, "check_environment.py", server.url, "secret", file);
    const env = new SQLEnvironment(data, { step_budget: 15 });
    const expected = episodes.map(({ question_id, actions }) => {
      env.reset({ question_id });
      for (const [tool, argument] of actions) env.step({ action_type: tool.toUpperCase() as ActionType, argument });
      const { correctness, progress, operational } = env.outcome;
      return [correctness, progress, operational];
    });
    expect(seen.played).toEqual(expected);
    expect(seen.said.slice(0, 2)).toEqual([
      "the server has ended the session",
      "the episode was lost with its connection",
    ]);
    expect(seen.said[2]).toMatch(/^Invalid arguments for tool 'query'/); // for the model to read
    expect(seen.lost).toEqual([null, null, null]);
    expect(seen.again).toEqual(expected[0]);
    expect(seen.questions.map(({ question_id }) => question_id)).toEqual(asked.map((one) => one.question_id));
    expect(server.sessions).toBe(0);
    await server.close();
    rmSync(folder, { recursive: true });
  },
);
