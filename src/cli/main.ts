#!/usr/bin/env node
// The `sqlenv` command, as a process: its arguments, signals and pipes.
import { exitOnSignals } from "./interrupt.ts";
import { runProgram } from "./program.ts";

exitOnSignals();
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(0); // the reader has seen enough, as in `sqlenv … | head`
});

await runProgram(process.argv.slice(2));
