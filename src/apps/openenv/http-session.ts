// POST /reset, POST /step and GET /state, on the session that a client's plain HTTP requests share.
import { messageOf, UsageError } from "../../errors.ts";
import { parseBody } from "./json-body.ts";
import { type Envelope, resetRequestSchema, stepRequestSchema } from "./schemas.ts";
import type { Session } from "./session.ts";
import { checked, InvalidMessage, rethrowCrash } from "./validation-errors.ts";

export interface HttpReply {
  readonly status: number;
  /** JSON; for status 500 the message for the log and the header. */
  readonly text: string;
}

/** Answers one of the three requests. Throws only if SQLite crashes. */
export function answerHttp(session: Session, verb: "reset" | "step" | "state", body: string): HttpReply {
  try {
    switch (verb) {
      case "reset":
        return observed(
          session.reset(checked(resetRequestSchema, body.trim() === "" ? {} : parseBody(body), ["body"])),
        );
      case "step": {
        return observed(session.step(checked(stepRequestSchema, parseBody(body), ["body"]).action));
      }
      case "state":
        return ok(session.state);
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

/** OpenEnv's HTTP replies always have the key `metadata`; its socket messages leave it out when it is null. */
function observed(envelope: Envelope): HttpReply {
  return ok({ ...envelope, metadata: null });
}

function ok(value: object): HttpReply {
  return { status: 200, text: JSON.stringify(value) };
}
