// A training's episodes as a table: filter, sort, page; a row opens the episode.

import { signed } from "../../../gym/evaluation/transcript.ts";
import { count, percent } from "../../reports/format.ts";
import { button, fill, h, link } from "../../web-shared/dom.ts";
import { csvOf } from "../server/csv.ts";
import { type EpisodePage, type EpisodeQuery, type EpisodeRow, type SortKey, VERDICTS } from "../server/schemas.ts";
import { DIFFICULTIES, PAGE, paramsOf, queryOf } from "./episode-query.ts";
import { chips } from "./overview-view.ts";
import { hrefOf, setParams } from "./route.ts";
import { actionWords } from "./run-text.ts";
import { saveFile } from "./save-file.ts";
import type { Context, View } from "./view-types.ts";

const HEADS: readonly (readonly [SortKey, string])[] = [
  ["step", "step"],
  ["correctness", "verdict"],
  ["question", "question"],
  ["database_name", "database"],
  ["actions", "actions"],
  ["total_reward", "reward"],
  ["advantage", "advantage"],
  ["completion_tokens", "tokens"],
];

const VERDICT_WORDS: Readonly<Record<(typeof VERDICTS)[number], string>> = {
  right: "right",
  wrong: "wrong",
  unscored: "could not be scored",
  truncated: "cut short",
  failed: "with failed actions",
  not_understood: "with text that is no action",
};

export function episodesView({ run, source, route }: Context): View {
  let query = queryOf(route.params);
  const said = h("p", { class: "dim", role: "status" });
  const rows = h("tbody", {});
  const pager = h("nav", { class: "pager", "aria-label": "pages" });
  let asked = 0;

  async function load(): Promise<void> {
    const mine = ++asked;
    let page: EpisodePage;
    try {
      page = await source.episodes(run.id, query);
    } catch (error) {
      if (mine === asked) said.textContent = `The episodes could not be read: ${(error as Error).message}`;
      return;
    }
    if (mine !== asked) return; // a newer query was sent meanwhile
    show(page);
  }

  function show({ rows: found, total, right, mean_reward }: EpisodePage): void {
    const { indexed, of } = run.summary.episodes;
    said.textContent = [
      `${count(total, "episode")}`,
      ...(total > 0 ? [`${percent(right / total)} right`] : []),
      ...(mean_reward === null ? [] : [`mean reward ${signed(mean_reward)}`]),
      ...(indexed < 1 ? [`${percent(indexed)} of the file indexed`] : []),
      ...(of ? [`this file holds a sample of the run's ${count(of, "episode")}`] : []),
    ].join(" · ");
    const focused = rows.contains(document.activeElement) ? document.activeElement?.getAttribute("href") : null;
    fill(
      rows,
      found.map((row) => rowOf(run.id, row, query)),
    );
    if (focused) rows.querySelector<HTMLElement>(`a[href="${CSS.escape(focused)}"]`)?.focus();
    const offset = query.offset ?? 0;
    fill(
      pager,
      button("← Newer", () => change({ offset: Math.max(0, offset - PAGE) }, false), { disabled: offset === 0 }),
      h(
        "span",
        {},
        total === 0 ? "none" : `${offset + 1}–${Math.min(total, offset + PAGE)} of ${total.toLocaleString("en-US")}`,
      ),
      button("Older →", () => change({ offset: offset + PAGE }, false), { disabled: offset + PAGE >= total }),
    );
    pager.children[0]!.textContent = query.sort === "n" && query.descending ? "← Newer" : "← Previous";
    pager.children[2]!.textContent = query.sort === "n" && query.descending ? "Older →" : "Next →";
  }

  function change(changes: { [K in keyof EpisodeQuery]?: EpisodeQuery[K] | undefined }, fromStart = true): void {
    const next = { ...query, ...(fromStart ? { offset: 0 } : {}), ...changes };
    query = Object.fromEntries(Object.entries(next).filter(([, value]) => value !== undefined)) as EpisodeQuery;
    setParams(paramsOf(query));
    heads();
    void load();
  }

  const head = h("tr", {});
  function heads(): void {
    const focused = [...head.children].findIndex((cell) => cell.contains(document.activeElement));
    fill(
      head,
      HEADS.map(([key, name]) => {
        const sorted = query.sort === key || (key === "step" && query.sort === "n");
        const arrow = sorted ? (query.descending ? " ↓" : " ↑") : "";
        const turn = () => change({ sort: key === "step" ? "n" : key, descending: sorted ? !query.descending : true });
        return h(
          "th",
          { scope: "col", "aria-sort": sorted ? (query.descending ? "descending" : "ascending") : "none" },
          button(`${name}${arrow}`, turn),
        );
      }),
    );
    if (focused >= 0) head.children[focused]?.querySelector("button")?.focus();
  }
  heads();

  const text = h("input", {
    type: "search",
    placeholder: "question or database",
    value: query.text,
    "aria-label": "question or database",
  });
  text.addEventListener("input", () => change({ text: text.value }));
  const choose = <T extends string>(
    label: string,
    values: readonly T[],
    chosen: T | undefined,
    words: (value: T) => string,
    key: keyof EpisodeQuery,
  ) => {
    const select = h(
      "select",
      { "aria-label": label },
      h("option", { value: "" }, label),
      values.map((value) => h("option", { value, selected: value === chosen }, words(value))),
    );
    select.addEventListener("change", () => change({ [key]: select.value || undefined }));
    return select;
  };
  const step = (label: string, key: "from_step" | "to_step") => {
    const input = h("input", {
      type: "number",
      min: 0,
      value: query[key] ?? "",
      placeholder: label,
      "aria-label": label,
    });
    input.addEventListener("input", () =>
      change({ [key]: input.value === "" ? undefined : Math.max(0, Math.floor(Number(input.value))) }),
    );
    return input;
  };
  const sequences = [
    ...new Set(
      [run.summary.late, run.summary.early].flatMap((played) => played?.sequences.map(({ actions }) => actions) ?? []),
    ),
  ];
  const words = (actions: string) => actionWords(actions).join(" → ").toLowerCase();
  const controls = h(
    "form",
    { class: "controls", role: "search", on: { submit: (event) => event.preventDefault() } },
    text,
    choose("any verdict", VERDICTS, query.verdict, (value) => VERDICT_WORDS[value], "verdict"),
    choose("any difficulty", DIFFICULTIES, query.difficulty, (value) => value, "difficulty"),
    choose(
      "any actions",
      [...new Set([...sequences, ...(query.actions ? [query.actions] : [])])],
      query.actions,
      words,
      "actions",
    ),
    step("from step", "from_step"),
    step("to step", "to_step"),
    h(
      "span",
      { class: "files" },
      "Download ",
      button("episodes.csv", () =>
        saveFile(source.download(run.id, "episodes.csv", withoutPage(query)), `${run.id}-episodes.csv`, () => ""),
      ),
      button("episodes.jsonl", () =>
        saveFile(source.download(run.id, "episodes.jsonl"), `${run.id}-episodes.jsonl`, () => ""),
      ),
    ),
  );
  if (source.download(run.id, "episodes.csv") === null) {
    const all = () => source.episodes(run.id, { ...query, offset: 0, limit: 1000 });
    fill(
      controls.querySelector(".files")!,
      "Download ",
      button(
        "episodes.csv",
        () => void all().then(({ rows: found }) => saveFile(null, `${run.id}-episodes.csv`, () => csvOfRows(found))),
      ),
    );
  }
  void load();
  let seen = run.summary.episodes.count;
  return {
    element: h(
      "div",
      {},
      h("h1", {}, "Episodes"),
      controls,
      said,
      h("div", { class: "scroll card" }, h("table", { class: "episodes" }, h("thead", {}, head), rows)),
      pager,
    ),
    update() {
      if (run.summary.episodes.count === seen) return;
      seen = run.summary.episodes.count;
      if ((query.offset ?? 0) === 0) void load(); // on other pages rows would move while reading
    },
    onKey(event) {
      if (event.key === "/") {
        event.preventDefault();
        text.focus();
      }
    },
  };
}

