// The commands, each loaded on demand so that starting `sqlenv` stays fast.
import { Command } from "commander";
import { packageInfo } from "../../io/package-info.node.ts";
import { explain } from "./terminal/error-line.ts";

/** Every command, in the order the help lists them. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  train: async () => (await import("./commands/train.ts")).trainCommand(),
  play: async () => (await import("./commands/play.ts")).playCommand(),
  playground: async () => (await import("./commands/playground.ts")).playgroundCommand(),
  eval: async () => (await import("./commands/eval.ts")).evalCommand(),
  serve: async () => (await import("./commands/serve.ts")).serveCommand(),
  data: async () => (await import("./commands/data.ts")).dataCommand(),
  sft: async () => (await import("./commands/sft.ts")).sftCommand(),
  compare: async () => (await import("./commands/compare.ts")).compareCommand(),
  report: async () => (await import("./commands/report.ts")).reportCommand(),
  export: async () => (await import("./commands/export.ts")).exportCommand(),
  bench: async () => (await import("./commands/bench.ts")).benchCommand(),
  doctor: async () => (await import("./commands/doctor.ts")).doctorCommand(),
};

/** Former command names, still accepted. */
const ALIASES: Readonly<Record<string, string>> = { warmup: "sft" };

/** Runs a command line; an error becomes one line on stderr and the process's exit code. */
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

/** The program with the command these arguments name, or with all where the help or an error lists them. */
export async function programFor(args: readonly string[]): Promise<Command> {
  const { version, description } = packageInfo();
  const program = new Command("sqlenv")
    .description(description)
    .version(version)
    .option("--verbose", "print stack traces with errors")
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
  const typed = word === "help" ? next : word;
  const name = typed && Object.hasOwn(ALIASES, typed) ? ALIASES[typed] : typed;
  const one = name && Object.hasOwn(COMMANDS, name) && COMMANDS[name];
  return one ? [one] : Object.values(COMMANDS);
}

/** Passes a command's settings on to its sub-commands, which commander does only for those it creates itself. */
function inherit(parent: Command): void {
  for (const command of parent.commands) {
    command.copyInheritedSettings(parent);
    inherit(command);
  }
}
