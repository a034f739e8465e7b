// Rewrites double-quoted strings, which older data sets use, so that a query means the same under every SQLite setting.
import { quoteText, type Table, tokenizeSql } from "../../sql/index.ts";
import { tablesInvolved } from "../difficulty.ts";

/** Changes "text" to 'text' unless it is a column, table or alias of the query. */
export function withPlainStrings(sql: string, tables: readonly Table[]): string {
  const tokens = tokenizeSql(sql);
  const involved = new Set(tablesInvolved(sql, tables));
  const names = new Set<string>();
  for (const table of tables.filter(({ name }) => involved.has(name))) {
    for (const { name } of [table, ...table.columns]) names.add(name.toLowerCase());
  }
  tokens.forEach((token, i) => {
    if (tokens[i - 1]?.key === "AS") names.add(inside(token.text).toLowerCase());
  });
  let [result, copied] = ["", 0];
  tokens.forEach((token, i) => {
    const isPart = tokens[i - 1]?.text === "." || tokens[i + 1]?.text === ".";
    if (!token.text.startsWith('"') || isPart || names.has(inside(token.text).toLowerCase())) return;
    result += sql.slice(copied, token.start) + quoteText(inside(token.text));
    copied = token.end;
  });
  return result + sql.slice(copied);
}

function inside(text: string): string {
  return text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text;
}
