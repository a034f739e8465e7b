// `sqlenv report`: writes a run's charts and pages from its records, serves runs as a dashboard, or exports that as one file.
import { writeFileSync } from "node:fs";
import { Command } from "commander";
import { messageOf, SqlEnvError, UsageError } from "../../../errors.ts";
import { exportDashboard } from "../../dashboard/server/export.node.ts";
import { evaluatedRows, readRun, verdictText, withInterval, writeReport } from "../../reports/index.node.ts";
import { JSON_OUTPUT } from "../options/common.ts";
import { interruptSignal } from "../terminal/interrupt.ts";
import { surviveLostOutput } from "../terminal/lost-output.ts";
import { drawTable, formatBytes, formatNumber, output, portNumber, printable, styled } from "../terminal/output.ts";
import { serveUntil } from "./serve-dashboard.ts";

interface ReportFlags {
  readonly serve?: boolean;
  readonly port?: number;
  readonly host?: string;
  readonly export?: string;
  readonly json?: boolean;
}

/** The `report` command. */
export function reportCommand(): Command {
  return new Command("report")
    .description("write a run's charts and pages, or show runs as a dashboard")
    .argument("<runs...>", "a run's folder; with --serve or --export also several, or a folder of runs")
    .option("--serve", "serve a dashboard, live during training, until Ctrl-C")
    .option(
      "--port <number>",
      "with --serve: port; 0 picks a free one (default: first free from 7860)",
      portNumber("--port"),
    )
    .option("--host <address>", "with --serve: address to listen on (default: this machine only)")
    .option("--export <file>", "write the dashboard and its data as one HTML file")
    .option("--json", JSON_OUTPUT)
    .action(report);
}

async function report(runs: readonly string[], flags: ReportFlags): Promise<void> {
  if (!flags.serve && (flags.port !== undefined || flags.host !== undefined))
    throw new UsageError({ what: "--port and --host need --serve", remedy: "add --serve" });
  if (flags.export !== undefined) await exportRuns(runs, flags.export, flags);
  if (flags.serve) surviveLostOutput();
  if (flags.serve) return serveUntil(interruptSignal(), { runs, port: flags.port, host: flags.host }, output(flags));
  if (flags.export !== undefined) return;
  const [folder, ...others] = runs;
  if (others.length > 0)
    throw new UsageError({
      what: "only one run at a time has pages",
      value: runs.join(" "),
      remedy: "add --serve or --export to compare several",
    });
  await writePages(folder!, flags);
}

async function exportRuns(paths: readonly string[], file: string, flags: ReportFlags): Promise<void> {
  const out = output(flags);
  const { html, runs } = await exportDashboard(paths);
  try {
    writeFileSync(file, html);
  } catch (cause) {
    throw new SqlEnvError("run_write", {
      what: `cannot write --export: ${messageOf(cause)}`,
      value: file,
      remedy: "choose a file in a writable folder",
      cause,
    });
  }
  const bytes = Buffer.byteLength(html);
  out.line(`wrote ${printable(file)}, ${formatBytes(bytes)}`);
  for (const { run, episodes, kept } of runs)
    if (kept < episodes)
      out.line(
        styled(
          "dim",
          `${printable(run)}: includes ${formatNumber(kept)} of ${formatNumber(episodes)} episodes, from all steps`,
        ),
      );
  out.result({ file, bytes, runs });
}

async function writePages(folder: string, flags: ReportFlags): Promise<void> {
  const out = output(flags);
  const records = await readRun(folder);
  const { files, headline } = await writeReport(records);
  const { result, metrics, warnings } = records;
  const steps = metrics.reduce((most, { step }) => Math.max(most, step), 0);
  if (result) {
    out.line(styled("bold", printable(records.run)));
    const rows = evaluatedRows(result).map((row) => [
      row.name,
      ...[row.random, row.before, row.after].map(withInterval),
      verdictText(row),
    ]);
    out.line(drawTable(["success on", "random", "before", "after", ""], rows));
    out.line();
  } else out.line(`${styled("bold", printable(records.run))}: unfinished, last logged step ${steps}`);
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
