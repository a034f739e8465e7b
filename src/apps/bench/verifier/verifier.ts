// Measures the verifier's errors: right answers rejected, wrong answers accepted, and mutated queries accepted.

import type { DataSet } from "../../../gym/data/index.ts";
import { formatAnswer, MAX_ANSWER_LENGTH } from "../../../gym/data/index.ts";
import { type Gold, runGold, verifyAnswer, verifyResult } from "../../../gym/env/index.ts";
import { type Database, normalizeSql } from "../../../gym/sql/index.ts";
import { random } from "../../../random.ts";
import { rightAnswers } from "./answer-formats.ts";
import { MUTATIONS, RULES } from "./mutated-queries.ts";
import { rewriteQuery } from "./rewrites.ts";
import { wrongAnswers } from "./wrong-answers.ts";

type RuleName = keyof typeof RULES;
type Shares = Record<RuleName, number>;

export interface VerifierBench {
  readonly data: string;
  readonly questions: number;
  /** Number of wrong answers accepted; `false_rejects` counts right answers rejected. */
  readonly false_accepts: number;
  readonly false_rejects: number;
  /**
   * Number of gold queries whose outermost query orders rows, and how many of them have a LIMIT that cuts a tie, so
   * that a right query may return other rows.
   */
  readonly ordered: { readonly golds: number; readonly cut_ties: number };
  /**
   * Number of results (of gold, rewritten and mutated queries), and how many of them get one verdict when written out and
   * another when answered by `@last`, which stands for the last result.
   */
  readonly by_reference: { readonly tried: number; readonly differ: number };
  readonly tried: { readonly wrong: number; readonly right: number };
  /** Share of mutated queries whose result each rule set accepts. */
  readonly mutants: Shares;
  readonly by_mutation: Record<string, { readonly n: number } & Shares>;
  /** The first few failures, for inspection. */
  readonly examples: readonly string[];
}

const MAX_ROWS_TRIED = 200; // longer answers only cost time
const WAYS_OF_WRITING = ["plain", "JSON"] as const;

/** Tests the verifier on every question of a data set. */
export function benchVerifier(
  data: DataSet,
  onProgress: (done: number, all: number) => void = () => {},
): VerifierBench {
  const counts = {
    wrong: 0,
    right: 0,
    false_accepts: 0,
    false_rejects: 0,
    golds: 0,
    cut_ties: 0,
    results: 0,
    differ: 0,
  };
  const examples: string[] = [];
  const mutations = new Map<string, { n: number } & Shares>();
  data.questions.forEach((question, i) => {
    onProgress(i, data.questions.length);
    const database = data.databases.get(question.database_name);
    const gold = runGold(question, database);
    if (gold.ordered) counts.golds++;
    if (gold.ordered && gold.groups.some(({ rows, take }) => take < rows.length)) counts.cut_ties++;
    const fail = (kind: string, how: string, text: string) => {
      if (examples.length < 20)
        examples.push(`${kind} (${how}) ${question.question_id}: ${JSON.stringify(text.slice(0, 150))}`);
    };
    if (gold.rows.length <= MAX_ROWS_TRIED) {
      for (const { format, text } of rightTexts(gold, question.gold_sql, database, i)) {
        counts.right++;
        if (verifyAnswer(text, gold)) continue;
        counts.false_rejects++;
        fail("rejected", format, text);
      }
      for (const { change, text } of wrongTexts(gold, i)) {
        counts.wrong++;
        if (!verifyAnswer(text, gold)) continue;
        counts.false_accepts++;
        fail("accepted", change, text);
      }
    }
    countMutants(question.gold_sql, gold, database, mutations);
    const mutated = Object.values(MUTATIONS).map((mutate) => mutate(question.gold_sql));
    const rewritten = rewriteQuery(question.gold_sql).map(([, sql]) => sql);
    for (const sql of new Set([question.gold_sql, ...mutated, ...rewritten])) {
      const agrees = agreesWithText(sql, gold, database);
      if (agrees === undefined) continue;
      counts.results++;
      if (agrees) continue;
      counts.differ++;
      fail("judged otherwise by @last", "query", sql);
    }
  });
  const { wrong, right, false_accepts, false_rejects, golds, cut_ties, results: tried, differ } = counts;
  const total = [...mutations.values()].reduce((sum, row) => addTo(sum, row), {
    n: 0,
    set: 0,
    multiset: 0,
    ordered: 0,
    ours: 0,
  });
  return {
    data: data.name,
    questions: data.questions.length,
    false_accepts,
    false_rejects,
    ordered: { golds, cut_ties },
    by_reference: { tried, differ },
    tried: { wrong, right },
    mutants: sharesOf(total),
    by_mutation: Object.fromEntries([...mutations].map(([name, row]) => [name, { n: row.n, ...sharesOf(row) }])),
    examples,
  };
}

