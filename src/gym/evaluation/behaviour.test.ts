import { expect, test } from "vitest";
import type { ActionType } from "../env/index.ts";
import type { EpisodeRecord } from "../episode.ts";
import { measureBehaviour } from "./behaviour.ts";

type Played = readonly [ActionType, string, string?, string?];

const episode = (correctness: 0 | 1, ...played: Played[]) =>
  ({
    correctness,
    repeats: 0,
    step_count: played.length,
    steps: played.map(([action_type, argument, result = "", error = null]) => ({
      action: { action_type, argument },
      observation: { result, error },
    })),
  }) as unknown as EpisodeRecord;

test("DESCRIBE counts when it is of a queried table, before the query, and worked", () => {
  const query: Played = ["QUERY", "SELECT count(*) FROM lamps", "count(*)\n3"];
  const share = (...played: Played[]) => measureBehaviour([episode(1, ...played)]).described_first;
  expect(share(["DESCRIBE", "lamps", "lamps: 3 rows"], query)).toBe(1);
  expect(share(["DESCRIBE", '"Lamps"', "lamps: 3 rows"], query)).toBe(1);
  expect(share(query, ["DESCRIBE", "lamps", "lamps: 3 rows"])).toBe(0);
  expect(share(["DESCRIBE", "chairs", "chairs: 1 row"], query)).toBe(0);
  expect(share(["DESCRIBE", "lamps", "", "no such table"], query)).toBe(0);
  expect(share(["DESCRIBE", "lamps", "lamps: 3 rows"])).toBe(0);
});

test("an answer was seen when each of its values was in a result", () => {
  const share = (answer: string, result: string) =>
    measureBehaviour([episode(1, ["QUERY", "SELECT …", result], ["ANSWER", answer])]).answers_seen;
  expect(share("Ada, Bo", "name\nBo\nAda")).toBe(1);
  expect(share('["Ada", "Bo, the elder"]', "name\nBo, the elder\nAda")).toBe(1);
  expect(share("red | 3\nblue | 1", "c | n\nblue | 1\nred | 3")).toBe(1);
  expect(share("Ada, Cy", "name\nBo\nAda")).toBe(0);
  expect(share("", "name\nBo")).toBe(0);
  expect(share("@last", "name\nBo")).toBe(0);
  const byReference = { ...episode(1, ["QUERY", "SELECT …", "name\nBo"], ["ANSWER", "@last"]), rules: "env-1+last" };
  expect(measureBehaviour([byReference]).answers_seen).toBe(1);
  expect(measureBehaviour([episode(0, ["DESCRIBE", "lamps"])]).answers_seen).toBeNull();
});

test("steps are counted over solved episodes only", () => {
  const long = episode(0, ["SAMPLE", "a"], ["SAMPLE", "a"], ["SAMPLE", "a"], ["ANSWER", "1"]);
  const short = episode(1, ["QUERY", "SELECT 1", "1"], ["ANSWER", "1"]);
  expect(measureBehaviour([long, short])).toMatchObject({ steps_to_solve: 2, repeats: 0 });
  expect(measureBehaviour([])).toEqual({
    described_first: null,
    answers_seen: null,
    steps_to_solve: null,
    repeats: null,
  });
});
