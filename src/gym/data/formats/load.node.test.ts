import { join } from "node:path";
import { expect, test } from "vitest";
import { petsDatabase, temporaryFolder, writeFiles } from "../../../../test/helpers/data-files.ts";
import { databaseFolder, findDatabases } from "./databases.node.ts";
import { loadQuestions, splitOfFile } from "./load.node.ts";

const question = { question_text: "How many pets?", database_name: "pets", gold_sql: "SELECT count(*) FROM pet" };

async function folderWith(
  files: Record<string, string | Uint8Array | object>,
): Promise<{ questions: string; databases: string }> {
  const folder = temporaryFolder();
  writeFiles(folder, { "db/pets/pets.sqlite": await petsDatabase(), ...files });
  return { questions: join(folder, "q.json"), databases: join(folder, "db") };
}

test("missing fields are derived from the database", async () => {
  const { questions, databases } = await folderWith({
    "q.json": [question, { ...question, gold_sql: "SELECT city, weight FROM pet JOIN owner ON owner.id = owner_id" }],
  });
  const dataset = await loadQuestions(questions, databases);
  expect(dataset.rejected).toEqual([]);
  expect(dataset.questions[0]).toEqual({
    ...question,
    question_id: "pets_train_000",
    gold_answer: "3",
    answer_type: "integer",
    difficulty: "easy",
    tables_involved: ["pet"],
    split: "train",
  });
  expect(dataset.questions[1]).toMatchObject({
    question_id: "pets_train_001",
    gold_answer: "Paris | 12.5\nParis | 4.0\nRome | NULL",
    answer_type: "table",
    difficulty: "medium",
    tables_involved: ["pet", "owner"],
  });
});

test("questions that cannot be used are rejected one by one, with the reason", async () => {
  const { questions, databases } = await folderWith({
    "q.json": [
      { ...question, question_id: "ok" },
      { ...question, question_id: "ok" },
      { ...question, question_id: "absent", database_name: "zoo" },
      { ...question, question_id: "torn", database_name: "torn" },
      { ...question, question_id: "text", database_name: "text" },
      { ...question, question_id: "secret", database_name: "secret" },
      { ...question, question_id: "logged", database_name: "logged" },
      { ...question, question_id: "stale", gold_answer: "4" },
      { ...question, question_id: "strange", tables_involved: ["dragon"] },
      { ...question, question_id: "typed", gold_sql: 5 },
    ],
    "db/torn.sqlite": (await petsDatabase()).subarray(0, 5000),
    "db/text.db": "just some text, longer than a header ".repeat(20),
    "db/secret/secret.sqlite": Uint8Array.from({ length: 4096 }, (_, i) => (i * 197 + 31) & 255),
    "db/logged/logged.sqlite": await petsDatabase(),
    "db/logged/logged.sqlite-wal": "changes",
  });
  const dataset = await loadQuestions(questions, databases);
  expect(dataset.questions.map(({ question_id }) => question_id)).toEqual(["ok"]);
  const reasons = Object.fromEntries(
    dataset.rejected.map(({ question_id, reason, detail }) => [question_id, [reason, detail]]),
  );
  expect(reasons).toEqual({
    ok: ["duplicate_id", expect.any(String)],
    absent: ["database_missing", "there is no database zoo"],
    torn: ["database_bad", expect.stringContaining("truncated")],
    text: ["database_bad", expect.stringContaining("not a SQLite database")],
    secret: ["database_bad", expect.stringContaining("encrypted")],
    logged: ["database_bad", expect.stringContaining("wal_checkpoint")],
    stale: ["gold_mismatch", "gold_answer is 4, the query gives 3"],
    strange: ["malformed", expect.stringContaining("dragon")],
    typed: ["malformed", "q.json[9].gold_sql is 5; it should be a string"],
  });
});

test("a missing file, a missing folder and a set without usable questions are errors that say what to do", async () => {
  const { questions, databases } = await folderWith({
    "q.json": [{ ...question, database_name: "zoo" }],
    "empty/x.txt": "",
  });
  await expect(loadQuestions(`${questions}x`, databases)).rejects.toThrow(
    /question file not found: .*q\.jsonx; check the path/,
  );
  await expect(loadQuestions(questions, `${databases}x`)).rejects.toThrow(/database folder cannot be read: .*dbx/);
  await expect(loadQuestions(questions, join(databases, "../empty"))).rejects.toThrow(/no databases found/);
  await expect(loadQuestions(questions, databases)).rejects.toThrow(
    /no usable question: 1 database_missing; the first: zoo_train_000/,
  );
  await expect(loadQuestions(databases, databases)).rejects.toThrow(/question file cannot be read/);
  await expect(loadQuestions([], databases)).rejects.toThrow(/no question file given/);
});

test("databases are found nested and flat, and strings in double quotes only where asked for", async () => {
  const folder = temporaryFolder();
  const pets = await petsDatabase();
  writeFiles(folder, {
    "a/a.sqlite": pets,
    "b.db": pets,
    "c/c.sqlite3": pets,
    "d/other.sqlite": pets,
    "notes.txt": "",
    "E.SQLITE": pets,
    "F/F.Db": pets,
  });
  expect([...findDatabases(folder).keys()].sort()).toEqual(["E", "F", "a", "b", "c"]);
  const ada = 'SELECT id FROM owner WHERE name = "Ada"';
  expect(databaseFolder(folder).databases.get("a").run(ada).ok).toBe(false);
  expect(databaseFolder(folder, { doubleQuotedStrings: true }).databases.get("b").run(ada).ok).toBe(true);
});

test("a UTF-16 database is refused, with a remedy that changes the encoding", async () => {
  const pets = Uint8Array.from(await petsDatabase());
  pets[59] = 2; // the header's text encoding
  const { questions, databases } = await folderWith({ "q.json": [question], "db/pets/pets.sqlite": pets });
  await expect(loadQuestions(questions, databases)).rejects.toThrow(
    /database is encoded in UTF-16: .*pets\.sqlite; .*\.dump \| sqlite3 new\.sqlite/,
  );
});

test("ids may be whole numbers", async () => {
  const { questions, databases } = await folderWith({
    "q.json": [
      { ...question, question_id: 7 },
      { ...question, question_id: {} },
    ],
  });
  const dataset = await loadQuestions(questions, databases);
  expect(dataset.questions.map(({ question_id }) => question_id)).toEqual(["7"]);
  expect(dataset.rejected[0]!.detail).toBe("q.json[1].question_id is {}; it should be a string or a whole number");
});

test("a file's name determines its split", () => {
  const names = [
    "questions_eval.json",
    "dev.json",
    "x/test.json",
    "val.json",
    "Spider-DK.json",
    "spider-realistic.json",
  ];
  expect(names.map(splitOfFile)).toEqual(names.map(() => "eval"));
  expect(["questions_train.json", "q.json", "latest.json", "devices.json"].map(splitOfFile)).toEqual(
    Array(4).fill("train"),
  );
});
