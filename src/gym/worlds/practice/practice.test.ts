import { beforeAll, expect, test } from "vitest";
import { cases } from "../../../../test/helpers/cases.ts";
import { UsageError } from "../../../errors.ts";
import { checkGold, DIFFICULTIES, difficultyOf, questionSchema } from "../../data/index.ts";
import { Database, loadSqlite, quoteName } from "../../sql/index.ts";
import { unseenNames } from "../bundled.ts";
import { FORMS } from "../forms/index.ts";
import type { WorldSpec } from "../spec.ts";
import { type PracticeWorld, practiceDataSet, practiceWorlds } from "./practice.ts";
import { namesOf, practiceWords, practiceWorld } from "./spec.ts";

beforeAll(async () => void (await loadSqlite()));

const range = (n: number) => Array.from({ length: n }, (_, i) => i);

function collect(seed: string, worlds: number): Omit<PracticeWorld, "database">[] {
  return [...practiceWorlds({ seed, worlds })].map(({ database: _, ...rest }) => rest);
}

test("a seed gives the same world, another seed another one", () => {
  expect(practiceWorld(7)).toEqual(practiceWorld(7));
  expect(practiceWorld(7)).not.toEqual(practiceWorld(8));
  expect(collect("same", 5)).toEqual(collect("same", 5));
  const [a, b] = [collect("one", 5), collect("two", 5)].map((worlds) =>
    worlds.flatMap(({ questions }) => questions.map(({ record }) => record.question_text)),
  );
  expect(a!.filter((text) => b!.includes(text))).toEqual([]);
});

test("worlds do not depend on those before them", () => {
  const [world] = practiceWorlds({ seed: 3, first: 6, worlds: 1 });
  const all = collect("3", 7);
  expect(world!.spec.name).toMatch(/_3_6$/);
  expect(practiceWorld("3_6")).toEqual(all[6]!.spec);
});

test("a world's database is closed when the next one is requested", () => {
  const worlds = practiceWorlds({ seed: "closing" });
  const first = worlds.next().value!;
  expect(first.database.run("SELECT 1").ok).toBe(true);
  worlds.next();
  expect(() => first.database.run("SELECT 1")).toThrow(/closed/);
  worlds.return();
});

test("every question is usable: its query runs, gives the stated answer, and has the stated difficulty", () => {
  let count = 0;
  const worlds = cases(40, 120);
  for (const { spec, bytes, questions } of collect("usable", worlds)) {
    const database = new Database(spec.name, bytes);
    expect(questions.length).toBe(8);
    for (const { record } of questions) {
      questionSchema.parse(record);
      expect(checkGold(record, database)).toMatchObject({ ok: true });
      expect(difficultyOf(record.gold_sql)).toBe(record.difficulty);
      expect(record.tables_involved.length).toBeGreaterThan(0);
      count++;
    }
    database.close();
  }
  expect(count).toBe(8 * worlds);
});

test("all forms occur, and easy and medium ones often", () => {
  const seen = new Map<string, number>();
  const forms = (difficulties: typeof DIFFICULTIES | readonly ["hard"], worlds: number) => {
    for (const { questions } of practiceWorlds({ seed: "forms", worlds, difficulties, questionsPerWorld: 16 })) {
      for (const { form } of questions) seen.set(form, (seen.get(form) ?? 0) + 1);
    }
  };
  forms(DIFFICULTIES, cases(150, 350));
  forms(["hard"], cases(60, 150));
  expect(FORMS.filter(({ name }) => !seen.has(name)).map(({ name }) => name)).toEqual([]);
  const plain = FORMS.filter(({ difficulty }) => difficulty !== "hard");
  expect(plain.filter(({ name }) => seen.get(name)! < 3).map(({ name }) => name)).toEqual([]);
});

test("questions read as sentences", () => {
  for (const { questions } of practiceWorlds({ seed: "sentences", worlds: cases(50, 150) })) {
    for (const { record } of questions) {
      const text = record.question_text;
      expect(text).toMatch(/^[\p{Lu}].*[?.]$/u);
      expect(text).not.toMatch(/undefined|NaN|null|[{}]| {2}|\b(the the|a a|of of|and and)\b| [?.,]/);
    }
  }
});

const specs: readonly WorldSpec[] = range(500).map((i) => practiceWorld(`names_${i}`));

test("five hundred worlds have thousands of names", () => {
  const tables = specs.flatMap((spec) => spec.tables.map((table) => table.name.toLowerCase()));
  const columns = specs.flatMap((spec) =>
    spec.tables.flatMap((table) => table.columns.map(({ name }) => name.toLowerCase())),
  );
  expect(tables.length).toBeGreaterThan(1000);
  expect(new Set(tables).size / tables.length).toBeGreaterThan(0.85);
  expect(new Set(columns).size).toBeGreaterThan(4000);
  expect(new Set(specs.map(({ name }) => name)).size).toBe(specs.length);
});

