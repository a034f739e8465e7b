// SQL with its words told apart.
import { tokenizeSql } from "../../gym/sql/lexer.ts";

/** Words worth seeing at a glance; anything else is a name. */
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

/** A statement in parts; joined they are the statement, nothing is changed or left out. */
export function sqlParts(sql: string): SqlPart[] {
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
