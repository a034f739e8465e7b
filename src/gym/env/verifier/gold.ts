// The right answers to a question: the gold query's result, and every other result that SQL allows for it. Rows tied in
// the gold's order may come in any order, and if LIMIT cuts through a tie, any of its rows is right.
import { SqlEnvError } from "../../../errors.ts";
import { type AnswerType, answerTypeOf, MAX_GOLD_BYTES, MAX_GOLD_ROWS, type QuestionRecord } from "../../data/index.ts";
import {
  type Cell,
  type Database,
  normalizeSql,
  quoteName,
  type ResultTable,
  type SqlToken,
  tokenizeSql,
} from "../../sql/index.ts";

/** Size limits for a result that must be read completely. */
export const MAX_GOLD = { maxRows: MAX_GOLD_ROWS, maxBytes: MAX_GOLD_BYTES } as const;

/** Consecutive rows of the answer: any `take` of `rows`, in any order. */
export interface TieGroup {
  readonly rows: readonly (readonly Cell[])[];
  readonly take: number;
}

export interface Gold extends ResultTable {
  readonly answer_type: AnswerType;
  /** Whether the outermost query orders its rows. */
  readonly ordered: boolean;
  /** In the order required of the answer; a single group if order does not matter. */
  readonly groups: readonly TieGroup[];
  /** Virtual-machine instructions that the gold query took. */
  readonly instructions: number;
}

/** Runs a question's gold query and finds ties. Throws SqlEnvError `bad_gold` if it gives no usable answer. */
export function runGold(question: Pick<QuestionRecord, "question_id" | "gold_sql">, database: Database): Gold {
  const result = database.run(question.gold_sql, MAX_GOLD);
  const refuse = (what: string, value?: string) =>
    new SqlEnvError("bad_gold", { what: `question ${question.question_id}: ${what}`, value, remedy: "leave it out" });
  if (!result.ok) throw refuse("the gold query fails", result.error.message);
  const { table } = result;
  if (table.truncated) throw refuse("the gold result is too large", table.truncated);
  if (table.rows.length === 0) throw refuse("the gold query gives no rows");
  if (table.rows.every((row) => row.every((cell) => cell === null))) throw refuse("the gold query gives only NULLs");
  const clauses = withLimit(outermostClauses(question.gold_sql), database);
  const groups = tieGroups(clauses, table, database);
  const { instructions } = result;
  return { ...table, answer_type: answerTypeOf(table), ordered: clauses.order !== undefined, groups, instructions };
}

interface Clauses {
  /** Everything before ORDER BY and LIMIT. */
  readonly core: string;
  /** Terms of the outermost ORDER BY, as written. */
  readonly order: readonly string[] | undefined;
  readonly limit: number | undefined;
  readonly offset: number;
  /** LIMIT's text if it is an expression; then `limit` is NaN. */
  readonly limitText?: string;
}

/**
 * Finds ORDER BY and LIMIT of the outermost query. In subqueries and window functions they are inside parentheses and
 * skipped.
 */
export function outermostClauses(sql: string): Clauses {
  const tokens = tokenizeSql(sql).filter((token) => token.text !== ";");
  const outer = tokens.filter((token) => token.depth === 0);
  const orderAt = outer.findLastIndex((token, i) => token.key === "ORDER" && outer[i + 1]?.key === "BY");
  const limitAt = outer.findLastIndex((token) => token.key === "LIMIT");
  const order = orderAt < 0 ? undefined : outer[orderAt]!;
  const limit = limitAt < 0 || limitAt < orderAt ? undefined : outer[limitAt]!;
  const end = tokens.at(-1)?.end ?? sql.length;
  const core = sql.slice(0, order?.start ?? limit?.start ?? end).trim();
  const terms = order
    ? splitAtCommas(sql, outer[orderAt + 1]!.end, limit?.start ?? end, tokens).map((term) => term.trim())
    : undefined;
  return { core, order: terms, ...(limit ? readLimit(sql.slice(limit.end, end)) : { limit: undefined, offset: 0 }) };
}

function readLimit(text: string): { limit: number | undefined; offset: number; limitText?: string } {
  const match = /^\s*(-?\d+)\s*(?:(,|offset)\s*(\d+)\s*)?$/i.exec(text.replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, " "));
  if (!match) return { limit: Number.NaN, offset: 0, limitText: text };
  const [first, second] = [Number(match[1]), Number(match[3] ?? 0)];
  const [limit, offset] = match[2] === "," ? [second, first] : [first, second];
  return { limit: limit < 0 ? undefined : limit, offset };
}

