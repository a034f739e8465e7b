// Rewrites a gold query to equivalent SQL: its result is also right, perhaps with rows and ties in another order.
import { outermostClauses } from "../../../gym/env/index.ts";
import { tokenizeSql } from "../../../gym/sql/index.ts";

const AGGREGATE = /\b(count|sum|avg|min|max|total|group_concat)\s*\(/i;

/** Rewrites that apply to this query, by name. */
export function rewriteQuery(sql: string): [string, string][] {
  const text = sql.replace(/[;\s]+$/, "");
  const { core, order, limit } = outermostClauses(text);
  const rewrites: [string, string][] = [];
  if (!order || limit !== undefined) {
    rewrites.push(["wrapped", `SELECT * FROM (${text})`]);
    rewrites.push(["as a CTE", `WITH gold_result AS (${text}) SELECT * FROM gold_result`]);
  }
  if (order && !/\b(union|intersect|except|distinct)\b/i.test(core)) {
    const tail = text.slice(core.length).match(/\blimit\b[\s\S]*$/i)?.[0] ?? "";
    for (const direction of ["ASC", "DESC"]) {
      rewrites.push([`ties ${direction}`, `${core} ORDER BY ${order.join(", ")}, 1 ${direction} ${tail}`]);
    }
  }
  if (/count\s*\(\s*\*\s*\)/i.test(text))
    rewrites.push(["count(1)", text.replace(/count\s*\(\s*\*\s*\)/gi, "count(1)")]);
  const swapped = swapJoin(text);
  if (swapped) rewrites.push(["join turned round", swapped]);
  return rewrites;
}

/** Turns `FROM a JOIN b ON …` into `FROM b JOIN a ON …`, if no value depends on the order of rows. */
function swapJoin(sql: string): string | undefined {
  const tokens = tokenizeSql(sql);
  const keys = tokens.map((token) => token.key);
  if (
    AGGREGATE.test(sql) ||
    keys.includes("GROUP") ||
    keys.includes("*") ||
    keys.filter((key) => key === "JOIN").length !== 1
  ) {
    return undefined;
  }
  if (
    keys.filter((key) => key === "SELECT").length !== 1 ||
    /\b(left|right|full|natural|cross)\s+(outer\s+)?join\b/i.test(sql)
  ) {
    return undefined;
  }
  return sql.replace(
    /\bfrom\s+((?:\w+|"[^"]+")(?:\s+as\s+\w+)?)\s+join\s+((?:\w+|"[^"]+")(?:\s+as\s+\w+)?)\s+on\b/i,
    "FROM $2 JOIN $1 ON",
  );
}
