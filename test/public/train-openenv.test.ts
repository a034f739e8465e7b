// `sqlenv train --env URL`: trains in the environment of an OpenEnv server, ours and another one.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { SQLEnvironment } from "sqlenv/gym/env";
import type { EpisodeRecord } from "sqlenv/gym/evaluation";
import { afterAll, expect, test } from "vitest";
import { ended, sqlenvInside, start } from "../helpers/cli-process.ts";
import { startGame } from "../helpers/openenv-game.ts";
import { serve, until } from "../helpers/server-place.ts";
import { smallDataSet } from "../helpers/small-data.ts";
import { signalAt, TrainingPlace } from "../helpers/training-place.ts";

const place = await TrainingPlace.make();
afterAll(() => place.remove());

const data = await smallDataSet();
const server = await serve({ step_budget: 10 });
afterAll(() => server.close());

const tasks = place.path("tasks.jsonl");
writeFileSync(
  tasks,
  data.questions
    .map(({ question_id: id, split, gold_answer: answer, database_name: group }) =>
      JSON.stringify({ id, split, group, answer: String(answer), reset: { question_id: id } }),
    )
    .join("\n"),
);

/** Actions as in SQL trainings; the model reads the question. */
const SQL = {
  "--env": server.url,
  "--tasks": tasks,
  "--system": "Answer the question.",
  "--action-template": '{"action_type": "{word}", "argument": "{rest}"}',
  "--observation-field": "question",
};

test("a training over our server has the rewards of the same actions in process, and ends without a session", async () => {
  const { code, stdout, stderr } = await place.trainInside("sql", SQL);
  expect(code, stderr).toBe(0);
  expect(stdout).toContain(`sqlenv at ${server.url}: 5 training tasks, `);
  const episodes = [...place.lines<EpisodeRecord>("sql", "episodes.jsonl")];
  const ours = new SQLEnvironment(data, { step_budget: 10 });
  let valid = 0;
  for (const { question_id, question, steps, reward, error } of episodes) {
    const first = ours.reset({ question_id });
    let sum = 0;
    for (const { text, observation } of steps) {
      const [, action_type = "", argument = ""] = /^\s*(\S*)\s*([\s\S]*)$/.exec(text!)!;
      const type = action_type.replace(/[:,]+$/, "") as "QUERY";
      if (!["DESCRIBE", "SAMPLE", "QUERY", "ANSWER"].includes(type)) {
        expect(observation).toMatchObject({ reward: 0, result: expect.stringContaining("Error: action_type:") });
        continue;
      }
      valid++;
      const here = ours.step({ action_type: type, argument: argument.trimEnd() });
      expect(observation).toMatchObject({ reward: here.reward, done: here.done });
      sum += here.reward ?? 0;
    }
    expect([error, question]).toEqual([null, first.question]);
    expect(reward).toBeCloseTo(sum, 12);
  }
  expect(episodes).toHaveLength(24);
  expect(valid).toBeGreaterThan(10);
  expect(place.text("sql", "report.html")).toContain("held-out tasks");
  expect(JSON.parse(place.text("sql", "results.json"))).toMatchObject({ environment: { name: "sqlenv" } });
  await until(() => server.sessions === 0);
});

test("a run that was killed resumes to the same bytes, with its server at another address", async () => {
  const child = start([...place.args("killed", SQL), "--json"]);
  expect(await signalAt(child, "killed", place.logged("timings.jsonl", 2), "SIGKILL")).toBe(true);
  await ended(child);
  await until(() => server.sessions === 0);
  const moved = await serve({ step_budget: 10, threads: 1 });
  try {
    const resumed = await sqlenvInside(["train", "--resume", place.path("killed"), "--env", moved.url]);
    expect(resumed.code, resumed.stderr).toBe(0);
    for (const file of ["episodes.jsonl", "metrics.jsonl", "model/model.safetensors"])
      expect(readFileSync(place.path("killed", file)).equals(readFileSync(place.path("sql", file))), file).toBe(true);
    const evaluated = await sqlenvInside(["eval", "--run", place.path("killed"), "--server", moved.url]);
    expect(evaluated.code, evaluated.stderr).toBe(0);
    expect(evaluated.stdout).toContain("the numbers agree with the training's report");
  } finally {
    await moved.close();
  }
});

