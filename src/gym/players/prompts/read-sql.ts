// Extracts the SQL query from a model's reply: fenced or bare, with or without prose around it.
import { type SqlToken, tokenizeSql } from "../../sql/index.ts";

/**
 * Extracts the first statement of a reply: from the first fence that contains one, or from the first line that begins
 * with one; null if there is none. It ends at its semicolon, at the parenthesis that closes one around it, or before
 * prose.
 */
export function readSql(text: string): string | null {
  const said = text.replace(/^[\s\S]*<\/think>/, "");
  const fences = [...said.matchAll(/```[ \t]*(?:sql|sqlite)?[ \t]*\r?\n?([\s\S]*?)(?:```|$)/gi)].map(
    ([, body]) => body!,
  );
  for (const body of [...fences, said]) {
    const start = statementStart(body);
    if (start !== null) return firstStatement(body.slice(start));
  }
  return null;
}

/** Position where a statement starts, preferably at the start of a line; opening parentheses before it belong to it. */
function statementStart(body: string): number | null {
  const starts = [...body.matchAll(/(^[ \t]*)?((?:\([ \t\r\n]*){0,8})\b(SELECT|WITH)\b/gim)].filter(
    ({ 0: { length }, 3: word, index }) => !/with/i.test(word!) || isWithClause(body.slice(index + length - 4)),
  );
  // A line that starts with a parenthesis may be inside a query that began in the previous line.
  const first = starts.find(({ 1: indent, 2: opened }) => indent !== undefined && opened === "") ?? starts[0];
  return first ? first.index : null;
}

const WITH_CLAUSE_CHARACTERS = 2000; // maximum length of a name and its columns

/** Distinguishes `WITH name (columns) AS (` from the English word. */
function isWithClause(text: string): boolean {
  const tokens = tokenizeSql(text.slice(0, WITH_CLAUSE_CHARACTERS)).slice(1);
  if (tokens[0]?.key === "RECURSIVE") tokens.shift();
  const name = tokens.shift();
  if (name?.kind !== "word" && name?.kind !== "quoted") return false;
  if (tokens[0]?.text === "(") tokens.splice(0, tokens.findIndex(({ text: token }) => token === ")") + 1);
  const keys = tokens.slice(0, 4).map(({ key }) => key);
  return /^AS (?:(?:NOT )?MATERIALIZED )?\(/.test(keys.join(" "));
}

/** Extracts the statement at the start of a text. */
function firstStatement(text: string): string {
  const tokens = tokenizeSql(text);
  const first = tokens.findIndex(({ text: token }) => token !== "(");
  let [depth, outer] = [0, first];
  for (const [i, { text: token, start }] of tokens.entries()) {
    if (token === ";") return text.slice(0, start).trim();
    if (token === "(") depth++;
    if (token === ")") depth--;
    if (token === ")" && depth === outer - 1) {
      // Parentheses around the whole statement are dropped, since SQLite refuses them. A compound of parenthesized
      // parts is left as written.
      if (!CONTINUES.has(tokens[i + 1]?.key ?? "")) return text.slice(tokens[first]!.start, start).trim();
      outer = 0;
    }
    if (i > 0 && depth === 0 && beginsProse(text, tokens, i)) return text.slice(0, tokens[i - 1]!.end).trim();
  }
  return text.trim();
}

/** Keywords after or before which a statement continues across an empty line. */
const CONTINUES = new Set(
  `ALL AND AS BETWEEN BY CASE COLLATE CROSS DISTINCT ELSE ESCAPE EXCEPT FROM FULL GLOB GROUP HAVING IN INNER INTERSECT
   IS JOIN LEFT LIKE LIMIT NATURAL NOT OFFSET ON OR ORDER OUTER RIGHT SELECT THEN UNION USING VALUES WHEN WHERE WINDOW
   WITH`.split(/\s+/),
);

const ENDS = new Set(["ASC", "DESC", "END"]);

/** Whether a token starts a paragraph of prose that cannot belong to the query before it. */
function beginsProse(text: string, tokens: readonly SqlToken[], i: number): boolean {
  const [before, token, after] = [tokens[i - 1]!, tokens[i]!, tokens[i + 1]];
  if (!/\n[ \t\r]*\n/.test(text.slice(before.end, token.start))) return false;
  if (CONTINUES.has(before.key) || (before.kind === "operator" && !/[)*]/.test(before.text))) return false;
  if (token.kind !== "word") return /^(?:\*\*|#)/.test(text.slice(token.start));
  if (CONTINUES.has(token.key) || ENDS.has(token.key)) return false;
  const isName = CLAUSES.has(after?.key ?? "") || (after?.text === "." && tokens[i + 2]?.start === after.end);
  return !isName;
}

/** Keywords that may follow a single name after an empty line. */
const CLAUSES = new Set(
  "CROSS EXCEPT FROM FULL GROUP HAVING INNER INTERSECT JOIN LEFT LIMIT NATURAL ON ORDER RIGHT UNION WHERE".split(" "),
);
