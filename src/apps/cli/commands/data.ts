// `sqlenv data`: list, show, check, import, convert and export data sets.
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
import type { DataSet } from "../../../gym/data/index.ts";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import { drawTable, formatBytes, type Output, output, wholeNumber } from "../terminal/output.ts";
import { checkCommand } from "./data-check.ts";
import { showCommand } from "./data-show.ts";

/** The `data` command with its sub-commands. */
export function dataCommand(): Command {
  const command = new Command("data").description(
    "questions and databases: what there is, whether it is sound, bringing more in",
  );
  for (const part of [
    listCommand(),
    showCommand(),
    checkCommand(),
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
    .description("the data sets that can be named")
    .option("--json", "print one JSON object")
    .action((options: { json?: boolean }) => {
      const out = output(options);
      const folder = dataSetsFolder();
      const imported = importedDataSets(folder);
      const datasets = [
        {
          name: "bundled",
          layout: "questions",
          available: true,
          about: "made from a seed; 12 databases, 473 + 203 questions",
        },
        {
          name: "spider10",
          layout: "spider",
          available: imported.some((name) => name.startsWith("spider")),
          about: "ten databases of Spider, 473 + 203 questions; needs Spider imported, or spider10:PATH",
        },
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
      out.line("\nAny folder in a known layout can be named too: sqlenv data check --data PATH");
      out.result({ datasets, folder });
    });
}

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
    .description(
      "bring in a folder, .zip, .tar, .tar.gz or .tar.xz, or a URL to one, in Spider's, BIRD's or our layout",
    )
    .argument("<source>", "folder, archive or URL")
    .option("--name <name>", "call it this (default: the source's name)")
    .option("--replace", "replace an imported set of the same name")
    .option(
      "--max-bytes <number>",
      "bytes that an archive may have and take on disk, archives inside it included",
      wholeNumber("--max-bytes"),
      MAX_UNPACKED_BYTES,
    )
    .option("--sha256 <hex>", "refuse an archive that is not this one")
    .option("--json", "print one JSON object")
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
    .description("write any data set, folder, archive or URL in our layout: questions/*.json and databases/")
    .argument("<source>", "name, folder, archive or URL")
    .argument("<dir>", "a new or empty folder")
    .option("--seed <number>", "of bundled and spider10", wholeNumber("--seed"))
    .option("--json", "print one JSON object")
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
    .description("write a data set's files: databases/<name>/<name>.sqlite and questions/questions_{train,eval}.json")
    .argument("<dir>", "a new or empty folder")
    .option("--data <name>", "data set: bundled, spider10[:path], an imported name or a path", "bundled")
    .option("--seed <number>", "of bundled and spider10", wholeNumber("--seed"))
    .option("--json", "print one JSON object")
    .action(async (dir: string, options: { json?: boolean; data: string; seed?: number }) => {
      writeOut(await resolveDataSet(options.data, options), dir, output(options));
    });
}

function writeOut(dataset: DataSet, dir: string, out: Output): void {
  const written = exportDataSet(dataset, dir);
  const { train, eval: evaluation } = written.questions;
  out.line(
    `${dataset.name}: ${written.databases} databases, ${train} training and ${evaluation} evaluation questions in ${written.path}`,
  );
  if (dataset.rejected.length > 0)
    out.line(`${dataset.rejected.length} unusable questions are not in it; sqlenv data check says why`);
  if (written.left_out.length > 0)
    out.line(`${written.left_out.length} left out, whose double-quoted strings could not be rewritten`);
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
