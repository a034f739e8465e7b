// Mutates gold queries in one place each, and defines the rule sets by which verifiers compare results with the gold.

import { formatAnswer } from "../../../gym/data/index.ts";
import { type Gold, outermostClauses, verifyAnswer } from "../../../gym/env/index.ts";
import { type Cell, type ResultTable, tokenizeSql } from "../../../gym/sql/index.ts";

/** Each returns a mutated query, or the same text if it does not apply. */
export const MUTATIONS: Record<string, (sql: string) => string> = {
  "drop ORDER BY": (sql) => {
    const { core, order, limit } = outermostClauses(sql);
    return order && limit === undefined ? core : sql;
  },
  "drop DISTINCT": (sql) => replaceToken(sql, "DISTINCT", ""),
  "drop WHERE": dropWhere,
  "drop the last AND": dropLastAnd,
  "drop INTERSECT": (sql) => dropFrom(sql, "INTERSECT"),
  "drop LIMIT": (sql) => sql.replace(/\blimit\s+\d+\s*$/i, ""),
  "LIMIT one more": (sql) => sql.replace(/\blimit\s+(\d+)\s*$/i, (_, n: string) => `LIMIT ${Number(n) + 1}`),
  "SUM to MAX": (sql) => replaceToken(sql, "SUM", "MAX"),
  "MAX to MIN": (sql) => replaceToken(sql, "MAX", "MIN"),
  "AVG to SUM": (sql) => replaceToken(sql, "AVG", "SUM"),
  "DESC to ASC": (sql) => replaceToken(sql, "DESC", "ASC"),
  "> to >=": (sql) => replaceToken(sql, ">", ">="),
  "< to <=": (sql) => replaceToken(sql, "<", "<="),
  "constant, no rows": () => "SELECT 1 WHERE 0",
  "constant 1": () => "SELECT 1",
};

/** Four rule sets: three that others use, and ours. */
export const RULES: Record<"set" | "multiset" | "ordered" | "ours", (result: ResultTable, gold: Gold) => boolean> = {
  set: (result, gold) => same(new Set(result.rows.map(keyOf)), new Set(gold.rows.map(keyOf))),
  multiset,
  ordered: (result, gold) =>
    gold.ordered
      ? result.rows.length === gold.rows.length && result.rows.every((row, i) => keyOf(row) === keyOf(gold.rows[i]!))
      : multiset(result, gold),
  ours: (result, gold) => result.rows.length > 0 && verifyAnswer(formatAnswer(result), gold),
};

function multiset(result: ResultTable, gold: Gold): boolean {
  const sorted = (table: ResultTable) => table.rows.map(keyOf).sort().join("\n");
  return result.rows.length === gold.rows.length && sorted(result) === sorted(gold);
}

function same(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && [...a].every((key) => b.has(key));
}

function keyOf(row: readonly Cell[]): string {
  return JSON.stringify(row.map((cell) => (typeof cell === "bigint" ? String(cell) : cell)));
}

function replaceToken(sql: string, key: string, by: string): string {
  const token = tokenizeSql(sql).find((candidate) => candidate.key === key);
  return token ? sql.slice(0, token.start) + by + sql.slice(token.end) : sql;
}

const CLAUSES = new Set(["GROUP", "ORDER", "LIMIT", "HAVING", "INTERSECT", "UNION", "EXCEPT"]);

/** Drops the outermost WHERE and its condition. */
function dropWhere(sql: string): string {
  const outer = tokenizeSql(sql).filter((token) => token.depth === 0);
  const at = outer.findIndex((token) => token.key === "WHERE");
  if (at < 0) return sql;
  const end = outer.slice(at + 1).find((token) => CLAUSES.has(token.key));
  return sql.slice(0, outer[at]!.start) + (end ? sql.slice(end.start) : "");
}

/** Drops the last AND condition of the outermost WHERE (never the AND of BETWEEN). */
function dropLastAnd(sql: string): string {
  const outer = tokenizeSql(sql).filter((token) => token.depth === 0);
  const at = outer.findLastIndex((token) => token.key === "AND");
  const between = outer.findLastIndex((token) => token.key === "BETWEEN");
  const where = outer.findIndex((token) => token.key === "WHERE");
  if (at < 0 || where < 0 || where > at || (between >= 0 && at - between <= 2)) return sql;
  const end = outer.slice(at + 1).find((token) => CLAUSES.has(token.key));
  return sql.slice(0, outer[at]!.start) + (end ? sql.slice(end.start) : "");
}

function dropFrom(sql: string, key: string): string {
  const token = tokenizeSql(sql).find((candidate) => candidate.key === key && candidate.depth === 0);
  return token ? sql.slice(0, token.start) : sql;
}
