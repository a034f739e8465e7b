// The Task API: lists the questions without revealing answers.
import { messageOf } from "../../errors.ts";
import { type QuestionRecord, SPLITS } from "../../gym/data/index.ts";
import { parseJson } from "./json.ts";
import { splitOf } from "./schemas.ts";

/** A question as a task: no gold, and not the tables the gold query reads. */
export interface Task {
  readonly question_id: string;
  readonly question: string;
  readonly database_name: string;
  readonly difficulty: string;
  readonly answer_type: string;
  readonly split: string;
  /** `reset` with this split and index starts it. */
  readonly index: number;
}

export interface TaskReply {
  readonly status: number;
  readonly body: unknown;
}

const ENVIRONMENT = "sqlenv";

/** Answers the Task API's paths; undefined for others. */
export function answerTasks(
  method: string,
  path: string,
  body: string,
  questions: readonly QuestionRecord[],
): TaskReply | undefined {
  if (path === "/list_environments") return method === "GET" ? ok([ENVIRONMENT]) : notAllowed();
  const [, name, verb, ...rest] = path.split("/");
  if (!verb || rest.length > 0 || !VERBS.has(verb)) return undefined;
  if (name !== ENVIRONMENT) return refused(404, `Environment not found: ${name}`);
  if (method !== (verb === "splits" ? "GET" : "POST")) return notAllowed();
  if (verb === "splits")
    return ok(SPLITS.map((split) => ({ name: split, type: split === "train" ? split : "validation" })));
  try {
    return answer(verb, read(body), questions);
  } catch (error) {
    return refused(400, messageOf(error));
  }
}

const VERBS = new Set(["splits", "tasks", "num_tasks", "task", "task_range"]);

function answer(verb: string, request: Record<string, unknown>, questions: readonly QuestionRecord[]): TaskReply {
  const split = splitOf(String(request.split ?? ""));
  const tasks = questions.filter((question) => question.split === split).map(taskOf);
  switch (verb) {
    case "tasks":
      return ok({ tasks, env_name: ENVIRONMENT });
    case "num_tasks":
      return ok({ num_tasks: tasks.length });
    case "task": {
      const task = tasks[place(request.index, -1, tasks.length - 1)];
      return task ? ok({ task }) : refused(400, `index out of range: ${request.index}; use 0 to ${tasks.length - 1}`);
    }
    default: {
      const [start, stop] = [place(request.start, 0, tasks.length), place(request.stop, tasks.length, tasks.length)];
      if (start < 0 || stop < 0) return refused(400, `range out of bounds; use 0 to ${tasks.length}`);
      return ok({ tasks: tasks.slice(start, stop) });
    }
  }
}

/** An integer from 0 to `max`; -1 for anything else. */
function place(value: unknown, otherwise: number, max: number): number {
  if (value === undefined || value === null) return otherwise;
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= max ? (value as number) : -1;
}

function taskOf(
  { question_id, question_text, database_name, difficulty, answer_type, split }: QuestionRecord,
  index: number,
): Task {
  return { question_id, question: question_text, database_name, difficulty, answer_type, split, index };
}

function read(body: string): Record<string, unknown> {
  const value: unknown = body.trim() === "" ? {} : parseJson(body);
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function ok(body: unknown): TaskReply {
  return { status: 200, body };
}

function refused(status: number, detail: string): TaskReply {
  return { status, body: { detail } };
}

function notAllowed(): TaskReply {
  return refused(405, "Method Not Allowed");
}
