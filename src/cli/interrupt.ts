// Ctrl-C for commands that have something to finish: the first asks them to stop, the second ends the process.
import { INTERRUPTED } from "./failure.ts";

/** A signal that is aborted on the first Ctrl-C, in place of the immediate exit other commands have. */
export function interruptSignal(): AbortSignal {
  const abort = new AbortController();
  const others = process.listeners("SIGINT");
  process.once("SIGINT", () => {
    process.once("SIGINT", () => process.exit(INTERRUPTED));
    abort.abort(new DOMException("interrupted", "AbortError"));
  });
  for (const other of others) process.off("SIGINT", other); // after the new one: with none, a signal would be lost
  return abort.signal;
}
