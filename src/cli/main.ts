#!/usr/bin/env node
// The `sqlenv` command, as a process: its arguments, signals and pipes.
import { terminateEngines } from "../engine/thread.node.ts";
import { endProcess, exitOnSignals } from "./interrupt.ts";
import { watchOutputs } from "./lost-output.ts";
import { runProgram } from "./program.ts";

exitOnSignals();
watchOutputs();

await runProgram(process.argv.slice(2));
// A command has closed its engine by now; where that failed, nothing may keep the process.
if (!(await terminateEngines())) await endProcess(Number(process.exitCode ?? 0));
