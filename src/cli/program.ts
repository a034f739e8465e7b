// The commands there are, each loaded when it is asked for: starting `sqlenv` should cost what the command costs.
import { Command } from "commander";
import { explain } from "./failure.ts";
import { packageInfo } from "./package-info.ts";

/** Every command, in the order the help lists them. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  train: async () => (await import("./train.ts")).trainCommand(),
  play: async () => (await import("./play.ts")).playCommand(),
  playground: async () => (await import("./playground.ts")).playgroundCommand(),
  eval: async () => (await import("./eval.ts")).evalCommand(),
  serve: async () => (await import("./serve.ts")).serveCommand(),
  data: async () => (await import("./data.ts")).dataCommand(),
  warmup: async () => (await import("./warmup.ts")).warmupCommand(),
  compare: async () => (await import("./compare.ts")).compareCommand(),
  report: async () => (await import("./report.ts")).reportCommand(),
  export: async () => (await import("./export.ts")).exportCommand(),
  bench: async () => (await import("./bench.ts")).benchCommand(),
  doctor: async () => (await import("./doctor.ts")).doctorCommand(),
};

/** Runs what these arguments ask for; an error becomes a line on stderr and the process's exit code. */
export async function runProgram(args: readonly string[]): Promise<void> {
  const program = await programFor(args);
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    const { line, exitCode } = explain(error);
    const clear = process.stderr.isTTY ? "\r\x1b[K" : ""; // a progress line may be open
    if (line) process.stderr.write(`${clear}${line}\n`);
    if (line && program.opts().verbose && error instanceof Error) process.stderr.write(`${error.stack}\n`);
    process.exitCode = exitCode;
  }
}

/** The program for these arguments: with the command they name, or with all where the help or an error lists them. */
export async function programFor(args: readonly string[]): Promise<Command> {
  const { version, description } = packageInfo();
  const program = new Command("sqlenv")
    .description(description)
    .version(version)
    .option("--verbose", "add the stack to errors")
    .helpCommand("help [command]", "show help for a command")
    .exitOverride() // errors are thrown, and explained by runProgram
    .configureOutput({ outputError: () => {} });
  for (const load of commandsFor(args)) program.addCommand(await load());
  inherit(program);
  return program;
}

function commandsFor(args: readonly string[]): readonly (() => Promise<Command>)[] {
  const [word, next] = args.filter((arg) => !arg.startsWith("-"));
  if (!word && args.some((arg) => arg === "--version" || arg === "-V")) return [];
  const name = word === "help" ? next : word;
  const one = name && Object.hasOwn(COMMANDS, name) && COMMANDS[name];
  return one ? [one] : Object.values(COMMANDS);
}

/** Gives a command's settings to the commands below it, which commander does only for those it creates itself. */
function inherit(parent: Command): void {
  for (const command of parent.commands) {
    command.copyInheritedSettings(parent);
    inherit(command);
  }
}
