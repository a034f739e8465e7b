// A request's body as JSON; a missing or malformed one is a validation error, as in FastAPI.
import { messageOf } from "../../errors.ts";
import { parseJson } from "../../io/json.ts";
import { InvalidMessage, jsonErrorDetail } from "./validation-errors.ts";

/** Parses a body that must be there. Throws InvalidMessage. */
export function parseBody(body: string): unknown {
  if (body.trim() === "")
    throw new InvalidMessage([{ type: "missing", loc: ["body"], msg: "Field required", input: null }]);
  try {
    return parseJson(body);
  } catch (error) {
    throw new InvalidMessage([jsonErrorDetail(messageOf(error))]);
  }
}
