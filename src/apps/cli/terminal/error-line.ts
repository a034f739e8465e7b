// The line printed when a command fails, `error: what: value; remedy (code)`, and the exit code.
import { CommanderError } from "commander";
import { messageOf, SqlEnvError, UsageError } from "../../../errors.ts";
import { oneLine } from "../../../gym/one-line.ts";
import { Interruption, signalExitCode } from "./interrupt.ts";
import { asTyped } from "./invocation.ts";
import { printable } from "./output.ts";

export const [FAILED, WRONG_USE] = [1, 2];

/** V8 reserves 10 GiB of address space for each WebAssembly memory, however little of it is used. */
const NO_ADDRESS_SPACE = /could not allocate memory|Cannot allocate Wasm memory/;

export interface Explanation {
  /** Empty when nothing is to be printed, as after --help. */
  readonly line: string;
  readonly exitCode: number;
}

/** The line and exit code for anything a command threw. */
export function explain(error: unknown): Explanation {
  if (error instanceof CommanderError) return explainUse(error);
  if (error instanceof SqlEnvError) {
    const exitCode = error instanceof UsageError ? WRONG_USE : FAILED;
    return { line: `error: ${shown(error.message)} (${error.code})`, exitCode };
  }
  if (error instanceof Error && error.name === "AbortError") {
    const exitCode = error instanceof Interruption ? error.exitCode : signalExitCode("SIGINT");
    return { line: "interrupted", exitCode };
  }
  if (error instanceof Error && NO_ADDRESS_SPACE.test(error.message)) {
    const remedy =
      "raise the limit (ulimit -v), or set NODE_OPTIONS=--disable-wasm-trap-handler, which is slower but reserves far less";
    return {
      line: `error: no address space for WebAssembly: ${oneLine(error.message, " ")}; ${remedy} (out_of_memory)`,
      exitCode: FAILED,
    };
  }
  const { code = "internal", path } = (error ?? {}) as Partial<NodeJS.ErrnoException>;
  const words = path === undefined ? undefined : SYSTEM_ERRORS[code];
  return { line: `error: ${shown(words ? `${words}: ${path}` : messageOf(error))} (${code})`, exitCode: FAILED };
}

/** Messages for system errors about a path that nothing else has explained. */
const SYSTEM_ERRORS: Readonly<Record<string, string>> = {
  ENOENT: "no such file or folder",
  ENOTDIR: "a part of the path is a file, not a folder",
  EISDIR: "this is a folder, not a file",
  EACCES: "no permission to read or write",
  EPERM: "no permission to read or write",
  EROFS: "the file system is read-only",
  ENOSPC: "no space left on the disk",
};

function explainUse({ code, exitCode, message }: CommanderError): Explanation {
  if (exitCode === 0) return { line: "", exitCode: 0 };
  if (code === "commander.help") return { line: "", exitCode: WRONG_USE }; // no command was given, and the help was shown
  const said = message.replace(/^error: /, "").replace(/\n\(Did you mean (.*?)\?\)$/s, "; did you mean $1?");
  const remedy = said.includes("did you mean") ? "" : "; see --help";
  return { line: `error: ${shown(said)}${remedy} (usage)`, exitCode: WRONG_USE };
}

function shown(text: string): string {
  return asTyped(printable(oneLine(text, " ")));
}
