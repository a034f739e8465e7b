// SQL with its words told apart, as HTML.
import { tokenize } from "../sql/index.ts";
import { escapeHtml } from "./words.ts";

// Words worth seeing at a glance; anything else is a name.
const KEYWORDS = new Set(
  `SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT OFFSET JOIN LEFT RIGHT INNER OUTER CROSS NATURAL ON USING AS AND OR NOT IN IS NULL
   LIKE BETWEEN EXISTS DISTINCT UNION ALL INTERSECT EXCEPT CASE WHEN THEN ELSE END WITH ASC DESC COUNT SUM AVG MIN MAX CAST`.split(
    /\s+/,
  ),
);

const CLASSES = { string: "s", quoted: "q", number: "n" } as const;

/** A statement as HTML: keywords, texts, numbers and quoted names in `<b>` and `<span>`; nothing is changed or left out. */
export function highlightSql(sql: string): string {
  let html = "";
  let end = 0;
  for (const token of tokenize(sql)) {
    html += escapeHtml(sql.slice(end, token.start)); // white space and comments
    const text = escapeHtml(token.text);
    if (token.kind === "word") html += KEYWORDS.has(token.key) ? `<b>${text}</b>` : text;
    else if (token.kind === "operator") html += text;
    else html += `<span class="${CLASSES[token.kind]}">${text}</span>`;
    end = token.end;
  }
  return html + escapeHtml(sql.slice(end));
}
