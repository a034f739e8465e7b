// POST /reset, POST /step and GET /state, on the session that a client's plain HTTP requests share.
import { messageOf, UsageError } from "../../errors.ts";
import { parseJson } from "./json.ts";
import { resetRequestSchema, stepRequestSchema } from "./schemas.ts";
import type { Session } from "./session.ts";
import { checked, type ErrorDetail, InvalidMessage, jsonErrorDetail, rethrowCrash } from "./validation-errors.ts";

export interface HttpReply {
  readonly status: number;
  /** JSON; for status 500 the message for the log and the header. */
  readonly text: string;
}

/** Answers one of the three. Throws only if SQLite crashes. */
export function answerHttp(session: Session, verb: "reset" | "step" | "state", body: string): HttpReply {
  try {
    switch (verb) {
      case "reset":
        return ok(session.reset(checked(resetRequestSchema, body.trim() === "" ? {} : parse(body), ["body"])));
      case "step": {
        if (body.trim() === "") throw new InvalidMessage([missing("body")]);
        return ok(session.step(checked(stepRequestSchema, parse(body), ["body"]).action));
      }
      case "state": {
        const { episode_id, step_count } = session.state;
        return ok({ episode_id, step_count });
      }
    }
  } catch (error) {
    rethrowCrash(error);
    if (error instanceof InvalidMessage) return { status: 422, text: JSON.stringify({ detail: error.details }) };
    if (error instanceof UsageError && verb === "reset") {
      const detail = [{ type: "value_error", loc: ["body"], msg: error.message, input: error.value ?? null }];
      return { status: 422, text: JSON.stringify({ detail }) };
    }
    return { status: 500, text: messageOf(error) };
  }
}

function ok(value: object): HttpReply {
  return { status: 200, text: JSON.stringify(value) };
}

function parse(body: string): unknown {
  try {
    return parseJson(body);
  } catch (error) {
    throw new InvalidMessage([jsonErrorDetail(messageOf(error))]);
  }
}

function missing(where: string): ErrorDetail {
  return { type: "missing", loc: [where], msg: "Field required", input: null };
}
