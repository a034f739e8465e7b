// A session's replies without sockets or threads: shapes of errors, text actions, crashes that must not become replies.
import { expect, test } from "vitest";
import { smallDataSet } from "../../../test/helpers/small-data.ts";
import { SqlEnvError } from "../../errors.ts";
import { SQLEnvironment } from "../../gym/env/index.ts";
import { answerHttp } from "./http-session.ts";
import { Session } from "./session.ts";

const data = await smallDataSet();
const session = () => new Session("s", new SQLEnvironment(data));
const ask = (to: Session, message: object) => JSON.parse(to.frame(JSON.stringify(message)).text!);

test("validation errors name type, location, input and what is expected", () => {
  const { data: said } = ask(session(), { type: "step", data: { action_type: "DROP", argument: 3, more: 1 } });
  expect(said).toMatchObject({ message: "Invalid message", code: "VALIDATION_ERROR" });
  expect(said.errors).toEqual([
    {
      type: "literal_error",
      loc: ["action_type"],
      msg: "Input should be 'DESCRIBE', 'SAMPLE', 'QUERY' or 'ANSWER'",
      input: "DROP",
      ctx: { expected: "'DESCRIBE', 'SAMPLE', 'QUERY' or 'ANSWER'" },
    },
    { type: "string_type", loc: ["argument"], msg: "Input should be a valid string", input: 3 },
    { type: "extra_forbidden", loc: ["more"], msg: "Extra inputs are not permitted", input: null },
  ]);
});

test("a step may be a model's text", () => {
  const one = session();
  one.reset({ question_id: data.questions[0]!.question_id });
  const { data: step } = ask(one, { type: "step", data: { text: "I think\nQUERY: SELECT 7" } });
  expect(step.observation.result).toBe("7\n7");
  expect(ask(one, { type: "step", data: { text: 7 } }).data.errors[0].type).toBe("string_type");
});

test("with text actions, what is not an action lacks a text, and typed actions still work", () => {
  const one = new Session("s", new SQLEnvironment(data), { textActions: true });
  one.reset({ question_id: data.questions[0]!.question_id });
  const { data: said } = ask(one, { type: "step", data: { message: "QUERY: SELECT 7" } });
  expect(said.errors.map(({ type, loc }: { type: string; loc: string[] }) => [type, ...loc])).toEqual([
    ["missing", "text"],
    ["extra_forbidden", "message"],
  ]);
  const typed = ask(one, { type: "step", data: { action_type: "QUERY", argument: "SELECT 7" } });
  expect(typed.data.observation.result).toBe("7\n7");
});

test("a refused reset leaves the running episode unchanged", () => {
  const one = session();
  one.reset({ episode_id: "kept" });
  one.step({ action_type: "QUERY", argument: "SELECT 1" });
  expect(ask(one, { type: "reset", data: { question_id: "nope", episode_id: "lost" } }).data.code).toBe(
    "EXECUTION_ERROR",
  );
  expect(one.state).toMatchObject({ episode_id: "kept", step_count: 1 });
});

test("the state before an episode has no rewards", () => {
  expect(session().state).toEqual({
    episode_id: null,
    step_count: 0,
    question_id: null,
    step_budget: 10,
    rules: "env-1",
    correctness: null,
    progress: null,
    operational: null,
    done_reason: null,
  });
});

test("a crash of SQLite is rethrown by every entry point: its thread must end", () => {
  const crash = new SqlEnvError("sqlite_crashed", { what: "SQLite crashed" });
  const env = new SQLEnvironment(data);
  env.reset({ seed: 1 });
  const crashing = new Proxy(env, {
    get: (target, key) => {
      if (key === "step") throw crash;
      const value = Reflect.get(target, key, target) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const one = new Session("s", crashing);
  one.reset();
  const action = { action_type: "QUERY", argument: "SELECT 1" };
  const call = { name: "query", arguments: { sql: "SELECT 1" } };
  expect(() => ask(one, { type: "step", data: action })).toThrow(crash);
  expect(() =>
    ask(one, { type: "step", data: { type: "call_tool", tool_name: "query", arguments: { sql: "x" } } }),
  ).toThrow(crash);
  expect(() => one.rpc({ method: "tools/call", params: call, id: 1 })).toThrow(crash);
  expect(() => answerHttp(one, "step", JSON.stringify({ action }))).toThrow(crash);
});
