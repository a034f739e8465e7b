// The environment for programs in any language: JSON messages on stdin, JSON replies on stdout, one per line.
//   {"reset": {"question_id" | "split", "index" | "seed"}}        starts an episode; the reply is its first observation
//   {"action_type": "QUERY", "argument": "SELECT …"}              takes a step; the reply is the observation
//   {"close": true}                                               ends, as does the end of input
// An invalid message is answered with {"error": {code, what, value, remedy}}, and the session continues. Empty lines are skipped.
import { once } from "node:events";
import { z } from "zod";
import { messageOf, SqlEnvError, UsageError } from "../../../errors.ts";
import { SPLITS, type Split } from "../../../gym/data/index.ts";
import { actionSchema, type ResetOptions, type SQLEnvironment } from "../../../gym/env/index.ts";
import { type Line, readLines } from "../terminal/read-lines.ts";

/** Maximum bytes of a line; an action's argument may have 20,000 characters. */
export const MAX_LINE_BYTES = 1_000_000;

const resetSchema = z.strictObject({
  question_id: z.string().optional(),
  split: z.enum(SPLITS).optional(),
  index: z.int().min(0).optional(),
  seed: z.int().optional(),
});

const SHAPES = 'send {"reset": {…}}, {"action_type": …, "argument": …} or {"close": true}';

export interface StdioOptions {
  /** Default split of resets. */
  readonly split?: Split | undefined;
}

/** Serves one environment on stdin and stdout until it is closed. */
export async function playStdio(env: SQLEnvironment, { split }: StdioOptions = {}): Promise<void> {
  for await (const line of readLines(process.stdin as AsyncIterable<Uint8Array>, MAX_LINE_BYTES)) {
    if (line !== null && line.trim() === "") continue;
    const reply = answer(env, line, split);
    if (reply === "close") break;
    // Wait for a slow reader, so that replies do not pile up in memory.
    if (!process.stdout.write(`${JSON.stringify(reply)}\n`)) await once(process.stdout, "drain");
  }
  env.close();
  process.stdin.destroy();
}

/** The reply to one line. Never throws. */
export function answer(env: SQLEnvironment, line: Line, split?: Split): object | "close" {
  try {
    if (line === null)
      throw refused("line_too_long", `the line is longer than ${MAX_LINE_BYTES} bytes`, "send a shorter one");
    const message = parse(line);
    if ("close" in message && message.close === true && Object.keys(message).length === 1) return "close";
    if ("reset" in message) return env.reset(readReset(message, split));
    const action = actionSchema.safeParse(message);
    if (!action.success) throw refused("bad_message", `not a message: ${firstIssue(action.error)}`, SHAPES);
    if (env.state.question_id === null)
      throw refused("no_episode", "no episode is running", 'send {"reset": {}} first');
    return env.step(action.data);
  } catch (error) {
    const { code, what, value, remedy } =
      error instanceof SqlEnvError
        ? error
        : { code: "internal", what: messageOf(error), value: undefined, remedy: undefined };
    return { error: { code, what, value, remedy } };
  }
}

function parse(line: string): Record<string, unknown> {
  let message: unknown;
  try {
    message = JSON.parse(line);
  } catch {
    throw refused("bad_json", "the line is not JSON", SHAPES);
  }
  if (typeof message === "object" && message !== null && !Array.isArray(message))
    return message as Record<string, unknown>;
  throw refused("bad_message", "the message is not an object", SHAPES);
}

function readReset(message: Record<string, unknown>, split: Split | undefined): ResetOptions {
  const parsed = resetSchema.safeParse(message.reset);
  if (!parsed.success || Object.keys(message).length > 1) {
    const what = parsed.success
      ? "reset must be the only key of its message"
      : `not a reset: ${firstIssue(parsed.error)}`;
    throw refused("bad_message", what, "give question_id, or split and index, or seed");
  }
  const { question_id, index, seed } = parsed.data;
  if (question_id !== undefined && (index !== undefined || seed !== undefined)) {
    throw new UsageError({ what: "question_id, index and seed are mutually exclusive", remedy: "send one of them" });
  }
  const options = { question_id, split: parsed.data.split ?? split, index, seed };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function refused(code: string, what: string, remedy: string): SqlEnvError {
  return new SqlEnvError(code, { what, remedy });
}

function firstIssue({ issues }: z.ZodError): string {
  const issue = issues[0];
  return issue ? `${issue.path.join(".") || "message"}: ${issue.message}` : "invalid";
}
