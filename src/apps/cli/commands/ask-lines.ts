// Many questions one after another, with the model kept in memory: typed at a terminal, or as lines on stdin.
import { createInterface, type Interface } from "node:readline";
import { SqlEnvError, UsageError } from "../../../errors.ts";
import { explain, FAILED } from "../terminal/error-line.ts";
import { Interruption, signalExitCode, untilInterrupted } from "../terminal/interrupt.ts";
import { type Output, readableWidth, styled } from "../terminal/output.ts";
import { readLines } from "../terminal/read-lines.ts";
import { wrapText } from "../terminal/wrap.ts";
import type { AskedDatabase } from "./ask-data.ts";
import type { AskModel } from "./ask-model.ts";

/** Maximum bytes of a line; a question may have fewer characters. */
const MAX_LINE_BYTES = 100_000;
const REMEMBERED = 100; // questions that the arrow keys bring up again

/** Asks one question; prints everything about it. */
type Ask = (question: string, signal: AbortSignal) => Promise<void>;

/** Asks until the person leaves or the lines end. */
export async function askLines(ask: Ask, asked: AskedDatabase, model: AskModel, out: Output): Promise<void> {
  if (process.stdin.isTTY) await askPerson(ask, asked, model, out);
  else await askStdin(ask, out);
}

/** One question per line of stdin. A question that cannot be asked is reported, and the next one is asked. */
async function askStdin(ask: Ask, out: Output): Promise<void> {
  let asked = 0;
  for await (const line of readLines(process.stdin as AsyncIterable<Uint8Array>, MAX_LINE_BYTES)) {
    const question = line ?? "x".repeat(MAX_LINE_BYTES); // too long for the message that says so
    if (question.trim() === "") continue;
    if (asked++ > 0) out.line();
    out.data(styled("bold", wrapText(question.slice(0, 2_000).trim(), readableWidth())));
    try {
      await untilInterrupted((signal) => ask(question, signal));
    } catch (error) {
      if (!(error instanceof SqlEnvError)) throw error;
      report(error, question, out);
    }
  }
  if (asked > 0) return;
  throw new UsageError({
    what: "no question",
    remedy: 'ask one: sqlenv ask --data my.sqlite "How many orders are open?"',
  });
}

/** Says why a question was not answered. */
function report(error: SqlEnvError, question: string, out: Output): void {
  const { code, what, value, remedy } = error;
  process.stderr.write(`${explain(error).line}\n`);
  out.result({ question: question.slice(0, 2_000), answer: null, error: { code, what, value, remedy } });
  process.exitCode = FAILED;
}

async function askPerson(ask: Ask, { name, databases }: AskedDatabase, model: AskModel, out: Output): Promise<void> {
  const tables = databases.get(name).tables.map((table) => table.name);
  const shown = `${tables.slice(0, 30).join(", ")}${tables.length > 30 ? ` and ${tables.length - 30} more` : ""}`;
  out.data(wrapText(`${name}: ${shown}`, readableWidth()));
  const keys = `asking ${model.name}; an empty line or Ctrl-D leaves, Ctrl-C stops a question`;
  out.data(styled("dim", wrapText(keys, readableWidth())));
  const person = new Person(out);
  try {
    for (let question = await person.question(); question !== null; question = await person.question()) {
      const text = question;
      try {
        await untilInterrupted((signal) => ask(text, signal));
      } catch (error) {
        if (error instanceof Interruption) {
          out.line(styled("yellow", "  stopped"));
          person.forget();
        } else if (error instanceof SqlEnvError) out.data(styled("red", wrapText(error.message, readableWidth(), 2)));
        else throw error;
      }
      process.exitCode = 0; // a person has seen whether there was an answer
    }
  } finally {
    person.close();
  }
  if (person.interrupted) process.exitCode = signalExitCode("SIGINT");
}

/** The lines that a person types or pastes, with a history. While a question is asked, Ctrl-C is a signal. */
class Person {
  interrupted = false;
  readonly #out: Output;
  readonly #lines: Interface;
  readonly #typed: string[] = [];
  #closed = false;
  #notify = () => {};

  constructor(out: Output) {
    this.#out = out;
    const output = out.json || !process.stdout.isTTY ? process.stderr : process.stdout;
    const prompt = styled("bold", "? ");
    this.#lines = createInterface({ input: process.stdin, output, terminal: true, historySize: REMEMBERED, prompt });
    this.#lines.on("line", (line) => {
      this.#typed.push(line);
      this.#notify();
    });
    this.#lines.on("SIGINT", () => {
      this.interrupted = true;
      this.#lines.close();
    });
    this.#lines.on("close", () => {
      if (!this.#closed) output.write("\n");
      this.#closed = true;
      this.#notify();
    });
    this.#lines.pause();
  }

  /** The next line; null if the person leaves. */
  async question(): Promise<string | null> {
    this.#out.line();
    if (this.#typed[0] !== undefined) this.#out.data(wrapText(`? ${this.#typed[0]}`, readableWidth()));
    else if (!this.#closed) {
      process.stdin.setRawMode?.(true);
      this.#lines.prompt();
      await new Promise<void>((resolve) => {
        this.#notify = resolve;
      });
      this.#lines.pause();
      process.stdin.setRawMode?.(false); // else Ctrl-C would be a key that nobody reads
    }
    const line = this.#typed.shift();
    return line === undefined || line.trim() === "" ? null : line;
  }

  /** Drops lines that were pasted and not asked yet. */
  forget(): void {
    this.#typed.length = 0;
  }

  close(): void {
    this.#closed = true;
    this.#lines.close();
  }
}