function rightTexts(gold: Gold, sql: string, database: Database, i: number): { format: string; text: string }[] {
  const rewritten = rewriteQuery(sql).flatMap(([name, query]) => {
    const result = database.run(query);
    return result.ok && result.table.rows.length > 0 ? [{ format: name, text: formatAnswer(result.table) }] : [];
  });
  return [...rightAnswers(gold, random("right", i)), ...rewritten];
}

function wrongTexts(gold: Gold, i: number): { change: string; text: string }[] {
  return wrongAnswers(gold, random("wrong", i)).flatMap(({ change, rows }) => {
    const columns = gold.columns.slice(0, rows[0]?.length ?? 0);
    const shown = { columns, types: gold.types, rows };
    if (rows.length === 0)
      return [
        { change, text: "" },
        { change, text: "[]" },
      ];
    return WAYS_OF_WRITING.map((way) => ({
      change,
      text: way === "plain" ? formatAnswer(shown) : JSON.stringify(plain(rows)),
    }));
  });
}

function plain(rows: readonly (readonly unknown[])[]): unknown {
  const cells = rows.map((row) => row.map((cell) => (typeof cell === "bigint" ? Number(cell) : cell)));
  return cells[0]?.length === 1 ? cells.map(([cell]) => cell) : cells;
}

/**
 * Whether a query's result gets the same verdict by its cells and by its text; undefined if there is no result that can
 * be written.
 */
function agreesWithText(sql: string, gold: Gold, database: Database): boolean | undefined {
  const result = database.run(sql);
  if (!result.ok || result.table.truncated || result.table.rows.length === 0) return undefined;
  const text = formatAnswer(result.table);
  return text.length > MAX_ANSWER_LENGTH ? undefined : verifyResult(result.table, gold) === verifyAnswer(text, gold);
}

function countMutants(
  sql: string,
  gold: Gold,
  database: Database,
  mutations: Map<string, { n: number } & Shares>,
): void {
  for (const [name, mutate] of Object.entries(MUTATIONS)) {
    const mutated = mutate(sql);
    if (normalizeSql(mutated) === normalizeSql(sql)) continue;
    const result = database.run(mutated);
    if (!result.ok || result.table.truncated) continue;
    const row = mutations.get(name) ?? { n: 0, set: 0, multiset: 0, ordered: 0, ours: 0 };
    mutations.set(name, row);
    row.n++;
    for (const rule of Object.keys(RULES) as RuleName[]) if (RULES[rule](result.table, gold)) row[rule]++;
  }
}

function addTo(sum: { n: number } & Shares, row: { n: number } & Shares): { n: number } & Shares {
  const add = (key: RuleName | "n") => sum[key] + row[key];
  return { n: add("n"), set: add("set"), multiset: add("multiset"), ordered: add("ordered"), ours: add("ours") };
}

function sharesOf({ n, set, multiset, ordered, ours }: { n: number } & Shares): Shares {
  const share = (count: number) => (n === 0 ? 0 : Math.round((count / n) * 1e4) / 1e4);
  return { set: share(set), multiset: share(multiset), ordered: share(ordered), ours: share(ours) };
}
