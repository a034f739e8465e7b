import { once } from "node:events";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { smallDataSet } from "../../../../test/helpers/small-data.ts";
import { UsageError } from "../../../errors.ts";
import { DEFAULT_RULES } from "../../../gym/env/index.ts";
import { keywordPlayer } from "../../../gym/players/index.ts";
import { output } from "../terminal/output.ts";
import { askLines } from "./ask-lines.ts";

const { databases } = await smallDataSet();
const asked = { source: "small", name: "shop", databases, file: undefined };
const player = keywordPlayer();
const model = {
  name: "keyword",
  player,
  sampler: player,
  samples: 0,
  rules: DEFAULT_RULES,
  step_budget: 5,
  close: async () => {},
};

/** A terminal's keyboard; `raw` is whether Ctrl-C is a key. */
class Keyboard extends PassThrough {
  readonly isTTY = true;
  raw = false;
  setRawMode(raw: boolean): this {
    this.raw = raw;
    this.emit(raw ? "prompted" : "asking");
    return this;
  }
}

const real = process.stdin;
let keyboard: Keyboard;
let written: string;
beforeEach(() => {
  keyboard = new Keyboard();
  written = "";
  Object.defineProperty(process, "stdin", { value: keyboard });
  for (const stream of [process.stdout, process.stderr])
    vi.spyOn(stream, "write").mockImplementation((text) => {
      written += String(text);
      return true;
    });
});
afterEach(() => {
  vi.restoreAllMocks();
  Object.defineProperty(process, "stdin", { value: real });
  process.exitCode = undefined;
});

test("asks what is typed or pasted, one question after another, until an empty line", async () => {
  const questions: string[] = [];
  const done = askLines(
    async (question) => {
      questions.push(`${question} (raw: ${keyboard.raw})`);
      process.exitCode = 1; // no answer
    },
    asked,
    model,
    output(),
  );
  expect(written).toContain("shop: maker, product\n");
  keyboard.write("How many?\rWhich one?\r\r");
  await done;
  expect(questions).toEqual(["How many? (raw: false)", "Which one? (raw: false)"]);
  expect(written).toContain("\n? Which one?\n");
  expect(process.exitCode).toBe(0);
});

test("a question that cannot be asked is explained, and the next one asked", async () => {
  let count = 0;
  const done = askLines(
    async () => {
      if (++count === 1) throw new UsageError({ what: "too long" });
    },
    asked,
    model,
    output(),
  );
  keyboard.write("a\rb\r\r");
  await done;
  expect(count).toBe(2);
  expect(written).toContain("  too long\n");
});

test("Ctrl-C stops the question that runs and drops those that were pasted; at the prompt it leaves", async () => {
  const questions: string[] = [];
  const done = askLines(
    async (question, signal) => {
      questions.push(question);
      process.emit("SIGINT"); // as the terminal does while Ctrl-C is no key
      if (!signal.aborted) await once(signal, "abort");
      throw signal.reason;
    },
    asked,
    model,
    output(),
  );
  const again = once(keyboard, "prompted");
  keyboard.write("first\rsecond\r");
  await again;
  expect(written).toContain("  stopped\n");
  keyboard.write("\x03");
  await done;
  expect(questions).toEqual(["first"]);
  expect(process.exitCode).toBe(130);
});
