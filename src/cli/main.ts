#!/usr/bin/env node
// The `sqlenv` command: a list of commands, and the one place where errors become a line and an exit code.
import { readFileSync } from "node:fs";
import { Command } from "commander";
import { benchCommand } from "./bench.ts";
import { compareCommand } from "./compare.ts";
import { dataCommand } from "./data.ts";
import { doctorCommand } from "./doctor.ts";
import { evalCommand } from "./eval.ts";
import { exportCommand } from "./export.ts";
import { explain } from "./failure.ts";
import { playCommand } from "./play.ts";
import { playgroundCommand } from "./playground.ts";
import { reportCommand } from "./report.ts";
import { serveCommand } from "./serve.ts";
import { trainCommand } from "./train.ts";
import { warmupCommand } from "./warmup.ts";

const { version, description } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  version: string;
  description: string;
};

const program = new Command("sqlenv")
  .description(description)
  .version(version)
  .option("--verbose", "add the stack to errors")
  .helpCommand("help [command]", "show help for a command")
  .exitOverride() // errors are thrown, and explained below
  .configureOutput({ outputError: () => {} });

for (const command of [
  trainCommand(),
  playCommand(),
  playgroundCommand(),
  evalCommand(),
  serveCommand(),
  dataCommand(),
  warmupCommand(),
  compareCommand(),
  reportCommand(),
  exportCommand(),
  benchCommand(),
  doctorCommand(),
])
  program.addCommand(command);

inherit(program);
process.on("SIGINT", () => process.exit(130));
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(0); // the reader has seen enough, as in `sqlenv … | head`
});

try {
  await program.parseAsync();
} catch (error) {
  const { line, exitCode } = explain(error);
  if (line) process.stderr.write(`${line}\n`);
  if (line && program.opts().verbose && error instanceof Error) process.stderr.write(`${error.stack}\n`);
  process.exitCode = exitCode;
}

/** Gives a command's settings to the commands below it, which commander does only for those it creates itself. */
function inherit(parent: Command): void {
  for (const command of parent.commands) {
    command.copyInheritedSettings(parent);
    inherit(command);
  }
}