/** Evaluates a LIMIT expression in SQLite. */
function withLimit(clauses: Clauses, database: Database): Clauses {
  if (clauses.limitText === undefined) return clauses;
  const result = database.run(`SELECT ${clauses.limitText}`);
  const value = result.ok && result.table.columns.length === 1 ? result.table.rows[0]?.[0] : undefined;
  return typeof value === "number" ? { ...clauses, limit: value < 0 ? undefined : value } : clauses;
}

function splitAtCommas(sql: string, from: number, to: number, tokens: readonly SqlToken[]): string[] {
  const inside = tokens.filter((token) => token.start >= from && token.end <= to);
  const depth = Math.min(...inside.map((token) => token.depth));
  const cuts = inside.filter((token) => token.text === "," && token.depth === depth);
  const bounds = [from, ...cuts.flatMap((comma) => [comma.start, comma.end]), to];
  return Array.from({ length: cuts.length + 1 }, (_, i) => sql.slice(bounds[2 * i], bounds[2 * i + 1]));
}

/** Ranks the rows in SQLite: each candidate query is the gold query without LIMIT, plus a rank column. */
function tieGroups(clauses: Clauses, gold: ResultTable, database: Database): TieGroup[] {
  const { rows } = gold;
  if (rows.length === 1 && clauses.limit === undefined) return [{ rows, take: 1 }];
  if (!clauses.order && clauses.limit === undefined) return [{ rows, take: rows.length }];
  for (const query of Number.isNaN(clauses.limit) ? [] : rankedQueries(clauses, gold)) {
    const result = database.run(query, MAX_GOLD);
    if (!result.ok || result.table.truncated) continue;
    const groups = cutGroups(result.table.rows, clauses);
    if (holds(groups, rows)) return groups;
  }
  // Ties are unknown: require exactly these rows, in this order if the query orders them.
  return clauses.order ? rows.map((row) => ({ rows: [row], take: 1 })) : [{ rows, take: rows.length }];
}

/**
 * Queries that return the gold's rows with a rank as the last column. Which of them SQLite accepts depends on the gold
 * query.
 */
function rankedQueries({ core, order }: Clauses, gold: ResultTable): string[] {
  if (!order) return [`SELECT *, 1 FROM (${core})`];
  const names = gold.columns.map((_, i) => `column_${i + 1}_`);
  const items = selectItems(core);
  const expressions = order.map((term) => orderedItem(term, items, gold.columns));
  const wrapped = expressions.every((item) => item !== undefined)
    ? [
        `WITH gold_(${names.join(", ")}) AS (${core}) SELECT *, dense_rank() OVER (ORDER BY ${order
          .map((term, i) => names[expressions[i]!]! + directionOf(term))
          .join(", ")}) FROM gold_`,
      ]
    : [];
  if (!items || items.compound) return wrapped;
  const terms = order.map((term, i) => {
    const item = expressions[i];
    if (item === undefined) return term;
    return (items.list[item]?.expression ?? ` ${quoteName(gold.columns[item]!)}`) + directionOf(term);
  });
  const rank = `, dense_rank() OVER (ORDER BY ${terms.join(", ")})`;
  return [core.slice(0, items.from) + rank + core.slice(items.from), ...wrapped];
}

interface SelectItems {
  /** Result columns; empty if the query does not list them (`*`). */
  readonly list: readonly { readonly expression: string; readonly alias: string | undefined }[];
  /** Position of FROM, or the end of the core. */
  readonly from: number;
  /** Whether there is DISTINCT or a set operation: an added rank column would change the rows. */
  readonly compound: boolean;
}

/** Parses the outermost SELECT list; undefined if there is none (VALUES). */
function selectItems(core: string): SelectItems | undefined {
  const tokens = tokenizeSql(core);
  const outer = tokens.filter((token) => token.depth === 0);
  const selectAt = outer.findIndex((token) => token.key === "SELECT");
  if (selectAt < 0) return undefined;
  const distinct = outer[selectAt + 1]?.key === "DISTINCT";
  const start = outer[selectAt + (distinct ? 1 : 0)]!.end;
  const from = outer.find((token) => token.key === "FROM" && token.start > start)?.start ?? core.length;
  const parts = splitAtCommas(core, start, from, tokens);
  const hasStar = parts.some((part) => /(^|\.)\s*\*\s*$/.test(part.trim()));
  const list = (hasStar ? [] : parts).map((part) => {
    const match = /^([\s\S]*?)\s+as\s+("[^"]+"|`[^`]+`|\[[^\]]+\]|'[^']+'|\w+)\s*$/i.exec(part) ?? bareAlias(part);
    return { expression: ` ${(match?.[1] ?? part).trim()}`, alias: match?.[2] };
  });
  const compound = distinct || outer.some((token) => ["UNION", "INTERSECT", "EXCEPT"].includes(token.key));
  return { list, from, compound };
}

