// An SQL lexer with SQLite's token rules: good enough to compare statements and find their clauses, not to judge
// safety.

export type SqlTokenKind = "word" | "quoted" | "string" | "number" | "operator";

export interface SqlToken {
  readonly kind: SqlTokenKind;
  /** The text as written. */
  readonly text: string;
  /** Words in upper case, everything else as written. */
  readonly key: string;
  readonly start: number;
  readonly end: number;
  /** Number of open parentheses; an opening parenthesis and its closing one have the depth outside them. */
  readonly depth: number;
}

// Skips comments and white space; an unterminated block comment or string extends to the end of the text, as in SQLite.
const TOKEN =
  /(\s+|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|([xX]?'(?:[^']|'')*(?:'|$))|("(?:[^"]|"")*(?:"|$)|`(?:[^`]|``)*(?:`|$)|\[[^\]]*(?:\]|$))|(0[xX][0-9a-fA-F]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)|([\p{L}_$\u0080-\u{10ffff}][\p{L}\p{N}_$\u0080-\u{10ffff}]*)|(<=|>=|<>|!=|==|\|\||<<|>>|->>|->|[\s\S])/uy;

/** Splits a statement into tokens, without comments and white space. */
export function tokenizeSql(sql: string): SqlToken[] {
  const tokens: SqlToken[] = [];
  let depth = 0;
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(sql); match; match = TOKEN.exec(sql)) {
    const [text, space, string, quoted, number, word] = match;
    if (space !== undefined) continue;
    const kind: SqlTokenKind =
      string !== undefined
        ? "string"
        : quoted !== undefined
          ? "quoted"
          : number !== undefined
            ? "number"
            : word !== undefined
              ? "word"
              : "operator";
    if (text === ")") depth = Math.max(0, depth - 1);
    const key = kind === "word" ? text.toUpperCase() : text;
    tokens.push({ kind, text, key, start: match.index, end: match.index + text.length, depth });
    if (text === "(") depth++;
  }
  return tokens;
}

/**
 * Normalizes a statement: differences only in white space, comments, letter case of words, `==`, `!=` or a final
 * semicolon disappear.
 */
export function normalizeSql(sql: string): string {
  const tokens = tokenizeSql(sql);
  while (tokens.at(-1)?.text === ";") tokens.pop();
  const spelling: Record<string, string> = { "==": "=", "!=": "<>" };
  return tokens.map((token) => spelling[token.key] ?? token.key).join(" ");
}

/**
 * The shape of a statement: names become `n`, literals `?`. Statements that differ only in aliases and values have the
 * same shape.
 */
export function sqlSkeleton(sql: string): string {
  const tokens = tokenizeSql(sql);
  while (tokens.at(-1)?.text === ";") tokens.pop();
  const words = tokens.map((token, i) => {
    if (token.kind === "string" || token.kind === "number") return "?";
    if (token.kind === "operator") return token.key;
    const isCall = token.kind === "word" && tokens[i + 1]?.text === "(";
    return isCall || (token.kind === "word" && KEYWORDS.has(token.key)) ? token.key : "n";
  });
  return words.join(" ").replace(/n \. n/g, "n");
}

const KEYWORDS = new Set(
  `ALL AND AS ASC BETWEEN BY CASE CAST COLLATE CROSS CURRENT DESC DISTINCT ELSE END ESCAPE EXCEPT EXISTS FILTER FIRST
   FOLLOWING FROM FULL GLOB GROUP HAVING IN INNER INTERSECT IS ISNULL JOIN LAST LEFT LIKE LIMIT NATURAL NOT NOTNULL NULL
   NULLS OFFSET ON OR ORDER OUTER OVER PARTITION PRECEDING RANGE RECURSIVE RIGHT ROW ROWS SELECT THEN UNBOUNDED UNION
   USING VALUES WHEN WHERE WINDOW WITH`.split(/\s+/),
);

/** Quotes a name for SQL: bare if that is safe, else in double quotes. */
export function quoteName(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !RESERVED.has(name.toUpperCase())
    ? name
    : `"${name.replaceAll('"', '""')}"`;
}

/** Quotes a text value for SQL. */
export function quoteText(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

/** Words that SQLite rejects as bare names or would read as something else. */
const RESERVED = new Set([
  ...KEYWORDS,
  ..."ADD ALTER AUTOINCREMENT CHECK COMMIT CONSTRAINT CREATE DEFAULT DEFERRABLE DELETE DROP FOREIGN INDEX INSERT INTO NOTHING PRIMARY REFERENCES RETURNING SET TABLE TO TRANSACTION UNIQUE UPDATE CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP".split(
    " ",
  ),
]);

/** @deprecated use `tokenizeSql` */
export { tokenizeSql as tokenize };

/** @deprecated use `SqlToken` */
export type Token = SqlToken;

/** @deprecated use `SqlTokenKind` */
export type TokenKind = SqlTokenKind;
