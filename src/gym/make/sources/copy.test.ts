import { beforeAll, expect, test } from "vitest";
import { type Cell, Database, loadSqlite } from "../../sql/index.ts";
import { copyTables, type SourceTable } from "./copy.ts";

beforeAll(async () => void (await loadSqlite()));

/** A table whose sample is its first rows. */
function table(
  name: string,
  columns: readonly string[],
  all: readonly (readonly Cell[])[],
  references: SourceTable["references"] = [],
): SourceTable {
  return {
    name,
    columns: columns.map((column) => ({ name: column, type: "INTEGER" })),
    primaryKey: columns[0]!,
    references,
    sample: async (limit) => ({ rows: all.slice(0, limit), total: all.length }),
    rowsWith: async (column, values) => all.filter((row) => values.includes(row[columns.indexOf(column)]!)),
  };
}

test("a sample keeps every row that it refers to, over several tables", async () => {
  const makers = table(
    "makers",
    ["id"],
    Array.from({ length: 50 }, (_, i) => [i]),
  );
  const cars = table(
    "cars",
    ["id", "maker"],
    Array.from({ length: 100 }, (_, i) => [i, 49 - (i % 50)]),
    [{ column: "maker", to: "makers", key: "id" }],
  );
  const trips = table(
    "trips",
    ["id", "car"],
    Array.from({ length: 500 }, (_, i) => [i, (i * 37) % 100]),
    [{ column: "car", to: "cars", key: "id" }],
  );
  const { bytes, notes } = await copyTables([makers, cars, trips], 10);
  const database = new Database("copy", bytes);
  const value = (sql: string) => {
    const result = database.run(sql);
    return result.ok ? result.table.rows[0]![0] : result.error.message;
  };
  expect(value("SELECT COUNT(*) FROM trips")).toBe(10);
  expect(value("SELECT COUNT(*) FROM trips WHERE car NOT IN (SELECT id FROM cars)")).toBe(0);
  expect(value("SELECT COUNT(*) FROM cars WHERE maker NOT IN (SELECT id FROM makers)")).toBe(0);
  expect(database.table("trips")!.foreign_keys).toEqual([{ column: "car", table: "cars", references: "id" }]);
  expect(notes.map(({ name }) => name)).toEqual(["makers", "cars", "trips"]);
  expect(notes[2]!.reason).toContain("10 of 500 rows were copied");
  database.close();
});
