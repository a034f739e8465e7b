// `sqlenv ask` with a trained model: its greedy answers are those that `eval` judged, episode by episode.
import { appendFileSync, readFileSync } from "node:fs";
import { runGold, verifyAnswer } from "sqlenv/gym/env";
import type { EpisodeRecord } from "sqlenv/gym/evaluation";
import { evaluate } from "sqlenv/gym/evaluation";
import { oraclePlayer } from "sqlenv/gym/players";
import { loadSqlite } from "sqlenv/gym/sql";
import { transcriptOf } from "sqlenv/rl";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sqlenvInside } from "../helpers/cli-process.ts";
import { smallDataSet } from "../helpers/small-data.ts";
import { TrainingPlace } from "../helpers/training-place.ts";

let place: TrainingPlace;
let model: string;
beforeAll(async () => {
  place = await TrainingPlace.make();
  model = place.path("taught");
  // Knows the training questions by heart; the evaluation questions are the same about other databases, and others.
  const lines = place.path("right.jsonl");
  await evaluate(await smallDataSet(), oraclePlayer(), {
    ...{ split: "train", step_budget: 3 },
    onEpisode: (record) => appendFileSync(lines, `${JSON.stringify(transcriptOf(record))}\n`),
  });
  const options = ["--steps", "120", "--batch-tokens", "500", "--learning-rate", "0.02", "--threads", "1"];
  const sft = ["sft", "--model", place.path("fresh"), "--out", model, "--transcripts", lines, ...options];
  expect(await sqlenvInside(sft)).toMatchObject({ code: 0 });
  const settings = { "--model-name": model, "--max-steps": 1, "--learning-rate": 1e-6, "--final-eval-episodes": 100 };
  expect(await place.trainInside("run", settings)).toMatchObject({ code: 0 });
});
afterAll(() => place.remove());

/** Asks the questions of these episodes about their databases, without samples, and compares each step and outcome. */
async function expectSame(model: string, episodes: readonly EpisodeRecord[], ...flags: string[]): Promise<void> {
  await loadSqlite();
  const { questions, databases } = await smallDataSet();
  for (const name of new Set(episodes.map(({ database_name }) => database_name))) {
    const judged = episodes.filter(({ database_name }) => database_name === name);
    const args = ["--data", place.data, "--database", name, "--model", model, "--samples", "0", "--json", ...flags];
    const input = judged.map(({ question }) => `${question}\n`).join("");
    const { stdout } = await sqlenvInside(["ask", ...args], input);
    const told = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(told.map(({ question }) => question)).toEqual(judged.map(({ question }) => question));
    for (const [i, episode] of judged.entries()) {
      expect(told[i].steps).toEqual(
        episode.steps.map(({ action, text, parse_error, observation: { result, error, error_class } }) => ({
          ...{ ...action, text, parse_error, result, error, error_class },
        })),
      );
      const gold = runGold(
        questions.find(({ question_id }) => question_id === episode.question_id)!,
        databases.get(name),
      );
      const right = told[i].answer !== null && verifyAnswer(told[i].answer, gold);
      expect({ question: episode.question, right: Number(right) }).toEqual({
        question: episode.question,
        right: episode.correctness,
      });
    }
  }
}

const evaluated = async (...args: string[]): Promise<EpisodeRecord[]> => {
  const out = place.path("episodes.jsonl");
  const { code, stderr } = await sqlenvInside(["eval", ...args, "--out", out]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const records = readFileSync(out, "utf8").trim().split("\n");
  return records.map((line) => JSON.parse(line) as EpisodeRecord);
};

test("a run answers held-out questions as `eval --run` measured it, one by one", async () => {
  const episodes = await evaluated("--run", place.path("run"));
  expect(episodes).toHaveLength(15);
  expect(new Set(episodes.map(({ correctness }) => correctness))).toEqual(new Set([0, 1]));
  await expectSame(place.path("run"), episodes);
});

test("a saved model answers as `eval` with the same flags", async () => {
  const flags = ["--max-new-tokens", "12", "--max-context-tokens", "512", "--step-budget", "3"];
  const episodes = await evaluated("--data", place.data, "--player", "model", "--model", model, ...flags);
  await expectSame(model, episodes, ...flags);
});