test("schemas vary: one to seven tables, all kinds of columns, keys between tables", () => {
  const sizes = new Set(specs.map(({ tables }) => tables.length));
  expect([...sizes].sort()).toEqual([1, 2, 3, 4, 5, 6, 7]);
  const columns = specs.flatMap((spec) => spec.tables.flatMap((table) => table.columns));
  expect(new Set(columns.map(({ kind }) => kind)).size).toBe(7);
  expect(columns.some(({ nulls }) => nulls)).toBe(true);
  expect(columns.some((column) => "low" in column && column.low < 0)).toBe(true);
  expect(specs.some((spec) => spec.tables.some(({ relation }) => relation))).toBe(true);
  for (const { tables } of specs) {
    for (const { rows, columns } of tables) {
      expect(rows).toBeGreaterThanOrEqual(4);
      expect(rows).toBeLessThanOrEqual(40);
      expect(new Set(columns.map(({ name }) => name.toLowerCase())).size).toBe(columns.length);
    }
  }
});

test("names have many styles, some of which need quotes, and quoted ones work", () => {
  const names = specs.flatMap(namesOf);
  for (const spelling of [
    /^[a-z]+_[a-z]+$/,
    /^[a-z]+[A-Z][a-z]+$/,
    /^[A-Z][a-z]+[A-Z]/,
    /^[A-Z]+_[A-Z]+$/,
    /^\w+ \w+/,
    /^tbl_/,
  ]) {
    expect(
      names.some((name) => spelling.test(name)),
      String(spelling),
    ).toBe(true);
  }
  expect(names.some((name) => /^\w+$/.test(name) && quoteName(name) !== name)).toBe(true);
  const quoted = [...practiceWorlds({ seed: "quoted", worlds: 50 })]
    .flatMap(({ questions }) => questions.map(({ record }) => record.gold_sql))
    .filter((sql) => sql.includes('"'));
  expect(quoted.length).toBeGreaterThan(10);
});

test("the share of invented words can be set", () => {
  const { people, places, things, adjectives } = practiceWords();
  const known = new Set([...people, ...places, ...things, ...adjectives].flatMap((noun) => noun.split(" ")));
  const inventedShareOf = (inventedShare: number) => {
    const nouns = range(100).flatMap((i) => practiceWorld(i, { inventedShare }).tables.filter(({ label }) => label));
    return nouns.filter(({ one }) => one.split(" ").some((word) => !known.has(word))).length / nouns.length;
  };
  expect(inventedShareOf(0)).toBe(0);
  expect(inventedShareOf(1)).toBeGreaterThan(0.98);
  expect(inventedShareOf(0.35)).toBeGreaterThan(0.25);
  expect(inventedShareOf(0.35)).toBeLessThan(0.45);
});

test("names of the unseen databases never occur as names or nouns", () => {
  // Ignores spelling: unit_price, UnitPrice and "unit price" count as one name.
  const bare = (name: string) => name.toLowerCase().replace(/[^a-z0-9]/g, "");
  const unseen = new Set([...unseenNames()].map(bare));
  expect(unseen.size).toBeGreaterThan(50);
  const used = new Set<string>();
  for (const i of range(cases(500, 1500))) {
    const spec = practiceWorld(`held_out_${i}`);
    used.add(bare(spec.name.replace(/_held_out_\d+$/, "")));
    for (const name of namesOf(spec)) used.add(bare(name));
    for (const { one, many } of spec.tables) used.add(bare(one)).add(bare(many));
  }
  expect([...unseen].filter((name) => used.has(name))).toEqual([]);
});

test("a data set has distinct questions whose databases are generated again when needed", () => {
  const data = practiceDataSet({ seed: 11, worlds: 6, questionsPerWorld: 4, difficulties: ["easy"] });
  expect(data.questions).toHaveLength(24);
  expect(data.questions[5]!.question_id).toBe("practice_11_1_train_1");
  expect(new Set(data.questions.map(({ question_id }) => question_id)).size).toBe(24);
  expect(data.databases.names).toHaveLength(6);
  for (const question of data.questions) {
    expect(question.difficulty).toBe("easy");
    expect(checkGold(question, data.databases.get(question.database_name)).ok).toBe(true);
  }
  const [first] = practiceWorlds({ seed: 11, worlds: 1 });
  expect(data.file!(first!.spec.name)).toEqual(first!.bytes);
  data.databases.close();
});

test("options that cannot be used are refused", () => {
  expect(() => practiceWorlds({ seed: 1, worlds: -1 }).next()).toThrow(UsageError);
  expect(() => practiceWorlds({ seed: 1, inventedShare: 2 }).next()).toThrow(/0 to 1/);
  expect(() => practiceWorlds({ seed: 1, difficulties: [] }).next()).toThrow(/difficulties/);
});
