// Ctrl-C and other requests to stop, for commands that have something to finish: the first asks, the second ends the process.
import { constants } from "node:os";
import { terminateEngines } from "../../../lm/engine/thread/client.node.ts";

/** What asks a program to end: Ctrl-C; Docker, Kubernetes, systemd, Slurm and spot machines; a terminal that was closed. */
export const STOP_SIGNALS: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];

/** The reason a command's signal was aborted with. */
export class Interruption extends Error {
  override readonly name = "AbortError";
  readonly exitCode: number;

  constructor(signal: NodeJS.Signals) {
    super("interrupted");
    this.exitCode = signalExitCode(signal);
  }
}

/** 128 + the signal's number, as shells have it: 130 for SIGINT, 143 for SIGTERM, 129 for SIGHUP. */
export function signalExitCode(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

/** Ends the process on any of these signals until a command wants to finish something first. */
export function exitOnSignals(): void {
  for (const signal of STOP_SIGNALS) process.on(signal, () => process.exit(signalExitCode(signal)));
}

/**
 * Ends the process, threads included. `process.exit` waits for a thread that is stuck in native code, such as that of a
 * driver whose GPU was lost; there only SIGKILL helps.
 */
export async function endProcess(exitCode: number): Promise<void> {
  if (await terminateEngines()) process.exit(exitCode);
  process.emit("exit", exitCode); // locks and temporary files are removed as at any end
  process.kill(process.pid, "SIGKILL");
}

/** Aborted on the first of these signals, in place of the immediate exit other commands have. */
export function interruptSignal(signals: readonly NodeJS.Signals[] = STOP_SIGNALS): AbortSignal {
  const abort = new AbortController();
  for (const signal of signals) {
    const others = process.listeners(signal);
    process.on(signal, () => {
      if (abort.signal.aborted) void endProcess(signalExitCode(signal));
      abort.abort(new Interruption(signal));
    });
    for (const other of others) process.off(signal, other); // after the new one: with none, a signal would end the process
  }
  return abort.signal;
}

/** The exit code of a command that was interrupted. */
export function interruptedCode({ reason }: AbortSignal): number {
  return reason instanceof Interruption ? reason.exitCode : signalExitCode("SIGINT");
}
