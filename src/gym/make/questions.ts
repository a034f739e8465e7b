// Writes questions about a database: draws from every form, runs each gold query and keeps what is worth asking.
import { type Random, random } from "../../random.ts";
import {
  answerTypeOf,
  DIFFICULTIES,
  type Difficulty,
  formatAnswer,
  type QuestionRecord,
  tablesInvolved,
} from "../data/index.ts";
import { runGold, verifyAnswer } from "../env/index.ts";
import { type Database, normalizeSql, quoteName, type ResultTable } from "../sql/index.ts";
import { hasTies } from "../worlds/ask.ts";
import type { World } from "../worlds/build.ts";
import { plural } from "../worlds/english.ts";
import { type Draft, FORMS, type Form } from "../worlds/forms/index.ts";
import { labelOf } from "../worlds/inspect-world.ts";
import { isPluralPhrase } from "./column-words.ts";
import { OWN_FORMS } from "./forms.ts";
import { faultOfText, isOdd, isRedundant } from "./reject.ts";

/** Why drawn questions were not kept. */
export const DROP_REASONS = [
  "gold_fails",
  "empty",
  "nulls",
  "zero",
  "too_long",
  "one_row_expected",
  "several_rows_expected",
  "repeated_rows",
  "ties",
  "redundant",
  "trivial_condition",
  "unclear_text",
  "answer_in_text",
  "ambiguous_text",
  "common_answer",
  "verifier_refuses",
] as const;

export type DropReason = (typeof DROP_REASONS)[number];

/** A question without id and split. */
export type Written = Omit<QuestionRecord, "question_id" | "split"> & { readonly form: string };

export interface WriteOptions {
  readonly seed: number;
  /** Number of questions wanted. */
  readonly questions: number;
  /** Maximum phrasings of one query. */
  readonly phrasings: number;
}

export interface WrittenQuestions {
  readonly questions: readonly Written[];
  /** Number of different gold queries. */
  readonly queries: number;
  readonly dropped: Readonly<Partial<Record<DropReason, number>>>;
  /** Forms that gave no question. */
  readonly unused_forms: readonly string[];
}

const SHARES: Readonly<Record<Difficulty, number>> = { easy: 0.4, medium: 0.35, hard: 0.25 };

/** Share of the questions that may be further phrasings of a query that is already asked. */
const REPHRASED = 0.25;
/** Maximum rows and characters of an answer, which a player must write out. */
const MAX_ROWS = 12;
const MAX_CHARACTERS = 400;
/** Maximum share of questions with the same answer: a model should not learn to answer "1". */
const MAX_SAME_ANSWER = 0.08;
/** Draws of one form without a new query before it is given up, and draws per round. */
const MAX_MISSES = 60;
const DRAWS = 12;
const SURPLUS = 1.3;
/** Instructions of a gold query, a sixth of what a player's query may take. */
const MAX_GOLD_INSTRUCTIONS = 5_000_000;
/** Maximum queries that differ only in their values; doubled while too few others can be made. */
const ALIKE = 4;

interface Query {
  readonly form: Form;
  readonly gold_sql: string;
  readonly table: ResultTable;
  readonly texts: string[];
}

