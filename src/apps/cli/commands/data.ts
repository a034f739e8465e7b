// `sqlenv data`: list, show, check, make, import, convert and export data sets.
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import {
  type DownloadProgress,
  dataSetsFolder,
  exportDataSet,
  findLayout,
  type ImportOptions,
  importDataSet,
  importedDataSets,
  MAX_UNPACKED_BYTES,
  openDataSet,
} from "../../../gym/data/index.node.ts";
import { DATA_SET_NAMES, type DataSet } from "../../../gym/data/index.ts";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import { DATA, DATA_SEED, JSON_OUTPUT } from "../options/common.ts";
import { counted, drawTable, formatBytes, type Output, output, wholeNumber } from "../terminal/output.ts";
import { checkCommand } from "./data-check.ts";
import { makeCommand } from "./data-make.ts";
import { showCommand } from "./data-show.ts";

/** The `data` command with its sub-commands. */
export function dataCommand(): Command {
  const command = new Command("data").description("list, check, make, import and export data sets");
  for (const part of [
    listCommand(),
    showCommand(),
    checkCommand(),
    makeCommand(),
    importCommand(),
    convertCommand(),
    exportCommand(),
  ]) {
    command.addCommand(part);
  }
  return command;
}

function listCommand(): Command {
  return new Command("list")
    .description("list the data sets")
    .option("--json", JSON_OUTPUT)
    .action((options: { json?: boolean }) => {
      const out = output(options);
      const folder = dataSetsFolder();
      const imported = importedDataSets(folder);
      const datasets = [
        ...DATA_SET_NAMES.map((name) => ({
          name: name as string,
          layout: name === "spider10" ? "spider" : "questions",
          available: name !== "spider10" || imported.some((other) => other.startsWith("spider")),
          about: ABOUT[name],
        })),
        ...imported
          .filter((name) => name !== "spider10")
          .map((name) => ({ name, ...describe(join(folder, name)), about: join(folder, name) })),
      ];
      out.line(
        drawTable(
          ["name", "layout", "available", "about"],
          datasets.map(({ name, layout, available, about }) => [name, layout, available ? "yes" : "no", about]),
          { maxCell: 100 },
        ),
      );
      out.line("\n--data takes these names, and the path of any folder or question file");
      const isMissing = datasets.some(({ name, available }) => name === "spider10" && !available);
      if (isMissing) out.line("spider10 needs Spider: import it, or use spider10:PATH");
      out.result({ datasets, folder });
    });
}

/** What each data set is, with its numbers of training and evaluation questions. */
const ABOUT: Readonly<Record<(typeof DATA_SET_NAMES)[number], string>> = {
  bundled: "12 generated databases, 473 + 203 questions",
  practice: "112 small generated databases, 512 + 448 questions",
  starter: "as practice, questions on one table: for `train`",
  spider10: "10 databases of Spider, 473 + 203 questions (442 + 188 usable)",
};

function describe(path: string): { layout: string; available: boolean } {
  try {
    return { layout: findLayout(path).layout, available: true };
  } catch {
    return { layout: "unknown", available: false };
  }
}

interface ImportFlags {
  readonly json?: boolean;
  readonly name?: string;
  readonly replace?: boolean;
  readonly maxBytes: number;
  readonly sha256?: string;
}

function importCommand(): Command {
  return new Command("import")
    .description("import a data set in the layout of Spider, BIRD or SQLEnv")
    .argument("<source>", "a folder, a .zip, .tar, .tar.gz or .tar.xz archive, or the URL of one")
    .option("--name <name>", "name of the data set (default: the source's)")
    .option("--replace", "replace an imported data set of this name")
    .option(
      "--max-bytes <number>",
      "size limit of an archive, packed and unpacked, nested archives included",
      wholeNumber("--max-bytes"),
      MAX_UNPACKED_BYTES,
    )
    .option("--sha256 <hex>", "expected SHA-256 of the archive")
    .option("--json", JSON_OUTPUT)
    .action(async (source: string, { json, replace = false, ...options }: ImportFlags) => {
      const out = output({ json });
      const imported = await importDataSet(source, dataSetsFolder(), { replace, ...options, ...reporting(out) });
      out.line(`${imported.name} imported (${imported.layout} layout) to ${imported.path}`);
      if (imported.sha256 !== undefined) out.line(`SHA-256 of the archive: ${imported.sha256}`);
      out.line(`check it with: sqlenv data check --data ${imported.name}`);
      out.result(imported);
    });
}

function convertCommand(): Command {
  return new Command("convert")
    .description("convert a data set to SQLEnv's layout: questions/*.json and databases/")
    .argument("<source>", "a data set's name, a folder, an archive or a URL")
    .argument("<dir>", "a new or empty folder")
    .option("--seed <number>", DATA_SEED, wholeNumber("--seed"))
    .option("--json", JSON_OUTPUT)
    .action(async (source: string, dir: string, options: { json?: boolean; seed?: number }) => {
      const out = output(options);
      const isArchive =
        /^https?:/i.test(source) ||
        (statSync(source, { throwIfNoEntry: false })?.isFile() && !source.endsWith(".json"));
      if (!isArchive) return writeOut(await resolveDataSet(source, options), dir, out);
      const aside = mkdtempSync(join(tmpdir(), "sqlenv-convert-"));
      const clean = () => rmSync(aside, { recursive: true, force: true });
      process.once("exit", clean);
      const { name } = await importDataSet(source, aside, reporting(out));
      writeOut(await openDataSet(name, { imported: aside }), dir, out);
    });
}

function exportCommand(): Command {
  return new Command("export")
    .description("write a data set's databases and questions to a folder")
    .argument("<dir>", "a new or empty folder")
    .option("--data <name>", DATA, "bundled")
    .option("--seed <number>", DATA_SEED, wholeNumber("--seed"))
    .option("--json", JSON_OUTPUT)
    .action(async (dir: string, options: { json?: boolean; data: string; seed?: number }) => {
      writeOut(await resolveDataSet(options.data, options), dir, output(options));
    });
}

function writeOut(dataset: DataSet, dir: string, out: Output): void {
  const written = exportDataSet(dataset, dir);
  const { train, eval: evaluation } = written.questions;
  out.line(
    `${dataset.name}: ${counted(written.databases, "database")}, ${counted(train, "training question")} and ${counted(evaluation, "evaluation question")} in ${written.path}`,
  );
  if (dataset.rejected.length > 0)
    out.line(`omitted ${counted(dataset.rejected.length, "unusable question")}; sqlenv data check says why`);
  if (written.left_out.length > 0)
    out.line(
      `omitted ${counted(written.left_out.length, "question")} whose double-quoted strings could not be rewritten`,
    );
  out.result({ name: dataset.name, ...written, rejected: dataset.rejected.length });
}

/** Progress of downloading and unpacking. */
function reporting(out: Output): Pick<ImportOptions, "onProgress" | "onStage"> {
  return {
    onStage: (text) => out.progress(text),
    onProgress: ({ received, total }: DownloadProgress) =>
      out.progress(
        `downloading ${formatBytes(received)}${total ? ` of ${formatBytes(total)} (${Math.floor((100 * received) / total)} %)` : ""}`,
      ),
  };
}
