// Episodes of hostile text: whatever a player writes, nothing throws, results are bounded and errors have a known
// class.
import fc from "fast-check";
import { expect, test } from "vitest";
import { cases } from "../../../test/helpers/cases.ts";
import { shopDataSet } from "../../../test/helpers/fixtures.ts";
import { SQL_ERROR_CLASSES } from "../sql/index.ts";
import { ACTION_TYPES, MAX_ARGUMENT_LENGTH, parseAction } from "./action.ts";
import { SQLEnvironment } from "./environment.ts";
import { DEFAULT_RULES, GUIDED_RULES } from "./rules.ts";
import { readAnswer } from "./verifier/parse-answer.ts";

const STRICT = { ...GUIDED_RULES, end_after_failures: 2 };
const RUNS = cases(3_000, 60_000);
const CLASSES: readonly unknown[] = [
  null,
  ...SQL_ERROR_CLASSES,
  "repeat",
  "bad_action",
  "episode_done",
  "unknown_table",
];

const PIECES =
  `DESCRIBE: SAMPLE: QUERY: ANSWER: describe answer the is: Action: action_type= <think> </think> \`\`\` \`\`\`sql ** * _ > # - 1. 2) • | |---| , ; : = .
   ( ) [ ] { } " ' '' "" “ ” ‘ ’ null NULL None true 3 3.0 -1 1,234 1e999 0x1f customers orders group oslo Oslo Ada SELECT * FROM WHERE UNION ALL WITH
   @last @LAST \`@last\` last result RECURSIVE count(*) name LIKE GLOB '%a%' printf('%.16000c','x') group_concat(name) hex( upper( replace( date('now') x'6e6f7700' char(0) || AS JOIN
   ORDER BY LIMIT 5 é 🙂 \u202e \ufeff \u0000 \ud800 \\ \\n \\" {"action_type":"QUERY","argument":"SELECT`.split(/\s+/);
const separator = fc.constantFrom("", " ", "\n", "\t", "\r\n", "  ");

const text = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .array(fc.tuple(fc.constantFrom(...PIECES), separator), { maxLength: 14 })
      .map((parts) => parts.map((part) => part.join("")).join("")),
  },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 60 }) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom(...PIECES), separator, fc.constantFrom(10, 300, 3000))
      .map(([piece, space, count]) => (piece + space).repeat(count).slice(0, MAX_ARGUMENT_LENGTH + 50)),
  },
);
const turn = fc.oneof(
  { weight: 3, arbitrary: text.map((written) => parseAction(written).action) },
  { weight: 3, arbitrary: fc.record({ action_type: fc.constantFrom(...ACTION_TYPES), argument: text }) },
  {
    weight: 2,
    arbitrary: text.map((end) => ({ action_type: "QUERY" as const, argument: `SELECT name FROM customers ${end}` })),
  },
  { weight: 1, arbitrary: fc.anything().map((value) => value as never) },
);

test(`${RUNS} episodes of hostile actions: no throw, bounded results, known errors`, () => {
  const data = shopDataSet();
  const [plain, guided, again] = [DEFAULT_RULES, STRICT, STRICT].map(
    (rules) => new SQLEnvironment(data, { step_budget: 4, ...rules }),
  );
  let worked = 0;
  fc.assert(
    fc.property(fc.nat(data.questions.length - 1), fc.array(turn, { minLength: 1, maxLength: 4 }), (index, turns) => {
      const isGuided = turns.length % 2 === 0;
      const env = (isGuided ? guided : plain)!;
      if (isGuided) again!.reset({ question_id: data.questions[index]!.question_id });
      env.reset({ question_id: data.questions[index]!.question_id });
      for (const action of turns) {
        const { result, error, error_class, action_history, reward } = env.step(action);
        if (error_class === null) worked++;
        expect(CLASSES).toContain(error_class);
        expect(result.length).toBeLessThan(100_000);
        expect((error ?? "").length).toBeLessThan(MAX_ARGUMENT_LENGTH + 1000);
        expect(action_history.at(-1)!.length).toBeLessThan(300);
        expect(reward === null || Math.abs(reward) <= 2).toBe(true);
        if (isGuided) again!.step(action);
      }
      if (isGuided) expect(again!.outcome).toEqual(env.outcome);
    }),
    { numRuns: RUNS, seed: 20261116 },
  );
  expect(worked).toBeGreaterThan(RUNS / 10);
}, 600_000);

test(`${RUNS} hostile answers: no throw, and no parse has more cells than were written`, () => {
  fc.assert(
    fc.property(text, fc.constantFrom(["x"], ["name", "age"]), (answer, columns) => {
      for (const reading of readAnswer(answer, columns)) {
        const characters = reading.flat().reduce((sum, cell) => sum + cell.text.length, 0);
        if (characters > 2 * MAX_ARGUMENT_LENGTH) throw new Error(`a reading of ${characters} characters`);
      }
    }),
    { numRuns: RUNS, seed: 7 },
  );
}, 600_000);
