// The playground's permalinks, snippets and replay files, without a browser.
import fc from "fast-check";
import { expect, test } from "vitest";
import { asCurl, asTypeScript } from "./code-snippets.ts";
import { DEFAULT_LINK, linkText, parseLink } from "./permalink.ts";
import { readReplays } from "./replay-file.ts";

const action = fc.record({
  action_type: fc.constantFrom("DESCRIBE" as const, "SAMPLE" as const, "QUERY" as const, "ANSWER" as const),
  argument: fc.string({ unit: "grapheme" }),
});
const link = fc.record({
  data: fc.record({ kind: fc.constantFrom("bundled" as const, "starter" as const), seed: fc.nat(999_999_999) }),
  question: fc.option(fc.string({ minLength: 1 }), { nil: undefined }),
  seed: fc.nat(999_999_999),
  budget: fc.integer({ min: 1, max: 100 }),
  player: fc.constantFrom(undefined, "oracle"),
  actions: fc.array(action, { maxLength: 10 }),
});

test("a permalink round-trips", () => {
  fc.assert(
    fc.property(link, (given) => {
      expect(parseLink(`#${linkText(given)}`)).toEqual(given);
    }),
  );
});

test("invalid parts of a permalink get their defaults", () => {
  expect(parseLink("#data=elsewhere:1&seed=-5&budget=x&do=DROP%3A+all&do=nothing")).toEqual({
    ...DEFAULT_LINK,
    question: undefined,
    player: undefined,
  });
  fc.assert(
    fc.property(fc.string(), (text) => {
      const { budget, seed, actions } = parseLink(text);
      expect(budget).toBeGreaterThan(0);
      expect(seed).toBeGreaterThanOrEqual(0);
      expect(actions.length).toBeLessThanOrEqual(100);
    }),
  );
});

test("quotes are escaped in snippets", () => {
  const hostile = `'; rm -rf / # "\\ \${process.exit()}\n`;
  const actions = [{ action_type: "QUERY", argument: hostile }] as const;
  const given = { ...DEFAULT_LINK, question: hostile, actions };
  const [, , step] = asCurl(given).split("\n");
  const [, body] = /-d '(.*)'$/s.exec(step!)!;
  expect((JSON.parse(body!.replaceAll(`'\\''`, "'")) as { action: object }).action).toEqual(actions[0]);
  expect(asTypeScript(given)).toContain(`argument: ${JSON.stringify(hostile)}`);
});

test("any file content is parsed as episodes or refused", () => {
  const chat = {
    messages: [
      { role: "user", content: "Question: How many?\nTables: a" },
      { role: "assistant", content: "ANSWER: 5" },
    ],
  };
  const [replay] = readReplays("chat.jsonl", `${JSON.stringify(chat)}\n`);
  expect(replay!.record.question).toBe("How many?");
  expect(replay!.record.steps[0]!.action).toEqual({ action_type: "ANSWER", argument: "5" });
  const comparison = {
    questions: [
      {
        episodes: [
          { steps: [], player: "random" },
          { steps: [], player: "model" },
        ],
      },
    ],
  };
  expect(readReplays("comparison.json", JSON.stringify(comparison)).map(({ record }) => record.player)).toEqual([
    "random",
    "model",
  ]);
  const anything = fc.record(
    {
      steps: fc.array(fc.oneof(fc.anything(), fc.record({ action: fc.object(), observation: fc.object() }))),
      question: fc.anything(),
      reward: fc.anything(),
      messages: fc.anything(),
    },
    { requiredKeys: ["steps"] },
  );
  fc.assert(
    fc.property(anything, (value) => {
      const [{ record } = { record: undefined }] = readReplays("any.json", JSON.stringify(value));
      expect(typeof record!.question).toBe("string");
      for (const { action, observation } of record!.steps) {
        expect(typeof action.argument).toBe("string");
        expect(typeof observation.result).toBe("string");
      }
    }),
  );
  expect(() => readReplays("x.txt", "no JSON at all")).toThrow(/no episode in the file: x.txt/);
});
