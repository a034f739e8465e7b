// Derives a question's difficulty and its tables from the clauses of the gold query.
import { type SqlToken, type Table, tokenizeSql } from "../sql/index.ts";
import type { Difficulty } from "./question.ts";

/** Features of a statement that determine its difficulty. */
export interface Outline {
  /** Names in FROM and JOIN, in order of appearance, without quotes; may include names defined by WITH. */
  readonly sources: readonly string[];
  /** Number of joins, written as JOIN or as a comma in FROM. */
  readonly joins: number;
  /** Number of WHERE, GROUP BY, HAVING, ORDER BY and LIMIT clauses. */
  readonly clauses: number;
  /** Whether there is a SELECT inside another, or a WITH. */
  readonly nested: boolean;
  readonly setOperation: boolean;
  readonly words: ReadonlySet<string>;
}

/**
 * easy: one table and at most two clauses beyond SELECT … FROM; medium: grouping, ordering with LIMIT, DISTINCT, one
 * join, or more clauses; hard: two or more joins, nesting, set operations, HAVING.
 */
export function difficultyOf(sql: string): Difficulty {
  const { joins, clauses, nested, setOperation, words } = outline(sql);
  if (joins >= 2 || nested || setOperation || words.has("HAVING")) return "hard";
  const groups = words.has("GROUP") || words.has("PARTITION") || words.has("DISTINCT");
  const ranks = words.has("ORDER") && words.has("LIMIT");
  return joins === 1 || groups || ranks || clauses > 2 ? "medium" : "easy";
}

/** The tables and views a statement reads, as the database spells them, in order of first occurrence. */
export function tablesInvolved(sql: string, tables: readonly Pick<Table, "name">[]): string[] {
  const byName = new Map(tables.map(({ name }) => [name.toLowerCase(), name]));
  const found = outline(sql).sources.map((source) => byName.get(source.toLowerCase()));
  return [...new Set(found.filter((name) => name !== undefined))];
}

const CLAUSES = new Set(["WHERE", "GROUP", "HAVING", "ORDER", "LIMIT"]);
const SET_OPERATIONS = new Set(["UNION", "INTERSECT", "EXCEPT"]);
const ENDS_FROM = new Set([...CLAUSES, ...SET_OPERATIONS, "SELECT", "WINDOW"]);

/** Derives the outline from the tokens; never throws, whatever the text. */
export function outline(sql: string): Outline {
  const tokens = tokenizeSql(sql);
  const words = new Set(tokens.filter((token) => token.kind === "word").map((token) => token.key));
  const sources: string[] = [];
  let [joins, clauses, selects] = [0, 0, 0];
  const outer: Position[] = []; // one per open parenthesis
  let here: Position = { inFrom: false, wantsTable: false };
  tokens.forEach((token, i) => {
    const isSource = here.wantsTable && (token.kind === "word" || token.kind === "quoted");
    if (token.text === "(") {
      outer.push({ ...here, wantsTable: false });
      here = here.wantsTable ? { inFrom: true, wantsTable: true } : { inFrom: false, wantsTable: false };
    } else if (token.text === ")") {
      here = outer.pop() ?? here;
    } else if (token.text === "," && here.inFrom) {
      joins++;
      here = { inFrom: true, wantsTable: true };
    } else if (token.kind === "word" && token.key === "JOIN") {
      joins++;
      here = { inFrom: true, wantsTable: true };
    } else if (token.kind === "word" && token.key === "FROM" && !isDistinctFrom(tokens, i)) {
      here = { inFrom: true, wantsTable: true };
    } else if (token.kind === "word" && ENDS_FROM.has(token.key)) {
      here = { inFrom: false, wantsTable: false };
      if (CLAUSES.has(token.key)) clauses++;
      if (token.key === "SELECT") selects++;
    } else if (isSource && tokens[i + 1]?.text !== ".") {
      sources.push(unquote(token.text));
      here = { inFrom: true, wantsTable: false };
    }
  });
  const setOperations = tokens.filter((token) => token.kind === "word" && SET_OPERATIONS.has(token.key)).length;
  return {
    sources,
    joins,
    clauses,
    nested: words.has("WITH") || selects > setOperations + 1,
    setOperation: setOperations > 0,
    words,
  };
}

interface Position {
  /** Whether we are between FROM and the next clause, where a comma means a join. */
  readonly inFrom: boolean;
  /** Whether the next name is a table. */
  readonly wantsTable: boolean;
}

/** Recognizes `a IS [NOT] DISTINCT FROM b`: its FROM names no table. */
function isDistinctFrom(tokens: readonly SqlToken[], i: number): boolean {
  return tokens[i - 1]?.key === "DISTINCT" && ["IS", "NOT"].includes(tokens[i - 2]?.key ?? "");
}

function unquote(name: string): string {
  const quote = name[0];
  if (quote === "[") return name.slice(1, -1);
  if (quote !== '"' && quote !== "`") return name;
  return name.slice(1, -1).replaceAll(quote + quote, quote);
}
