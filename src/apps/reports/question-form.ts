// The form of a question, from its gold query: what the answer needs, so that failures can be grouped.
import { tokenizeSql } from "../../gym/sql/lexer.ts";

/** Forms from the most demanding to the simplest; a question has the first that fits. */
const FORMS: readonly (readonly [name: string, fits: (query: Query) => boolean])[] = [
  ["set operation", ({ words }) => ["UNION", "INTERSECT", "EXCEPT"].some((word) => words.has(word))],
  ["subquery", ({ selects }) => selects > 1],
  ["three or more tables", ({ tables }) => tables > 2],
  ["two tables", ({ tables }) => tables === 2],
  ["grouped", ({ words }) => words.has("GROUP")],
  ["top of a ranking", ({ words }) => words.has("ORDER") && words.has("LIMIT")],
  ["count", ({ words }) => words.has("COUNT")],
  ["minimum or maximum", ({ words }) => words.has("MIN") || words.has("MAX")],
  ["sum or average", ({ words }) => words.has("SUM") || words.has("AVG")],
  ["rows that meet a condition", ({ words }) => words.has("WHERE")],
];

interface Query {
  readonly words: ReadonlySet<string>;
  readonly selects: number;
  /** Number of tables in the outermost FROM. */
  readonly tables: number;
}

/** The name of a question's form, such as "two tables" or "count"; "other" if there is no query. */
export function questionForm(gold: { readonly query: string | null } | null): string {
  if (gold?.query == null) return "other";
  const tokens = tokenizeSql(gold.query);
  const words = tokens.filter(({ kind }) => kind === "word").map(({ key }) => key);
  const outer = tokens.filter(({ depth }) => depth === 0);
  const from = outer.findIndex(({ key }) => key === "FROM");
  const end = outer.findIndex(({ key }, i) => i > from && ["WHERE", "GROUP", "ORDER", "LIMIT"].includes(key));
  const listed = from < 0 ? [] : outer.slice(from, end < 0 ? undefined : end);
  const query: Query = {
    words: new Set(words),
    selects: words.filter((word) => word === "SELECT").length,
    tables: from < 0 ? 0 : 1 + listed.filter(({ key, text }) => key === "JOIN" || text === ",").length,
  };
  return FORMS.find(([, fits]) => fits(query))?.[0] ?? "a whole column";
}
