#!/usr/bin/env node
// The `sqlenv` command, as a process: its arguments, signals and pipes.
import { terminateEngines } from "../../lm/engine/thread/client.node.ts";
import { runProgram } from "./program.ts";
import { endProcess, exitOnSignals } from "./terminal/interrupt.ts";
import { watchOutputs } from "./terminal/lost-output.ts";

exitOnSignals();
watchOutputs();

await runProgram(process.argv.slice(2));
// A command has closed its engine by now; if that failed, its thread must not keep the process alive.
if (!(await terminateEngines())) await endProcess(Number(process.exitCode ?? 0));