/** Writes questions about a database in several variants of one world. */
export function writeQuestions(
  variants: readonly World[],
  database: Database,
  { seed, questions: wanted, phrasings }: WriteOptions,
): WrittenQuestions {
  const dropped: Partial<Record<DropReason, number>> = {};
  const drop = (reason: DropReason) => {
    dropped[reason] = (dropped[reason] ?? 0) + 1;
  };
  const queries = new Map<string, Query | null>(); // null: a query that was tried and not kept
  const asked = new Map<string, string>(); // the query of each text: a second query with the same text is dropped
  const answers = new Map<string, number>();
  const maxSame = Math.max(4, Math.ceil(MAX_SAME_ANSWER * wanted));
  const r = random("make", seed, database.name);
  const forms = [...FORMS, ...OWN_FORMS];
  const state = new Map(forms.map((form) => [form.name, { draws: 0, misses: 0, kept: 0 }]));
  const perDifficulty = () =>
    Object.fromEntries(
      DIFFICULTIES.map((difficulty) => [
        difficulty,
        [...queries.values()].filter((query) => query?.form.difficulty === difficulty).length,
      ]),
    ) as Record<Difficulty, number>;
  const shapes = new Map<string, number>();
  const plurals = pluralPhrases(variants);
  let maxAlike = ALIKE;
  for (let round = 0; ; round++) {
    const counts = perDifficulty();
    const open = forms.filter(
      ({ name, difficulty }) =>
        state.get(name)!.misses < MAX_MISSES && counts[difficulty] < SURPLUS * SHARES[difficulty] * wanted,
    );
    if (open.length === 0) {
      const isShort = DIFFICULTIES.some((one) => counts[one] < SHARES[one] * wanted);
      if (!isShort || maxAlike > ALIKE * 8) break;
      maxAlike *= 2; // a small database gives few shapes of queries, so each is used more often
      for (const own of state.values()) own.misses = 0;
      continue;
    }
    for (const form of r.fork(round).shuffle(open)) drawNew(form);
  }

  /** Draws until there is a new query. */
  function drawNew(form: Form): void {
    const own = state.get(form.name)!;
    for (let draw = 0; draw < DRAWS && own.misses < MAX_MISSES; draw++) {
      own.misses++;
      if (!tryDraw(form, own.draws++)) continue;
      own.misses = 0;
      own.kept++;
      return;
    }
  }

  function tryDraw(form: Form, index: number): boolean {
    const [first] = make(form, variants[0]!, r.fork(form.name, index));
    if (!first) return false;
    const key = normalizeSql(first.gold_sql);
    if (queries.has(key)) return false;
    const shape = shapeOf(first.gold_sql);
    if ((shapes.get(shape) ?? 0) >= maxAlike) return false;
    queries.set(key, null);
    const judged = judge(form, first.gold_sql, database);
    if (typeof judged === "string") {
      drop(judged);
      return false;
    }
    const others = variants.slice(1).flatMap((world) => make(form, world, r.fork(form.name, index)));
    const all = [first, ...others]
      .filter(({ gold_sql }) => gold_sql === first.gold_sql)
      .flatMap(({ phrasings }) => phrasings)
      .map((text) => withLabel(withoutArticles(text, plurals), first.gold_sql, variants[0]!, form.several));
    const texts = keepTexts([...new Set(all)], key, judged, form);
    if (texts.length > 0) shapes.set(shape, (shapes.get(shape) ?? 0) + 1);
    if (texts.length === 0) return false;
    const answer = formatAnswer(judged).toLowerCase();
    const same = answers.get(answer) ?? 0;
    if (same >= maxSame) {
      drop("common_answer");
      return false;
    }
    answers.set(answer, same + 1);
    queries.set(key, {
      form,
      gold_sql: first.gold_sql,
      table: judged,
      texts: r.fork(form.name, index, "order").shuffle(texts),
    });
    return true;
  }

  function keepTexts(texts: readonly string[], key: string, table: ResultTable, form: Form): string[] {
    const answer = table.rows.length === 1 && table.rows[0]!.length === 1 ? table.rows[0]![0] : undefined;
    const kept = texts.filter((text) => {
      const fault = faultOfText(text, typeof answer === "string" ? answer : undefined);
      const odd = fault === undefined && isOdd(text, form.name);
      if (fault || odd) drop(fault ?? "unclear_text");
      return !fault && !odd;
    });
    return kept.filter((text) => {
      const flat = text.toLowerCase();
      const other = asked.get(flat);
      if (other !== undefined && other !== key) {
        drop("ambiguous_text");
        const query = queries.get(other);
        if (query) {
          const at = query.texts.findIndex((one) => one.toLowerCase() === flat);
          if (at >= 0) query.texts.splice(at, 1);
        }
        return false;
      }
      asked.set(flat, key);
      return true;
    });
  }

  const usable = [...queries.values()].filter((query): query is Query => query !== null && query.texts.length > 0);
  const questions = choose(usable, wanted, phrasings, r.fork("choose")).map(
    ({ query, text }): Written => ({
      question_text: text,
      database_name: database.name,
      gold_sql: query.gold_sql,
      gold_answer: formatAnswer(query.table),
      answer_type: answerTypeOf(query.table),
      difficulty: query.form.difficulty,
      tables_involved: tablesInvolved(query.gold_sql, database.tables),
      form: query.form.name,
    }),
  );
  return {
    questions,
    queries: new Set(questions.map(({ gold_sql }) => gold_sql)).size,
    dropped,
    unused_forms: forms.filter(({ name }) => state.get(name)!.kept === 0).map(({ name }) => name),
  };
}

