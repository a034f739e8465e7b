// Former spellings of an option: still accepted, no longer listed in the help.
import { type Command, Option } from "commander";

/** Accepts `alias` for the option `name` of this command, which must have it already. */
export function addAlias(command: Command, alias: string, name: string): Command {
  const option = command.options.find(({ long }) => long === name)!;
  const hidden = new Option(option.flags.replace(name, alias), option.description).hideHelp();
  if (option.parseArg) hidden.argParser(option.parseArg);
  return command.addOption(hidden).on(`option:${hidden.name()}`, () => {
    const value: unknown = option.negate ? false : command.getOptionValue(hidden.attributeName());
    command.setOptionValueWithSource(option.attributeName(), value, "cli");
    command.setOptionValue(hidden.attributeName(), undefined);
  });
}
