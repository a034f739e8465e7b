// Standard output and error that can no longer be written: their reader has gone, their disk is full, the terminal is closed.
import { FAILED } from "./error-line.ts";

/** A stream that failed, with the system's code (EPIPE, ENOSPC, EIO …). */
export interface LostOutput {
  readonly stream: "stdout" | "stderr";
  readonly code: string;
}

let lost: LostOutput[] | undefined;

/**
 * Decides what a failed write does. A command that only prints ends: quietly when its reader has seen enough, as in
 * `sqlenv … | head`, else with an error. One that called `surviveLostOutput` continues.
 */
export function watchOutputs(): void {
  for (const stream of ["stdout", "stderr"] as const) {
    process[stream].on("error", ({ code = "EIO", message }: NodeJS.ErrnoException) => {
      if (lost) {
        if (!lost.some((failure) => failure.stream === stream)) lost.push({ stream, code });
      } else if (stream === "stdout") {
        if (code !== "EPIPE") process.stderr.write(`error: the output cannot be written: ${message} (${code})\n`);
        process.exit(code === "EPIPE" ? 0 : FAILED);
      } // what goes to stderr is not the command's result
    });
  }
}

/** From here on what cannot be written is dropped and the command continues: it does more than print. The list grows by each stream that fails. */
export function surviveLostOutput(): readonly LostOutput[] {
  lost ??= [];
  return lost;
}
