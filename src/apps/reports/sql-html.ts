// SQL with its words told apart, as HTML.

import { escapeHtml } from "./format.ts";
import { sqlParts } from "./sql-highlight.ts";

const CLASSES = { string: "s", quoted: "q", number: "n" } as const;

/** A statement as HTML: keywords, texts, numbers and quoted names in `<b>` and `<span>`; nothing is changed or left out. */
export function highlightSql(sql: string): string {
  return sqlParts(sql)
    .map(({ kind, text }) => {
      const html = escapeHtml(text);
      if (kind === "plain") return html;
      return kind === "keyword" ? `<b>${html}</b>` : `<span class="${CLASSES[kind]}">${html}</span>`;
    })
    .join("");
}
