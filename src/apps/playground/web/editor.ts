// A small SQL editor: a plain text area, what is typed drawn in colours behind it, and names offered while one types.
import { KEYWORDS, sqlParts } from "../../reports/sql-parts.ts";
import { fill, h } from "./dom.ts";

const CLASSES = { keyword: "k", string: "s", quoted: "q", number: "n" } as const;
const OFFERED = 6;

/** SQL as nodes, its words told apart. */
export function sqlNodes(sql: string): (Node | string)[] {
  return sqlParts(sql).map(({ kind, text }) => (kind === "plain" ? text : h("span", { class: CLASSES[kind] }, text)));
}

export interface Editor {
  /** What is typed. */
  text: string;
  /** Whether it is drawn and completed as SQL. */
  isSql: boolean;
  /** Words to offer beside SQL's own. */
  names: readonly string[];
  focus(): void;
  /** Puts text where the cursor is. */
  insert(text: string): void;
}

/** Makes a text area an editor; `behind` shows its colours, `offers` its suggestions. */
export function createEditor(area: HTMLTextAreaElement, behind: HTMLElement, offers: HTMLElement): Editor {
  let names: readonly string[] = [];
  let isSql = true;
  let offered: string[] = [];
  let chosen = 0;

  const draw = () => {
    fill(behind, ...(isSql ? sqlNodes(area.value) : [area.value]), "\n");
    behind.scrollTop = area.scrollTop;
  };
  /** The word before the cursor. */
  const word = () => /[\p{L}_][\p{L}\p{N}_]*$/u.exec(area.value.slice(0, area.selectionStart))?.[0] ?? "";
  const offer = (found: string[]) => {
    offered = found;
    chosen = 0;
    offers.hidden = offered.length === 0;
    area.setAttribute("aria-expanded", String(offered.length > 0));
    mark();
  };
  const mark = () => {
    const items = offered.map((name, i) => {
      const item = h("div", { role: "option", id: `offer-${i}`, "aria-selected": String(i === chosen) }, name);
      item.addEventListener("mousedown", (event) => {
        event.preventDefault(); // the cursor stays in the text
        accept(i);
      });
      return item;
    });
    fill(offers, ...items);
    if (offered.length > 0) area.setAttribute("aria-activedescendant", `offer-${chosen}`);
    else area.removeAttribute("aria-activedescendant");
  };
  const suggest = () => {
    const typed = word().toLowerCase();
    if (!isSql || typed.length < 2) return offer([]);
    const candidates = [...names, ...[...KEYWORDS].map((keyword) => keyword)];
    const fits = candidates.filter((name) => name.replace(/^"/, "").toLowerCase().startsWith(typed));
    offer(fits.some((name) => name.toLowerCase() === typed) ? [] : [...new Set(fits)].slice(0, OFFERED));
  };
  const insert = (text: string, replaced = 0) => {
    area.setRangeText(text, area.selectionStart - replaced, area.selectionEnd, "end");
    offer([]);
    draw();
  };
  const accept = (index: number) => insert(offered[index]!, word().length);

  area.addEventListener("input", () => {
    draw();
    suggest();
  });
  area.addEventListener("scroll", () => {
    behind.scrollTop = area.scrollTop;
  });
  area.addEventListener("blur", () => offer([]));
  area.addEventListener("keydown", (event) => {
    if (offered.length === 0 || event.ctrlKey || event.metaKey) return;
    if (event.key === "ArrowDown") chosen = (chosen + 1) % offered.length;
    else if (event.key === "ArrowUp") chosen = (chosen + offered.length - 1) % offered.length;
    else if (event.key === "Tab" && !event.shiftKey) accept(chosen);
    else if (event.key === "Escape") offer([]);
    else return;
    event.preventDefault();
    if (offered.length > 0) mark();
  });
  draw();
  return {
    get text() {
      return area.value;
    },
    set text(text) {
      area.value = text;
      offer([]);
      draw();
    },
    get isSql() {
      return isSql;
    },
    set isSql(value) {
      isSql = value;
      offer([]);
      draw();
    },
    get names() {
      return names;
    },
    set names(value) {
      names = value;
    },
    focus: () => area.focus(),
    insert(text) {
      insert(text);
      area.focus();
    },
  };
}
