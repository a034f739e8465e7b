// The commands, each loaded on demand so that starting `sqlenv` stays fast.
import { Command } from "commander";
import { packageInfo } from "../../io/package-info.node.ts";
import { explain } from "./terminal/error-line.ts";
import { invocation } from "./terminal/invocation.ts";
import { styled } from "./terminal/output.ts";

/** Every command, in the order the help lists them. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  train: async () => (await import("./commands/train.ts")).trainCommand(),
  play: async () => (await import("./commands/play.ts")).playCommand(),
  playground: async () => (await import("./commands/playground.ts")).playgroundCommand(),
  ask: async () => (await import("./commands/ask.ts")).askCommand(),
  eval: async () => (await import("./commands/eval.ts")).evalCommand(),
  compare: async () => (await import("./commands/compare.ts")).compareCommand(),
  report: async () => (await import("./commands/report.ts")).reportCommand(),
  bench: async () => (await import("./commands/bench.ts")).benchCommand(),
  data: async () => (await import("./commands/data.ts")).dataCommand(),
  sft: async () => (await import("./commands/sft.ts")).sftCommand(),
  export: async () => (await import("./commands/export.ts")).exportCommand(),
  serve: async () => (await import("./commands/serve.ts")).serveCommand(),
  mcp: async () => (await import("./commands/mcp.ts")).mcpCommand(),
  doctor: async () => (await import("./commands/doctor.ts")).doctorCommand(),
};

/** Groups of the commands in the help. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  "Train, play and ask:": ["train", "play", "playground", "ask"],
  "Measure and show:": ["eval", "compare", "report", "bench"],
  "Data and models:": ["data", "sft", "export"],
  "Serve, and this machine:": ["serve", "mcp", "doctor"],
};

/** Two examples of each command. */
const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  train: ["train --dashboard", "train --preset qwen3-0.6b --dry-run"],
  play: ["play", "play --player model --model starter --data starter"],
  playground: ["playground --out site", "playground --out site --model runs/starter/model"],
  ask: [
    'ask --data shop.sqlite --model runs/shop "How many orders were paid late?"',
    "ask --data sales.csv --model ollama:qwen3:0.6b",
  ],
  eval: ["eval --player keyword", "eval --run runs/starter"],
  serve: ["serve", "serve --data spider10 --port 9000"],
  mcp: ["mcp my.sqlite", "mcp --data spider10"],
  data: ["data list", "data check --data questions.json"],
  sft: ["sft --model starter --transcripts episodes.jsonl --out tuned", "sft --recipe models/starter.yaml --out made"],
  compare: ["compare --player random,oracle", "compare --player random --model starter --model runs/starter/model"],
  report: ["report runs/starter", "report runs --serve"],
  export: ["export --model runs/starter/model --merge folder", "export --model Qwen/Qwen3-0.6B --gguf model.gguf"],
  bench: ["bench env", "bench verifier"],
  doctor: ["doctor", "doctor --json"],
};

/** What `sqlenv` alone prints. */
function welcome(): string {
  const start = invocation();
  const lines = [
    ["play", "answer questions about a database yourself"],
    ["train", "a small model learns to, in about two minutes on two cores"],
    ["serve", "play and train in the browser, and serve OpenEnv clients"],
  ].map(([command, text]) => `  ${styled("cyan", `${start} ${command}`.padEnd(start.length + 7))}  ${text}`);
  return `${styled("bold", "SQLEnv")}: ${packageInfo().description}.\n\nTry:\n${lines.join("\n")}\n\n${start} --help lists all commands.\n`;
}

/** Former command names, still accepted. */
const ALIASES: Readonly<Record<string, string>> = { warmup: "sft" };

/** Runs a command line; an error becomes one line on stderr and the process's exit code. */
export async function runProgram(args: readonly string[]): Promise<void> {
  if (args.length === 0) {
    process.stdout.write(welcome());
    return;
  }
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

/**
 * The program with the command that the arguments name, or with all commands if the help or an error lists them.
 * Examples in the help begin with `start`.
 */
export async function programFor(args: readonly string[], start = invocation()): Promise<Command> {
  const { version, description } = packageInfo();
  const program = new Command("sqlenv")
    .description(description)
    .version(version)
    .option("--verbose", "print stack traces with errors")
    .commandsGroup("Serve, and this machine:") // the group of the help command
    .helpCommand("help [command]", "show help for a command")
    .configureHelp({ minWidthToWrap: 20 }) // descriptions are wrapped beside long options too
    .exitOverride() // errors are thrown, and explained by runProgram
    .configureOutput({ outputError: () => {} });
  for (const load of commandsFor(args)) {
    const command = await load();
    const group = Object.entries(GROUPS).find(([, names]) => names.includes(command.name()));
    if (group) command.helpGroup(group[0]);
    command.addHelpText("after", () => {
      const lines = (EXAMPLES[command.name()] ?? []).map((line) => `  ${start} ${line}`);
      return lines.length > 0 ? `\nExamples:\n${lines.join("\n")}` : "";
    });
    program.addCommand(command);
  }
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
