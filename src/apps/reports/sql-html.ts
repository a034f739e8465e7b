// Highlighted SQL as HTML.

import { escapeHtml } from "./format.ts";
import { highlightedParts } from "./sql-highlight.ts";

const CLASSES = { string: "s", quoted: "q", number: "n" } as const;

/** A statement as HTML with keywords in `<b>`, strings, numbers and quoted names in `<span>`; the text is unchanged. */
export function highlightSql(sql: string): string {
  return highlightedParts(sql)
    .map(({ kind, text }) => {
      const html = escapeHtml(text);
      if (kind === "plain") return html;
      return kind === "keyword" ? `<b>${html}</b>` : `<span class="${CLASSES[kind]}">${html}</span>`;
    })
    .join("");
}
