import { beforeAll, expect, test } from "vitest";
import { createDatabase, Database, loadSqlite } from "../../sql/index.ts";
import { databaseFromFiles } from "./files.ts";

const encoder = new TextEncoder();
const file = (name: string, text: string) => ({ name, bytes: encoder.encode(text) });
const refusal = (...files: { name: string; bytes: Uint8Array }[]) =>
  databaseFromFiles(files).then(
    () => "",
    (error: Error) => error.message,
  );
const shop = () => createDatabase([{ name: "item", ddl: "CREATE TABLE item (a)", rows: [[1]] }]);

beforeAll(() => loadSqlite());

test("a SQLite file is taken as it is, whatever its name", async () => {
  const bytes = shop();
  expect(await databaseFromFiles([{ name: "my shop.sqlite3", bytes }])).toEqual({ name: "my_shop", bytes });
  expect((await databaseFromFiles([{ name: "backup", bytes }])).name).toBe("backup");
});

test("CSV files become the tables of one database, all rows kept and references guessed", async () => {
  const rows = Array.from({ length: 2_500 }, (_, i) => `${i},${1 + (i % 2)}`).join("\n");
  const { name, bytes, guessed } = await databaseFromFiles([
    file("cities.csv", "id,name\n1,Bern\n2,Basel\n"),
    file("people.tsv", `id,city_id\n${rows}`),
  ]);
  expect([name, guessed]).toEqual(["tables", true]);
  const database = new Database(name, bytes);
  expect(database.tables.map((table) => [table.name, database.rowCount(table)])).toEqual([
    ["cities", 2],
    ["people", 2_500],
  ]);
  expect(database.table("people")!.foreign_keys).toEqual([{ column: "city_id", table: "cities", references: "id" }]);
  database.close();
  expect((await databaseFromFiles([file("solar system.csv", "a\n1")])).name).toBe("solar_system");
});

test("anything else is refused with its name and a remedy", async () => {
  const database = { name: "shop.db", bytes: shop() };
  const utf16 = shop();
  new DataView(utf16.buffer, utf16.byteOffset).setUint32(56, 2);
  expect(await refusal()).toBe("no file; choose a SQLite file or CSV files");
  expect(await refusal(file("a.db", ""))).toBe("the file is empty: a.db");
  expect(await refusal(file("a.db", "<html>"))).toBe("the file is not a SQLite database, or it is encrypted: a.db");
  expect(await refusal(file("a.pdf", "%PDF"))).toContain("neither a SQLite database nor a CSV file: a.pdf; choose");
  expect(await refusal(database, database)).toContain(
    "a SQLite file is a database by itself: shop.db; choose it without",
  );
  expect(await refusal(database, file("shop.db-wal", "x"))).toContain("a log of a database has changes");
  expect(await refusal({ name: "old.db", bytes: utf16 })).toContain("database is encoded in UTF-16: old.db");
  expect(await refusal({ name: "latin.csv", bytes: Uint8Array.of(97, 10, 0xe9) })).toContain(
    "not text in UTF-8: latin.csv",
  );
  expect(await refusal(file("a.csv", "x\n1"), file("A.tsv", "x\n1"))).toContain("two files would be one table: A.tsv");
  expect(await refusal(file("a.csv", "x,x\n1,2"))).toContain("two columns have one name: x (a.csv)");
});
