// Ctrl-C and other stop signals, for commands that must finish something: the first requests a stop, the second ends the process.
import { constants } from "node:os";
import { terminateEngines } from "../../../lm/engine/thread/client.node.ts";

/** Ctrl-C; Docker, Kubernetes, systemd, Slurm and spot machines; a closed terminal. */
export const STOP_SIGNALS: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];

/** The reason of a command's abort signal. */
export class Interruption extends Error {
  override readonly name = "AbortError";
  readonly exitCode: number;

  constructor(signal: NodeJS.Signals) {
    super("interrupted");
    this.exitCode = signalExitCode(signal);
  }
}

/** 128 + the signal's number, as shells report it: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP. */
export function signalExitCode(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

/** Ends the process on any of these signals, until a command calls interruptSignal(). */
export function exitOnSignals(): void {
  for (const signal of STOP_SIGNALS) process.on(signal, () => process.exit(signalExitCode(signal)));
}

/**
 * Ends the process with all its threads. `process.exit` would wait for a thread that is stuck in native code, such as the
 * driver of a lost GPU; then only SIGKILL helps.
 */
export async function endProcess(exitCode: number): Promise<void> {
  if (await terminateEngines()) process.exit(exitCode);
  process.emit("exit", exitCode); // removes locks and temporary files as on a normal exit
  process.kill(process.pid, "SIGKILL");
}

/** A signal that is aborted on the first of these, instead of the immediate exit of other commands. */
export function interruptSignal(signals: readonly NodeJS.Signals[] = STOP_SIGNALS): AbortSignal {
  const abort = new AbortController();
  for (const signal of signals) {
    const others = process.listeners(signal);
    process.on(signal, () => {
      if (abort.signal.aborted) void endProcess(signalExitCode(signal));
      abort.abort(new Interruption(signal));
    });
    for (const other of others) process.off(signal, other); // after adding the new one: without any listener, a signal would end the process
  }
  return abort.signal;
}

/**
 * Runs work that Ctrl-C stops: the first one aborts its signal, a second one ends the process. Afterwards Ctrl-C does
 * what it did before.
 */
export async function untilInterrupted<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const abort = new AbortController();
  const stop = () => {
    if (abort.signal.aborted) void endProcess(signalExitCode("SIGINT"));
    abort.abort(new Interruption("SIGINT"));
  };
  const others = process.listeners("SIGINT");
  process.on("SIGINT", stop);
  for (const other of others) process.off("SIGINT", other);
  try {
    return await work(abort.signal);
  } finally {
    for (const other of others) process.on("SIGINT", other);
    process.off("SIGINT", stop);
  }
}

/** The exit code of a command that was interrupted. */
export function interruptedCode({ reason }: AbortSignal): number {
  return reason instanceof Interruption ? reason.exitCode : signalExitCode("SIGINT");
}