const numbers = (more: (number: number) => object = () => ({})) =>
  Array.from({ length: 8 }, (_, number) => ({ id: `n${number}`, reset: { number, ...more(number) } }));

/** Writes the tasks of a game to say a number, and returns the settings of a training in it. */
function saying(url: string, name: string, lines: readonly object[]) {
  const file = place.path(`${name}.jsonl`);
  writeFileSync(file, lines.map((line) => JSON.stringify(line)).join("\n"));
  return { "--env": url, "--tasks": file, "--action-template": '{"guess": "{text}"}', "--max-steps": 2 };
}

test("episodes that the server breaks are left out, or end the training with a checkpoint, as environment_errors says", async () => {
  const game = await startGame({ capacity: 2 });
  try {
    const settings = saying(
      game.url,
      "broken",
      numbers((number) => ({ fault: ["error", "endless", undefined][number % 3] })),
    );
    const skipped = await place.trainInside("skipped", settings);
    expect(skipped.code, skipped.stderr).toBe(0);
    expect(
      skipped.stdout.match(/an episode cannot be scored: environment say, task n\d: the board is on fire/g),
    ).toHaveLength(1);
    const failed = place.lines("skipped", "episodes.jsonl").filter(({ error }) => error !== null);
    expect(failed.length).toBeGreaterThan(0);
    for (const { error, question_id, reward } of failed)
      expect([error, reward]).toEqual([`environment say, task ${question_id}: the board is on fire`, null]);
    const endless = place.lines("skipped", "episodes.jsonl").filter(({ done_reason }) => done_reason === null);
    expect(endless.map(({ step_count, error }) => error ?? step_count)).toContain(3); // the step budget
    expect(game.sessions.most).toBe(2);

    const stopped = await place.trainInside("stopped", { ...settings, "--environment-errors": "stop" });
    expect([stopped.code, stopped.stderr]).toEqual([
      1,
      expect.stringMatching(/environment say failed on task n\d: .*the board is on fire.*fix it and resume/),
    ]);
    expect(existsSync(place.path("stopped", "checkpoints"))).toBe(true);
    saying(game.url, "broken", numbers()); // the tasks without the fault
    const resume = ["train", "--resume", place.path("stopped")];
    expect(await sqlenvInside(resume)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("changed is: the tasks;"),
    });
    const resumed = await sqlenvInside([...resume, "--accept-changes"]);
    expect(resumed.code, resumed.stderr).toBe(0);
  } finally {
    await game.close();
  }
});

test("bad input is refused before anything is written", async () => {
  const game = await startGame();
  const refused = async (settings: Readonly<Record<string, string | number>>, expected = 2) => {
    const { code, stderr } = await place.trainInside("refused", settings);
    expect([code, existsSync(place.path("refused"))]).toEqual([expected, false]);
    return stderr.split("\n").find((line) => line.startsWith("error: "));
  };
  const say = saying(game.url, "say", numbers());
  try {
    expect(await refused({ ...say, "--env": "http://127.0.0.1:9" }, 1)).toMatch(
      /cannot connect to: .*:9\/metadata.*is the server running/,
    );
    expect(await refused({ "--env": game.url })).toMatch(/--env needs --tasks/);
    expect(await refused({ "--tasks": tasks })).toMatch(/tasks is for an OpenEnv server.*give --env/);
    expect(await refused({ ...say, "--tasks": "nope.jsonl" })).toMatch(/tasks cannot be read .*: nope\.jsonl/);
    expect(await refused({ ...say, "--action-template": '{"say": "{text}"}' })).toMatch(/lacks.*guess.*fields are/);
    expect(await refused({ ...say, "--sft-steps": 5 })).toMatch(/sft_steps needs SQL.*: 5; fine-tune the model before/);
    expect(await refused({ ...say, "--observation-field": "board" }, 1)).toMatch(
      /task n\d: .*field board.*prompt, tries/,
    );
    const starter = await sqlenvInside(["train", "--env", game.url, "--tasks", tasks]);
    expect([starter.code, starter.stderr]).toEqual([2, expect.stringMatching(/needs a model.*was taught SQL only/)]);
  } finally {
    await game.close();
  }
});
