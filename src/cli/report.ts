// `sqlenv report`: makes a run's pictures and pages again from its records.
import { Command } from "commander";
import { readRun, standingRows, withInterval, writeReport } from "../reports/index.node.ts";
import { drawTable, output, printable, styled } from "./output.ts";

/** The `report` command. */
export function reportCommand(): Command {
  return new Command("report")
    .description("make a run's pictures and pages from its records, also while it trains")
    .argument("<run>", "the run's folder")
    .option("--json", "print one JSON object")
    .action(run);
}

async function run(folder: string, flags: { readonly json?: boolean }): Promise<void> {
  const out = output(flags);
  const records = await readRun(folder);
  const { files, headline } = await writeReport(records);
  const { result, metrics, warnings } = records;
  const steps = metrics.reduce((most, { step }) => Math.max(most, step), 0);
  if (result) {
    out.line(styled("bold", printable(records.run)));
    const rows = standingRows(result).map(({ name, random, before, after, verdict }) => [
      name,
      ...[random, before, after].map(withInterval),
      verdict,
    ]);
    out.line(drawTable(["success on", "random", "before", "after", ""], rows));
    out.line();
  } else out.line(`${styled("bold", printable(records.run))}: not finished, step ${steps} is the last one logged`);
  for (const { step, message, remedy } of warnings.slice(-3))
    out.line(styled("yellow", printable(`step ${step}: ${message}; ${remedy}`)));
  for (const file of files) out.line(`wrote ${printable(file)}`);
  out.result({
    run: records.run,
    finished: result !== null,
    steps,
    headline,
    warnings: warnings.length,
    files,
    result,
  });
}
