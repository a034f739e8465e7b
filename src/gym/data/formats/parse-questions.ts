// Parses JSON question files into drafts. A broken file is an error; a broken record is rejected and the others are
// kept.
import { z } from "zod";
import { QuestionLoadError } from "../../../errors.ts";
import type { Rejection } from "../dataset.ts";
import { ANSWER_TYPES, DIFFICULTIES, type Difficulty, type Split } from "../question.ts";
import type { QuestionDraft } from "./build-questions.ts";

export interface QuestionFile {
  readonly drafts: readonly QuestionDraft[];
  readonly rejected: readonly Rejection[];
}

export interface ParseOptions {
  /** File name for error messages. */
  readonly file: string;
  /** Split of records that name none. @default "train" */
  readonly split?: Split;
}

const text = z.string().trim().min(1);

const seedsRecord = z.object({
  question_id: z.union([text, z.int().transform(String)]).optional(),
  question_text: text,
  database_name: text,
  gold_sql: text,
  gold_answer: z.unknown().optional(),
  answer_type: z.enum(ANSWER_TYPES).optional(),
  difficulty: z.enum(DIFFICULTIES).optional(),
  tables_involved: z.array(z.string()).optional(),
  split: z.enum(["train", "eval", "dev", "test"]).optional(),
});

/** Spider-Syn's records hold Spider's question and a rewritten one; the rewritten one is asked. */
const spiderRecord = z.preprocess(
  (record) => {
    const { SpiderSynQuestion } = (record ?? {}) as { SpiderSynQuestion?: unknown };
    return SpiderSynQuestion === undefined ? record : { ...(record as object), question: SpiderSynQuestion };
  },
  z.object({
    db_id: text,
    question: text,
    query: text,
    split: z.enum(["train", "eval", "dev", "test"]).optional().catch(undefined),
  }),
);

const BIRD_DIFFICULTY: Readonly<Record<string, Difficulty>> = {
  simple: "easy",
  moderate: "medium",
  challenging: "hard",
};

const birdRecord = z.object({
  db_id: text,
  question: text,
  SQL: text,
  evidence: z.string().nullish(),
  difficulty: z.enum(["simple", "moderate", "challenging"]).optional(),
});

/**
 * Reads an array of question records in the native format; only text, database and gold query are required.
 *
 * @example
 * const json = '[{ "question_text": "How many?", "database_name": "shop", "gold_sql": "SELECT count(*) FROM item" }]';
 * const { drafts } = parseQuestions(json, { file: "questions.json" });
 */
export function parseQuestions(json: string, options: ParseOptions): QuestionFile {
  return parseRecords(json, options, seedsRecord, ({ split, ...record }) => ({ ...record, split: splitOf(split) }));
}

/** Reads Spider's format (db_id, question, query) and Spider-Syn's. */
export function parseSpider(json: string, options: ParseOptions): QuestionFile {
  return parseRecords(json, options, spiderRecord, ({ db_id, question, query, split }) => ({
    question_text: question,
    database_name: db_id,
    gold_sql: query,
    split: splitOf(split),
  }));
}

/**
 * Reads BIRD's format: like Spider's, but with `SQL` instead of `query`, a difficulty, and evidence. Appends the
 * evidence to the question unless `evidence` is false.
 */
export function parseBird(json: string, options: ParseOptions & { readonly evidence?: boolean }): QuestionFile {
  return parseRecords(json, options, birdRecord, ({ db_id, question, SQL, evidence, difficulty }) => ({
    question_text: options.evidence !== false && evidence?.trim() ? `${question} Hint: ${evidence.trim()}` : question,
    database_name: db_id,
    gold_sql: SQL,
    difficulty: difficulty && BIRD_DIFFICULTY[difficulty],
    split: undefined,
  }));
}

type Draft = Omit<QuestionDraft, "split"> & { readonly split: Split | undefined };

function splitOf(name: string | undefined): Split | undefined {
  return name === undefined ? undefined : name === "train" ? "train" : "eval";
}

function parseRecords<T>(
  json: string,
  { file, split = "train" }: ParseOptions,
  schema: z.ZodType<T>,
  toDraft: (record: T) => Draft,
): QuestionFile {
  const drafts: QuestionDraft[] = [];
  const rejected: Rejection[] = [];
  parseArray(json, file).forEach((record, index) => {
    const parsed = schema.safeParse(record);
    if (parsed.success) {
      const draft = toDraft(parsed.data);
      drafts.push({ ...draft, split: draft.split ?? split });
    } else {
      const detail = malformed(record, parsed.error.issues[0]!, `${file}[${index}]`);
      rejected.push({ question_id: idOf(record) ?? `${file}[${index}]`, split, reason: "malformed", detail });
    }
  });
  return { drafts, rejected };
}

function parseArray(json: string, file: string): unknown[] {
  const body = json.replace(/^\uFEFF/, "");
  if (body.trim() === "") {
    throw new QuestionLoadError({
      what: "question file is empty",
      value: file,
      remedy: "it should hold a JSON array of questions",
    });
  }
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new QuestionLoadError({
      what: "question file is not JSON",
      value: file,
      remedy: `it should hold a JSON array of questions (${reason})`,
      cause,
    });
  }
  if (!Array.isArray(value)) {
    throw new QuestionLoadError({
      what: `question file holds ${kindOf(value)}, not an array`,
      value: file,
      remedy: "put the questions into one JSON array",
    });
  }
  if (value.length === 0) {
    throw new QuestionLoadError({
      what: "question file has no questions",
      value: file,
      remedy: "put at least one into its array",
    });
  }
  return value;
}

/** Formats a validation error as one line: location, field, value, expected type. */
function malformed(record: unknown, issue: z.core.$ZodIssue, where: string): string {
  const [field] = issue.path;
  if (field === undefined) return `${where} is ${kindOf(record)}; it should be an object`;
  if (field === "question_text" && (record as { db_id?: unknown }).db_id !== undefined)
    return `${where} has the keys of Spider or BIRD (db_id, question); import the folder it comes from with sqlenv data import`;
  const value = (record as Record<string, unknown>)[String(field)];
  const shown = value === undefined ? "missing" : (JSON.stringify(value) ?? String(value)).slice(0, 80);
  return `${where}.${issue.path.join(".")} is ${shown}; ${expected(issue)}`;
}

function expected(issue: z.core.$ZodIssue): string {
  if (issue.code === "invalid_value") return `it should be one of ${issue.values.join(", ")}`;
  if (issue.code === "invalid_union") return "it should be a string or a whole number"; // only ids are a union
  if (issue.code === "too_small") return "it should not be empty";
  if (issue.code === "invalid_type")
    return `it should be ${issue.expected === "array" ? "an array" : `a ${issue.expected}`}`;
  return issue.message;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

function idOf(record: unknown): string | undefined {
  const id = (record as { question_id?: unknown } | null)?.question_id;
  if (Number.isInteger(id)) return String(id);
  return typeof id === "string" && id !== "" ? id : undefined;
}
