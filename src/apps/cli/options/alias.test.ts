import { Command } from "commander";
import { expect, test } from "vitest";
import { wholeNumber } from "../terminal/output.ts";
import { addAlias } from "./alias.ts";

test.each([[["--old", "2", "--new", "3"]], [["--new", "2", "--old", "3"]]])("the last spelling wins: %j", (args) => {
  const command = make();
  command.parseOptions(args);
  expect(command.opts()).toEqual({ new: 3 });
  expect(command.getOptionValueSource("new")).toBe("cli");
});

test("an alias refuses what the option refuses, and is not in the help", () => {
  expect(() => make().parseOptions(["--old", "x"])).toThrow("--new takes a whole number");
  expect(make().helpInformation()).not.toContain("--old");
});

test("an alias of a negated option sets it to false", () => {
  const command = addAlias(new Command().option("--no-colour"), "--plain", "--no-colour");
  command.parseOptions(["--plain"]);
  expect(command.opts()).toEqual({ colour: false });
});

function make(): Command {
  return addAlias(new Command().option("--new <n>", "", wholeNumber("--new"), 1), "--old", "--new");
}