/** A form's draft; none if the world has nothing for it, such as no table with names. */
function make(form: Form, world: World, r: Random): Draft[] {
  if (world.spec.tables.length === 0) return [];
  try {
    const draft = form.make(world, r);
    return draft ? [draft] : [];
  } catch (error) {
    if (error instanceof RangeError) return []; // a pick from an empty list
    throw error;
  }
}

/** Runs a query; returns its result, or why it is not worth asking. */
function judge(form: Form, gold_sql: string, database: Database): ResultTable | DropReason {
  if (isRedundant(gold_sql)) return "redundant";
  const result = database.run(gold_sql, { maxRows: MAX_ROWS + 1, maxInstructions: MAX_GOLD_INSTRUCTIONS });
  if (!result.ok) return "gold_fails";
  const { table } = result;
  const { rows } = table;
  if (rows.length === 0) return "empty";
  if (rows.length > MAX_ROWS || table.truncated || formatAnswer(table).length > MAX_CHARACTERS) return "too_long";
  if (rows.some((row) => row.some((cell) => cell === null || cell === ""))) return "nulls";
  if (form.several ? rows.length < 2 : false) return "several_rows_expected";
  if (!form.several && rows.length !== 1) return "one_row_expected";
  if (rows.length === 1 && rows[0]!.length === 1 && rows[0]![0] === 0) return "zero";
  if (new Set(rows.map((row) => JSON.stringify(row.map(String)))).size < rows.length) return "repeated_rows";
  if (hasTies(gold_sql, database)) return "ties";
  if (isTrivial(gold_sql, table, database)) return "trivial_condition";
  const question = { question_id: form.name, gold_sql };
  if (!verifyAnswer(formatAnswer(table), runGold(question, database))) return "verifier_refuses";
  return table;
}

/** Whether a condition changes nothing: the same query without it has the same result. */
function isTrivial(sql: string, table: ResultTable, database: Database): boolean {
  const [, before, where] = /^(SELECT (?!.*\bSELECT\b).*?) WHERE (.*)$/.exec(sql) ?? [];
  if (before === undefined || where === undefined || /^SELECT (?:MAX|MIN)\(/.test(before)) return false;
  const rest = / (?:GROUP BY|ORDER BY) .*$/.exec(where)?.[0] ?? "";
  if (/ORDER BY/.test(rest)) return false;
  const plain = database.run(`${before}${rest}`);
  return plain.ok && JSON.stringify(plain.table.rows) === JSON.stringify(table.rows);
}

/** A query without its values: queries of one shape ask the same of other values. */
function shapeOf(sql: string): string {
  return sql.replace(/'(?:[^']|'')*'|(?<![\w"])\d+(?:\.\d+)?/g, "?");
}

/** Phrases in the plural, which the forms' articles do not fit. */
function pluralPhrases(variants: readonly World[]): string[] {
  const phrases = variants.flatMap(({ spec }) =>
    spec.tables.flatMap(({ columns }) => columns.map(({ phrase }) => phrase)),
  );
  return [...new Set(phrases)].filter((phrase) => !phrase.startsWith("number of ") && isPluralPhrase(phrase));
}

