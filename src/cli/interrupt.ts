// Ctrl-C, and other signals, for commands that have something to finish: the first asks them to stop, the second ends the process.
import { INTERRUPTED } from "./failure.ts";

/** Aborted on the first of these signals (Ctrl-C is SIGINT), in place of the immediate exit other commands have. */
export function interruptSignal(signals: readonly NodeJS.Signals[] = ["SIGINT"]): AbortSignal {
  const abort = new AbortController();
  for (const signal of signals) {
    const others = process.listeners(signal);
    process.once(signal, () => {
      process.once(signal, () => process.exit(INTERRUPTED));
      abort.abort(new DOMException("interrupted", "AbortError"));
    });
    for (const other of others) process.off(signal, other); // after the new one: with none, a signal would be lost
  }
  return abort.signal;
}
