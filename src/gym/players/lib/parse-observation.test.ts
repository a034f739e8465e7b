import { beforeAll, describe, expect, test } from "vitest";
import { smallDataSet } from "../../../../test/helpers/small-data.ts";
import type { DataSet } from "../../data/index.ts";
import { SQLEnvironment } from "../../env/index.ts";
import { parseDescription, parseResult, parseTables } from "./parse-observation.ts";

let data: DataSet;
beforeAll(async () => {
  data = await smallDataSet();
});

describe("observations are parsed", () => {
  test("tables, before and after DESCRIBE, and a description with names that need quotes", () => {
    const env = new SQLEnvironment(data);
    const first = env.reset({ question_id: "shop_train_000" });
    expect(parseTables(first.schema_info)).toEqual([
      { name: "maker", columns: [] },
      { name: "product", columns: [] },
    ]);
    const { schema_info, result } = env.step({ action_type: "DESCRIBE", argument: "product" });
    const columns = ["id", "name", "price", "colour", "year made", "maker_id"];
    expect(parseTables(schema_info)).toEqual([
      { name: "maker", columns: [] },
      { name: "product", columns },
    ]);
    const description = parseDescription(result, schema_info)!;
    expect(description).toMatchObject({ name: "product", rows: 5 });
    expect(description.columns.map(({ name }) => name)).toEqual(columns);
    expect(description.columns[0]).toEqual({ name: "id", type: "integer", primary_key: true, references: null });
    expect(description.columns[4]).toEqual({
      name: "year made",
      type: "integer",
      primary_key: false,
      references: null,
    });
    expect(description.columns[5]!.references).toEqual({ table: "maker", column: "id" });
  });

  test("the only table of a database, described", () => {
    const env = new SQLEnvironment(data);
    env.reset({ question_id: "zoo_train_000" });
    const { schema_info } = env.step({ action_type: "DESCRIBE", argument: "animal" });
    expect(parseTables(schema_info)).toEqual([{ name: "animal", columns: ["id", "name", "species", "age", "weight"] }]);
  });

  test("results with and without rows", () => {
    const env = new SQLEnvironment(data);
    env.reset({ question_id: "zoo_train_000" });
    const ask = (argument: string) => parseResult(env.step({ action_type: "QUERY", argument }).result);
    expect(ask("SELECT name, age FROM animal LIMIT 2")).toEqual({
      columns: ["name", "age"],
      rows: [
        ["Nala", "7"],
        ["Otto", "3"],
      ],
      notice: null,
    });
    expect(ask("SELECT name FROM animal WHERE age > 99")).toEqual({ columns: ["name"], rows: [], notice: "(no rows)" });
    const many = ask("SELECT a.name FROM animal a, animal b, animal c");
    expect(many.rows).toHaveLength(20);
    expect(many.notice).toBe("(20 of 64 rows shown)");
  });

  test("a description is not found in other results", () => {
    expect(parseDescription("name | age\nNala | 7", "animal")).toBeUndefined();
  });
});