/** Finds an alias without AS: a word after a complete expression. */
function bareAlias(part: string): [string, string, string] | undefined {
  const tokens = tokenizeSql(part);
  const [before, last] = [tokens.at(-2), tokens.at(-1)];
  if (!before || !last || !(last.kind === "word" || last.kind === "quoted") || last.key === "END") return undefined;
  const isFinished = before.text === ")" || before.kind !== "operator";
  return isFinished ? [part, part.slice(0, last.start), last.text] : undefined;
}

/** Finds the item that an ORDER BY term refers to: by position, alias, equal expression, or result column name. */
function orderedItem(term: string, items: SelectItems | undefined, columns: readonly string[]): number | undefined {
  const bare = normalizeSql(withoutDirection(term));
  if (/^\d+$/.test(bare)) return Number(bare) - 1;
  if (!items) return undefined;
  const spelled = (text: string | undefined) => (text === undefined ? undefined : unquoted(normalizeSql(text)));
  const byAlias = items.list.findIndex(({ alias }) => spelled(alias) === unquoted(bare));
  const byExpression = items.list.findIndex(({ expression }) => spelled(expression) === unquoted(bare));
  // In DISTINCT t.age … ORDER BY age, the term is a result column's name, if that is unique.
  const named = columns.flatMap((column, i) => (column.toUpperCase() === unquoted(bare) ? [i] : []));
  const byName = items.compound && named.length === 1 ? named[0]! : -1;
  const found = [byAlias, byExpression, byName].find((index) => index >= 0);
  return found;
}

const DIRECTIONS = new Set(["ASC", "DESC", "NULLS", "FIRST", "LAST"]);

/** Position of ASC or DESC in a term. */
function directionStart(term: string): number {
  const tokens = tokenizeSql(term);
  let end = tokens.length;
  while (end > 1 && tokens[end - 1]!.kind === "word" && DIRECTIONS.has(tokens[end - 1]!.key)) end--;
  return tokens[end]?.start ?? term.length;
}

function withoutDirection(term: string): string {
  return term.slice(0, directionStart(term));
}

function directionOf(term: string): string {
  return ` ${term.slice(directionStart(term))}`;
}

function unquoted(name: string): string {
  return name.replace(/^["'`[]|["'`\]]$/g, "").toUpperCase();
}

/** Groups rows by rank and keeps those selected by OFFSET and LIMIT. */
function cutGroups(ranked: readonly (readonly Cell[])[], { limit, offset }: Clauses): TieGroup[] {
  const byRank = new Map<number, (readonly Cell[])[]>();
  for (const row of ranked) {
    const rank = Number(row.at(-1));
    const rows = byRank.get(rank);
    if (rows) rows.push(row.slice(0, -1));
    else byRank.set(rank, [row.slice(0, -1)]);
  }
  const end = offset + (limit ?? Number.POSITIVE_INFINITY);
  const groups: TieGroup[] = [];
  let position = 0;
  for (const [, rows] of [...byRank].sort(([a], [b]) => a - b)) {
    const take = Math.min(position + rows.length, end) - Math.max(position, offset);
    if (take > 0) groups.push({ rows, take });
    position += rows.length;
  }
  return groups;
}

/** Whether the gold's own rows satisfy the groups, which proves that adding the rank did not change the query. */
function holds(groups: readonly TieGroup[], rows: readonly (readonly Cell[])[]): boolean {
  if (groups.reduce((sum, group) => sum + group.take, 0) !== rows.length) return false;
  let position = 0;
  for (const group of groups) {
    const available = new Map<string, number>();
    for (const row of group.rows) available.set(exactKey(row), (available.get(exactKey(row)) ?? 0) + 1);
    for (const row of rows.slice(position, position + group.take)) {
      const left = available.get(exactKey(row)) ?? 0;
      if (left === 0) return false;
      available.set(exactKey(row), left - 1);
    }
    position += group.take;
  }
  return true;
}

function exactKey(row: readonly Cell[]): string {
  return JSON.stringify(row.map((cell) => (typeof cell === "bigint" ? `${cell}n` : cell)));
}
