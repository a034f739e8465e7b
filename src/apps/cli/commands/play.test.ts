import { beforeAll, describe, expect, test } from "vitest";
import { smallDataSet } from "../../../../test/helpers/small-data.ts";
import { SQLEnvironment } from "../../../gym/env/index.ts";
import { drawBox, drawRows } from "../terminal/boxed-table.ts";
import { width } from "../terminal/output.ts";
import { readLines } from "../terminal/read-lines.ts";
import { wrapText } from "../terminal/wrap.ts";
import { readLine } from "./play-input.ts";
import { answer } from "./play-stdio.ts";

describe("drawBox", () => {
  test("draws a table, numbers to the right", () => {
    const rows = [
      ["lamp", "20.5"],
      ["vase", "NULL"],
    ];
    expect(drawBox(["name", "price"], rows, { maxWidth: 80, indent: 0 }).split("\n")).toEqual([
      "┌──────┬───────┐",
      "│ name │ price │",
      "├──────┼───────┤",
      "│ lamp │  20.5 │",
      "│ vase │  NULL │",
      "└──────┴───────┘",
    ]);
  });

  test.each([30, 40, 60, 80])("fits any table into %d characters, and says what is omitted", (maxWidth) => {
    const head = Array.from({ length: 16 }, (_, i) => `a long column name ${i}`);
    const box = drawBox(head, [head.map(() => "日本語のとても長い値 and more".repeat(3))], { maxWidth });
    for (const line of box.split("\n")) expect(width(line)).toBeLessThanOrEqual(maxWidth);
    expect(new Set(box.split("\n").slice(0, -1).map(width)).size).toBe(1);
    expect(box).toMatch(/more columns do not fit/);
  });

  test("narrows columns of equal width alike", () => {
    const [, head] = drawBox(["a".repeat(20), "b".repeat(20), "id"], [], { maxWidth: 40, indent: 0 }).split("\n");
    expect(head).toBe(`│ ${"a".repeat(13)}… │ ${"b".repeat(13)}… │ id │`);
  });

  test("neutralizes control characters", () => {
    expect(drawBox(["a"], [["\x1b[2J"]], { maxWidth: 40 })).not.toContain("\x1b");
  });
});

describe("drawRows", () => {
  const head = Array.from({ length: 11 }, (_, i) => `column_${i}`);
  const long = ["the_name_of_a_column", ...head.slice(1)];
  const row = head.map((name) => `value of ${name}`);

  test("turns a few rows that do not fit: one line per column, with whole names", () => {
    const lines = drawRows(head, [row, row], { maxWidth: 80 }).split("\n");
    expect(lines).toHaveLength(4 + head.length);
    expect(lines[1]).toMatch(/│ column +│ row 1 +│ row 2 +│/);
    expect(lines[3]).toMatch(/│ column_0 +│ value of column_0 +│ value of column_0 +│/);
    for (const line of lines) expect(width(line)).toBeLessThanOrEqual(80);
  });

  test("keeps the names whole, which are needed to query, and cuts the values", () => {
    const drawn = drawRows(
      long,
      Array.from({ length: 5 }, () => row),
      { maxWidth: 80 },
    );
    expect(drawn).toContain("│ the_name_of_a_column │ value");
    for (const line of drawn.split("\n")) expect(width(line)).toBeLessThanOrEqual(80);
  });

  test.each([
    ["rows that fit", head.slice(0, 3), [row.slice(0, 3)], 80],
    ["many rows", head, Array.from({ length: 6 }, () => row), 80],
    ["no rows", head, [], 80],
    ["a wide terminal", head, [row], 240],
  ])("leaves %s as they are", (_, names, rows, maxWidth) => {
    expect(drawRows(names, rows, { maxWidth })).toBe(drawBox(names, rows, { maxWidth }));
  });
});

test("wrapText breaks at spaces", () => {
  expect(wrapText("one two three four", 11, 2)).toBe("  one two\n  three\n  four");
});

