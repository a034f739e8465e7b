// The Task API: lists the questions without revealing answers.
import { z } from "zod";
import { messageOf } from "../../errors.ts";
import { type QuestionRecord, SPLITS } from "../../gym/data/index.ts";
import { parseBody } from "./json-body.ts";
import { splitOf } from "./schemas.ts";
import { checked, InvalidMessage, integer } from "./validation-errors.ts";

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
  if (method !== (verb === "splits" ? "GET" : "POST")) return notAllowed();
  try {
    const request =
      verb === "splits" ? { split: "" } : checked(requestSchemas[verb as Posted], parseBody(body), ["body"]);
    if (name!.toLowerCase() !== ENVIRONMENT) return refused(404, `unknown environment '${decodeURIComponent(name!)}'`);
    if (verb === "splits")
      return ok(SPLITS.map((split) => ({ name: split, type: split === "train" ? split : "validation" })));
    return answer(verb as Posted, request, questions);
  } catch (error) {
    return error instanceof InvalidMessage
      ? { status: 422, body: { detail: error.details } }
      : refused(400, messageOf(error));
  }
}

const split = z.string();
const bound = integer.nullish();
const requestSchemas = {
  tasks: z.strictObject({ split }),
  num_tasks: z.strictObject({ split }),
  task: z.strictObject({ split, index: integer }),
  task_range: z.strictObject({ split, start: bound, stop: bound }),
};
type Posted = keyof typeof requestSchemas;
const VERBS = new Set(["splits", ...Object.keys(requestSchemas)]);

interface TaskRequest {
  readonly split: string;
  readonly index?: number;
  readonly start?: number | null | undefined;
  readonly stop?: number | null | undefined;
}

function answer(verb: Posted, request: TaskRequest, questions: readonly QuestionRecord[]): TaskReply {
  const split = splitOf(request.split);
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
function place(value: number | null | undefined, otherwise: number, max: number): number {
  if (value === undefined || value === null) return otherwise;
  return value >= 0 && value <= max ? value : -1;
}

function taskOf(
  { question_id, question_text, database_name, difficulty, answer_type, split }: QuestionRecord,
  index: number,
): Task {
  return { question_id, question: question_text, database_name, difficulty, answer_type, split, index };
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
