// A small SQL editor: a text area, its highlighted copy underneath, and completions.
import { highlightedParts, KEYWORDS } from "../../reports/sql-highlight.ts";
import { fill, h } from "../../web-shared/dom.ts";

const CLASSES = { keyword: "k", string: "s", quoted: "q", number: "n" } as const;
const MAX_COMPLETIONS = 6;

/** Highlighted SQL as DOM nodes. */
export function sqlNodes(sql: string): (Node | string)[] {
  return highlightedParts(sql).map(({ kind, text }) =>
    kind === "plain" ? text : h("span", { class: CLASSES[kind] }, text),
  );
}

export interface Editor {
  /** The text area's value. */
  text: string;
  /** Whether to highlight and complete SQL. */
  isSql: boolean;
  /** Completions besides SQL's keywords. */
  names: readonly string[];
  focus(): void;
  /** Inserts text at the cursor. */
  insert(text: string): void;
}

/** Turns a text area into an editor; `highlighted` is its colored copy, `completions` the list of suggestions. */
export function createEditor(area: HTMLTextAreaElement, highlighted: HTMLElement, completions: HTMLElement): Editor {
  let names: readonly string[] = [];
  let isSql = true;
  let offered: string[] = [];
  let chosen = 0;

  const draw = () => {
    fill(highlighted, ...(isSql ? sqlNodes(area.value) : [area.value]), "\n");
    highlighted.scrollTop = area.scrollTop;
  };
  /** The word before the cursor. */
  const word = () => /[\p{L}_][\p{L}\p{N}_]*$/u.exec(area.value.slice(0, area.selectionStart))?.[0] ?? "";
  const offer = (found: string[]) => {
    offered = found;
    chosen = 0;
    completions.hidden = offered.length === 0;
    area.setAttribute("aria-expanded", String(offered.length > 0));
    mark();
  };
  const mark = () => {
    const items = offered.map((name, i) => {
      const item = h("div", { role: "option", id: `offer-${i}`, "aria-selected": String(i === chosen) }, name);
      item.addEventListener("mousedown", (event) => {
        event.preventDefault(); // keeps the focus in the text area
        accept(i);
      });
      return item;
    });
    fill(completions, ...items);
    if (offered.length > 0) area.setAttribute("aria-activedescendant", `offer-${chosen}`);
    else area.removeAttribute("aria-activedescendant");
  };
  const suggest = () => {
    const typed = word().toLowerCase();
    if (!isSql || typed.length < 2) return offer([]);
    const candidates = [...names, ...KEYWORDS];
    const matches = candidates.filter((name) => name.replace(/^"/, "").toLowerCase().startsWith(typed));
    offer(matches.some((name) => name.toLowerCase() === typed) ? [] : [...new Set(matches)].slice(0, MAX_COMPLETIONS));
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
    highlighted.scrollTop = area.scrollTop;
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
