// Syntax highlighting for SQL: a statement split into classified parts.
import { tokenizeSql } from "../../gym/sql/lexer.ts";

/** Highlighted keywords; other words are names. */
export const KEYWORDS: ReadonlySet<string> = new Set(
  `SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT OFFSET JOIN LEFT RIGHT INNER OUTER CROSS NATURAL ON USING AS AND OR NOT IN IS NULL
   LIKE BETWEEN EXISTS DISTINCT UNION ALL INTERSECT EXCEPT CASE WHEN THEN ELSE END WITH ASC DESC COUNT SUM AVG MIN MAX CAST`.split(
    /\s+/,
  ),
);

export interface SqlPart {
  readonly kind: "keyword" | "string" | "quoted" | "number" | "plain";
  readonly text: string;
}

/** Splits a statement into parts; joined, they are the statement. */
export function highlightedParts(sql: string): SqlPart[] {
  const parts: SqlPart[] = [];
  let end = 0;
  const add = (kind: SqlPart["kind"], text: string) => {
    if (text !== "") parts.push({ kind, text });
  };
  for (const { kind, key, text, start, end: after } of tokenizeSql(sql)) {
    add("plain", sql.slice(end, start)); // white space and comments
    if (kind === "word") add(KEYWORDS.has(key) ? "keyword" : "plain", text);
    else add(kind === "operator" ? "plain" : kind, text);
    end = after;
  }
  add("plain", sql.slice(end));
  return parts;
}
