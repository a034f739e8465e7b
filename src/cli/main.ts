#!/usr/bin/env node
// The `sqlenv` command, as a process: its arguments, signals and pipes.
import { exitOnSignals } from "./interrupt.ts";
import { watchOutputs } from "./lost-output.ts";
import { runProgram } from "./program.ts";

exitOnSignals();
watchOutputs();

await runProgram(process.argv.slice(2));
