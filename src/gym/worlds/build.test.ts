import { beforeAll, expect, test } from "vitest";
import { Database, loadSqlite } from "../sql/index.ts";
import { buildWorld, ddlOf, fillWorld } from "./build.ts";
import type { WorldSpec } from "./spec.ts";

const spec: WorldSpec = {
  name: "kennel",
  topic: "dogs and their walks",
  tables: [
    {
      name: "group",
      one: "group",
      many: "groups",
      label: "name",
      rows: 20,
      given: { columns: ["name", "since"], rows: [["Early Birds", 1990]] },
      columns: [
        { name: "id", kind: "id", phrase: "number" },
        { name: "name", kind: "label", phrase: "name", values: Array.from({ length: 20 }, (_, i) => `Group ${i}`) },
        { name: "since", kind: "integer", phrase: "founding year", low: 1950, high: 2000, year: true, summable: false },
      ],
    },
    {
      name: "dogs",
      one: "dog",
      many: "dogs",
      label: "dog name",
      rows: 200,
      columns: [
        { name: "id", kind: "id", phrase: "number" },
        { name: "dog name", kind: "label", phrase: "name", values: Array.from({ length: 200 }, (_, i) => `Dog ${i}`) },
        { name: "group_id", kind: "ref", table: "group", phrase: "group", where: "in {v}" },
        { name: "friend_id", kind: "ref", table: "group", phrase: "friends", where: "friends with {v}", every: true },
        { name: "coat", kind: "category", phrase: "coat", plural: "coats", values: ["short", "long", "curly"] },
        { name: "born", kind: "integer", phrase: "year", low: 1, high: 5, follows: "group_id.since", summable: false },
        { name: "weight", kind: "real", phrase: "weight", low: 2, high: 90, skew: 3, decimals: 1, summable: true },
        {
          name: "came",
          kind: "date",
          phrase: "arrival",
          from: "2020-01-01",
          to: "2020-12-31",
          where: "arrived in {v}",
        },
        {
          name: "left",
          kind: "date",
          phrase: "departure",
          from: "2020-01-01",
          to: "2020-12-31",
          where: "gone in {v}",
          follows: "came",
          within: 10,
          nulls: 0.3,
        },
      ],
    },
    {
      name: "meetings",
      one: "meeting",
      many: "meetings",
      rows: 60,
      columns: [
        { name: "dog_id", kind: "ref", table: "dogs", phrase: "dog", where: "of {v}" },
        { name: "group_id", kind: "ref", table: "group", phrase: "group", where: "with {v}" },
      ],
    },
  ],
};

beforeAll(loadSqlite);

test("the same spec and seed give the same bytes, another seed gives others", () => {
  expect(buildWorld(spec, 1)).toEqual(buildWorld(spec, 1));
  expect(buildWorld(spec, 1)).not.toEqual(buildWorld(spec, 2));
});

test("the file opens, with declared keys and valid rows", () => {
  const database = new Database("kennel", buildWorld(spec, 1));
  expect(database.integrityErrors()).toEqual([]);
  expect(database.table("dogs")!.foreign_keys).toHaveLength(2);
  expect(database.table("group")!.columns[0]).toMatchObject({ name: "id", primary_key: true });
  const orphans = database.run(
    'SELECT COUNT(*) FROM dogs LEFT JOIN "group" ON dogs.group_id = "group".id WHERE "group".id IS NULL',
  );
  expect(orphans.ok && orphans.table.rows).toEqual([[0]]);
  database.close();
});

test("names that need quotes are quoted", () => {
  expect(ddlOf(spec, spec.tables[0]!)).toContain('CREATE TABLE "group"');
  expect(ddlOf(spec, spec.tables[1]!)).toContain('"dog name" TEXT NOT NULL');
  expect(ddlOf(spec, spec.tables[1]!)).toContain('REFERENCES "group"(id)');
});

test("values are in their ranges, skewed, and after the values that they depend on", () => {
  const { rows } = fillWorld(spec, 3);
  const groups = rows.get("group")!;
  const dogs = rows.get("dogs")!;
  expect(groups[0]).toEqual([1, "Early Birds", 1990]);
  expect(new Set(dogs.map((row) => row[1])).size).toBe(200);
  for (const [, , group, friend, , born, weight, came, left] of dogs) {
    expect(group).not.toBe(friend);
    const since = Number(groups[Number(group) - 1]![2]);
    expect(Number(born) - since).toBeGreaterThanOrEqual(1);
    expect(Number(born) - since).toBeLessThanOrEqual(5);
    expect(weight).toBeGreaterThanOrEqual(2);
    expect(came).toMatch(/^2020-\d\d-\d\d$/);
    if (left !== null) expect(String(left) >= String(came)).toBe(true);
  }
  const light = dogs.filter((row) => Number(row[6]) < 24).length;
  expect(light).toBeGreaterThan(100); // skew 3: most values are near the low end
  const short = dogs.filter((row) => row[4] === "short").length;
  expect(short).toBeGreaterThan(dogs.filter((row) => row[4] === "curly").length);
  const gone = dogs.filter((row) => row[8] === null).length;
  expect(gone).toBeGreaterThan(30);
  expect(gone).toBeLessThan(90);
});

test("some rows are never referenced, unless the spec requires all", () => {
  const { rows } = fillWorld(spec, 3);
  const dogs = rows.get("dogs")!;
  expect(new Set(dogs.map((row) => row[2])).size).toBeLessThan(20);
  expect(new Set(dogs.map((row) => row[3])).size).toBe(20);
});

test("rows of a link table do not repeat", () => {
  const meetings = fillWorld(spec, 3).rows.get("meetings")!;
  expect(new Set(meetings.map((row) => row.join())).size).toBe(60);
});

test("a spec that cannot be filled is refused", () => {
  const [group] = spec.tables;
  const few: WorldSpec = { ...spec, tables: [{ ...group!, rows: 30 }] };
  expect(() => fillWorld({ ...few, tables: [{ ...few.tables[0]!, given: undefined as never }] }, 1)).toThrow(
    /fewer values/,
  );
  expect(() => fillWorld({ ...spec, tables: spec.tables.slice(1) }, 1)).toThrow(/no table|without rows/);
});
