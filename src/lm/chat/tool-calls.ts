// Separates a reply's text from its tool calls, in the format of Qwen and Hermes: a JSON object between <tool_call> tags.
import { overlap } from "./stop-strings.ts";

/** A call that the model made. */
export interface ParsedCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** What new text of a reply contains. */
export interface ReplyPart {
  readonly content: string;
  readonly calls: readonly ParsedCall[];
}

/** Valid function names. Requests are held to them too, so that a client can send any call back. */
export const FUNCTION_NAME = /^[\w.-]{1,64}$/;

const BEGIN = "<tool_call>";
const END = "</tool_call>";

/** Reads one reply as it is generated. A call that cannot be parsed stays text. */
export class ToolCallReader {
  /** Text that may begin a tag, white space that a call may follow, or the call being written. */
  #held = "";
  #isCall = false;

  add(text: string): ReplyPart {
    this.#held += text;
    let content = "";
    const calls: ParsedCall[] = [];
    for (;;) {
      const tag = this.#isCall ? END : BEGIN;
      const at = this.#held.indexOf(tag);
      if (at < 0) break;
      const before = this.#held.slice(0, at);
      this.#held = this.#held.slice(at + tag.length);
      if (this.#isCall) {
        const call = parseCall(before);
        if (call) calls.push(call);
        else content += BEGIN + before + END;
      } else content += before.trimEnd();
      this.#isCall = !this.#isCall;
    }
    if (!this.#isCall) {
      const open = this.#held.slice(0, this.#held.length - overlap(this.#held, BEGIN));
      const shown = open.trimEnd();
      content += shown;
      this.#held = this.#held.slice(shown.length);
    }
    return { content, calls };
  }

  /** What was held back at the end of a reply; models often omit the last tag. `isWhole`: the reply was not truncated. */
  end(isWhole: boolean): ReplyPart {
    const held = this.#held;
    this.#held = "";
    if (!this.#isCall) return { content: isWhole && held.trim() === "" ? "" : held, calls: [] };
    const call = isWhole ? parseCall(held) : undefined;
    return call ? { content: "", calls: [call] } : { content: BEGIN + held, calls: [] };
  }
}

function parseCall(text: string): ParsedCall | undefined {
  const value = parseObject(text.trim()) ?? parseObject(withEscapes(text.trim()));
  if (!value || typeof value.name !== "string" || !FUNCTION_NAME.test(value.name)) return undefined;
  const { name, arguments: given = {} } = value;
  const args = typeof given === "string" ? parseObject(given) : isObject(given) ? given : undefined;
  return args && { name, arguments: args };
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Escapes control characters inside strings: models write the line breaks of a statement as they are. */
function withEscapes(json: string): string {
  let isString = false;
  let escaped = "";
  for (let i = 0; i < json.length; i++) {
    const character = json[i]!;
    if (isString && character === "\\") escaped += character + (json[++i] ?? "");
    else {
      if (character === '"') isString = !isString;
      escaped += isString && character < " " ? JSON.stringify(character).slice(1, -1) : character;
    }
  }
  return escaped;
}
