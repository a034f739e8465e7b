// A folder of CSV files as a source: one table per file.
import { closeSync, openSync, readdirSync, readSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import type { SourceDatabase } from "../make.ts";
import { type CsvOptions, csvName, readCsvTables } from "./csv-tables.ts";
import { databaseName } from "./database-name.ts";

const PIECE = 1 << 20; // bytes read at a time

/** Paths of the CSV files in a folder, in order. */
export function csvFiles(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => /\.(?:csv|tsv)$/i.test(name))
    .sort()
    .map((name) => join(folder, name));
}

/** Reads CSV files as one database. */
export function readCsvFiles(name: string, paths: readonly string[], options: CsvOptions): Promise<SourceDatabase> {
  const files = paths.map((path) => ({ name: csvName(basename(path)), label: path, bytes: () => chunks(path) }));
  return readCsvTables(name, files, options);
}

/** The name of the database of a folder or file. */
export function nameOfCsv(path: string): string {
  return databaseName(csvName(basename(resolve(path))));
}

/** The bytes of a file, piece by piece; each piece is valid until the next is read. */
function* chunks(path: string): Generator<Uint8Array> {
  const file = openSync(path, "r");
  try {
    const buffer = new Uint8Array(PIECE);
    for (;;) {
      const read = readSync(file, buffer);
      if (read === 0) return;
      yield buffer.subarray(0, read);
    }
  } finally {
    closeSync(file);
  }
}
