// When stdout or stderr can no longer be written: the reader is gone, the disk is full, the terminal is closed.
import { FAILED } from "./error-line.ts";

/** A stream that failed, with the system's error code (EPIPE, ENOSPC, EIO …). */
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
        if (code !== "EPIPE") process.stderr.write(`error: cannot write the output: ${message} (${code})\n`);
        process.exit(code === "EPIPE" ? 0 : FAILED);
      } // stderr does not carry the command's result
    });
  }
}

/**
 * From now on the command continues if its output can no longer be written, for commands that do more than print.
 * Failed streams are added to the returned list.
 */
export function surviveLostOutput(): readonly LostOutput[] {
  lost ??= [];
  return lost;
}
