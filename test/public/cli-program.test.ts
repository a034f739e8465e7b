// Which commands are loaded for which arguments, and that the built program is the one users start.
import { expect, test } from "vitest";
import { programFor, sqlenv, sqlenvInside } from "../helpers/cli-process.ts";

const loadedFor = async (...args: string[]) => (await programFor(args)).commands.map((command) => command.name());

test("only the requested command is loaded", async () => {
  expect(await loadedFor("--version")).toEqual([]);
  expect(await loadedFor("train", "--max-steps", "1")).toEqual(["train"]);
  expect(await loadedFor("--verbose", "data", "list")).toEqual(["data"]);
  expect(await loadedFor("help", "eval")).toEqual(["eval"]);
});

test("help and suggestions know all commands", async () => {
  const all = await loadedFor("--help");
  expect(all).toHaveLength(14);
  expect(await loadedFor()).toEqual(all);
  expect(await loadedFor("help")).toEqual(all);
  expect(await loadedFor("constructor")).toEqual(all);
  expect(await sqlenvInside(["trian"])).toEqual({
    stdout: "",
    stderr: "error: unknown command 'trian'; did you mean train? (usage)\n",
    code: 2,
    signal: null,
  });
});

test.each([
  [["eval", "--max-tokens", "9"], { maxNewTokens: 9 }],
  [["bench", "spider", "--unguided"], { guided: false }],
  [["bench", "grpo", "--generations", "4"], { numGenerations: 4 }],
  [["bench", "memory", "--prompt", "5", "--completion", "6"], { promptTokens: 5, completionTokens: 6 }],
])("former spellings of flags work, and are not in the help: %j", async (args, expected) => {
  const flag = args.findIndex((arg) => arg.startsWith("--"));
  let command = await programFor(args);
  for (const name of args.slice(0, flag)) command = command.commands.find((one) => one.name() === name)!;
  command.parseOptions(args.slice(flag));
  expect(command.opts()).toMatchObject(expected);
  expect(command.helpInformation()).not.toContain(`${args[flag]} `);
});

test("`sqlenv help train` is `sqlenv train --help`", async () => {
  const help = await sqlenvInside(["help", "train"]);
  expect(help.stdout).toMatch(/^Usage: sqlenv train/);
  expect(help).toEqual(await sqlenvInside(["train", "--help"]));
});

test.each([["--version"], ["--help"], ["data", "lst"]])("the built program prints the same: %s", async (...args) => {
  const here = await sqlenvInside(args);
  expect(here.stdout + here.stderr).not.toBe("");
  expect(await sqlenv(args)).toEqual(here);
});