function rowOf(run: string, row: EpisodeRow, query: EpisodeQuery): HTMLElement {
  const {
    n,
    step,
    question,
    database_name,
    actions,
    correctness,
    total_reward,
    advantage,
    completion_tokens,
    truncated,
  } = row;
  const mark = correctness === 1 ? "✓ right" : correctness === 0 ? "✗ wrong" : "– unscored";
  const open = hrefOf(run, "episode", [n], paramsOf(query));
  return h(
    "tr",
    {
      on: {
        click: (event) => {
          if (!(event.target as Element).closest("a")) location.hash = open;
        },
      },
    },
    h("td", { class: "number" }, step),
    h(
      "td",
      { class: correctness === 1 ? "good" : correctness === 0 ? "bad" : "dim" },
      mark,
      truncated ? " (cut short)" : "",
    ),
    h("td", { class: "wide" }, link(open, question)),
    h("td", {}, database_name),
    h("td", { class: "chips" }, chips(actions)),
    h("td", { class: "number" }, total_reward === null ? "–" : signed(total_reward)),
    h("td", { class: "number" }, advantage === 0 ? "0" : signed(advantage)),
    h("td", { class: "number" }, completion_tokens),
  );
}

function withoutPage({ offset: _, limit: __, ...rest }: EpisodeQuery): EpisodeQuery {
  return rest;
}

function csvOfRows(rows: readonly EpisodeRow[]): string {
  const columns = Object.keys(rows[0] ?? {}) as (keyof EpisodeRow)[];
  return csvOf(
    columns,
    rows.map((row) => columns.map((column) => row[column])),
  );
}