describe("input of a person", () => {
  const said = (line: string) => readLine(line, "maker, product");
  const action = (action_type: string, argument: string) => ({ kind: "action", action: { action_type, argument } });

  test.each([
    ["d product", action("DESCRIBE", "product")],
    ["Describe: product", action("DESCRIBE", "product")],
    ["s maker", action("SAMPLE", "maker")],
    ["q select 1", action("QUERY", "select 1")],
    ["select 1", action("QUERY", "select 1")],
    ["WITH x AS (SELECT 1) SELECT * FROM x", action("QUERY", "WITH x AS (SELECT 1) SELECT * FROM x")],
    ["a 5", action("ANSWER", "5")],
    ["ANSWER: a, b", action("ANSWER", "a, b")],
    ["tables", { kind: "tables" }],
    ["?", { kind: "help" }],
    ["QUIT", { kind: "quit" }],
    ["   ", { kind: "nothing" }],
  ])("%s", (line, meaning) => {
    expect(said(line)).toEqual(meaning);
  });

  test.each([
    ["d", /which table\? Choose from maker, product/],
    ["a", /answer what/],
    ["product", /d product describes it/],
    ["selct 1", /did you mean select/],
    ["42", /type help/],
  ])("%s costs nothing", (line, message) => {
    expect(said(line)).toMatchObject({ kind: "unclear", message: expect.stringMatching(message) });
  });
});

describe("readLines", () => {
  const linesOf = async (chunks: readonly string[], maxBytes = 10) => {
    const lines = [];
    const encoder = new TextEncoder();
    async function* stream() {
      for (const chunk of chunks) yield encoder.encode(chunk);
    }
    for await (const line of readLines(stream(), maxBytes)) lines.push(line);
    return lines;
  };

  test("joins chunks and splits lines; the last needs no newline", async () => {
    expect(await linesOf(["ab", "c\r\nd", "\n\nef"])).toEqual(["abc", "d", "", "ef"]);
    expect(await linesOf(["é", "\n"])).toEqual(["é"]);
    expect(await linesOf([])).toEqual([]);
  });

  test("skips lines that are too long and continues", async () => {
    expect(await linesOf(["0123456789\n", "x".repeat(11), "x".repeat(50), "\nok\n"])).toEqual([
      "0123456789",
      null,
      "ok",
    ]);
    expect(await linesOf(["x".repeat(11)])).toEqual([null]);
  });
});

describe("JSON messages of a program", () => {
  let env: SQLEnvironment;
  beforeAll(async () => {
    env = new SQLEnvironment(await smallDataSet());
  });
  const send = (message: unknown) => answer(env, typeof message === "string" ? message : JSON.stringify(message));

  test("a step before a reset is refused, then an episode runs", () => {
    const step = { action_type: "QUERY", argument: "SELECT count(*) FROM product" };
    expect(send(step)).toMatchObject({ error: { code: "no_episode", remedy: expect.stringContaining("reset") } });
    expect(send({ reset: { question_id: "shop_train_000" } })).toMatchObject({ step_count: 0, done: false });
    expect(send(step)).toMatchObject({ result: "count(*)\n5", reward: expect.any(Number) });
    expect(send({ action_type: "ANSWER", argument: "5" })).toMatchObject({
      done: true,
      reward_breakdown: { correctness: 1 },
    });
    expect(send({ reset: { split: "eval", index: 0 } })).toMatchObject({ step_count: 0 });
    expect(send({ reset: {} })).toMatchObject({ step_count: 0 });
    expect(send({ close: true })).toBe("close");
  });

  test.each([
    ["not JSON", "DESCRIBE: product", "bad_json"],
    ["a list", "[]", "bad_message"],
    ["null", "null", "bad_message"],
    ["a string", '"reset"', "bad_message"],
    ["nothing in it", {}, "bad_message"],
    ["an unknown action", { action_type: "DROP", argument: "x" }, "bad_message"],
    ["an argument that is no text", { action_type: "QUERY", argument: 5 }, "bad_message"],
    ["an unknown key of reset", { reset: { id: 5 } }, "bad_message"],
    ["a reset and more", { reset: {}, action_type: "QUERY", argument: "SELECT 1" }, "bad_message"],
    ["reset as a text", { reset: "now" }, "bad_message"],
    ["a negative index", { reset: { index: -1 } }, "bad_message"],
    ["an index beyond the end", { reset: { index: 10_000 } }, "usage"],
    ["an unknown question", { reset: { question_id: "shop_train_00" } }, "usage"],
    ["two ways to choose", { reset: { question_id: "shop_train_000", seed: 1 } }, "usage"],
    ["close with another value", { close: 1 }, "bad_message"],
    ["deep nesting", "[".repeat(100_000), "bad_json"],
    ["a proto key", '{"__proto__": {"reset": {}}}', "bad_message"],
  ])("%s is an error object", (_, message, code) => {
    const reply = send(message) as { error: { code: string; what: string } };
    expect(reply.error.code).toBe(code);
    expect(reply.error.what).not.toBe("");
    expect(JSON.stringify(reply).length).toBeLessThan(1_000);
  });

  test("a line that was too long is an error object", () => {
    expect(answer(env, null)).toMatchObject({ error: { code: "line_too_long" } });
  });
});