/** "an earnings above" without the article, and "What is the highest earnings" in the plural. */
function withoutArticles(text: string, plurals: readonly string[]): string {
  return plurals.reduce((said, phrase) => {
    const at = said.indexOf(phrase);
    if (at < 0) return said;
    const before = said
      .slice(0, at)
      .replace(/\ban? ((?:above|below)-average |higher |lower |recorded )?$/, "$1")
      .replace(/^What is (the (?:highest |lowest |average |total |combined )?)$/, "What are $1");
    return before + said.slice(at);
  }, text);
}

/** Says what to answer with where a row is named by something other than its name: "Give the last name." */
function withLabel(text: string, sql: string, { spec }: World, several = false): string {
  const selected = /^SELECT (?:DISTINCT )?(.+?) FROM /.exec(sql)?.[1]?.split(", ")[0];
  if (selected === undefined) return text;
  const column = selected.split(".").at(-1)!.replaceAll('"', "");
  const tables = selected.includes(".")
    ? spec.tables.filter(({ name }) => name === selected.split(".")[0]!.replaceAll('"', ""))
    : spec.tables.filter(({ name }) => `${sql} `.includes(` FROM ${quoteName(name)} `));
  const label = tables.map(labelOf).find((one) => one?.name === column);
  if (!label || (/(?:^| )(?:name|title)$/.test(label.phrase) && label.phrase.split(" ").length === 1)) return text;
  const flat = text.toLowerCase();
  const [one, many] = [label.phrase.toLowerCase(), plural(label.phrase).toLowerCase()];
  if (flat.includes(one) || flat.includes(many)) return text;
  return `${text} Give the ${several ? plural(label.phrase) : label.phrase}.`;
}

/** Chooses questions: each difficulty's share, every form in turn, then further phrasings. */
function choose(
  queries: readonly Query[],
  wanted: number,
  phrasings: number,
  r: Random,
): { readonly query: Query; readonly text: string }[] {
  const pools = DIFFICULTIES.map((difficulty) =>
    inTurn(
      queries.filter(({ form }) => form.difficulty === difficulty),
      r,
    ),
  );
  const chosen: { query: Query; text: string }[] = [];
  const rounded = DIFFICULTIES.slice(0, -1).map((difficulty) => Math.round(SHARES[difficulty] * wanted));
  const quotas = [...rounded, wanted - rounded.reduce((sum, count) => sum + count, 0)];
  const take = (pool: readonly Query[], from: number, count: number, most: number): number => {
    let taken = 0;
    for (let phrase = from; phrase < most && taken < count; phrase++) {
      for (const query of pool) {
        if (taken >= count) break;
        const text = query.texts[phrase];
        if (text === undefined) continue;
        chosen.push({ query, text });
        taken++;
      }
    }
    return taken;
  };
  const different = pools.map((pool, i) => pool.slice(0, Math.round((1 - REPHRASED) * quotas[i]!)));
  const spare = pools.map((pool, i) => pool.slice(different[i]!.length));
  different.forEach((pool, i) => {
    const first = take(pool, 0, quotas[i]!, 1);
    const more = take(pool, 1, quotas[i]! - first, phrasings);
    take(spare[i]!, 0, quotas[i]! - first - more, phrasings);
  });
  // If one difficulty has too few questions, the others make up for it.
  const used = new Set(chosen.map(({ text }) => text));
  for (let phrase = 0; phrase < phrasings && chosen.length < wanted; phrase++) {
    for (const query of inTurn(queries, r)) {
      const text = query.texts[phrase];
      if (text === undefined || used.has(text) || chosen.length >= wanted) continue;
      used.add(text);
      chosen.push({ query, text });
    }
  }
  return r.fork("mix").shuffle(chosen);
}

/** Orders queries so that forms alternate. */
function inTurn(queries: readonly Query[], r: Random): Query[] {
  const byForm = new Map<string, Query[]>();
  for (const query of r.fork("turn").shuffle(queries)) {
    byForm.set(query.form.name, [...(byForm.get(query.form.name) ?? []), query]);
  }
  const lists = [...byForm.values()];
  const most = Math.max(0, ...lists.map(({ length }) => length));
  return Array.from({ length: most }, (_, i) => lists.flatMap((list) => list[i] ?? [])).flat();
}
