// Compares runs: their names and results, in groups if wanted, which of them the charts overlay, and the settings that differ.

import type { Evaluation } from "../../../rl/run/records.ts";
import { withInterval } from "../../reports/evaluation-summary.ts";
import { count, duration } from "../../reports/format.ts";
import { button, type Child, fill, h, link } from "../../web-shared/dom.ts";
import type { RunListing } from "../server/schemas.ts";
import { runColour } from "./chart-panels.ts";
import { comparedRuns, setComparedRuns } from "./compared-runs.ts";
import { hrefOf, setParams } from "./route.ts";
import { flatSettings, GROUPINGS, type Grouping, groupingOf, groupRuns, mean, type RunGroup } from "./run-groups.ts";
import { renameRun, runName } from "./run-names.ts";
import { STATE_LABELS } from "./run-text.ts";
import type { Context, View } from "./view-types.ts";

export function runsView({ run, runs, route }: Context): View {
  const differences = h("section", { class: "card scroll" });
  let everything = false;
  const all = h("input", { type: "checkbox" });
  let sorted: SortColumn | null = null;
  let filter = route.params.get("name") ?? "";
  const find = h("input", {
    type: "search",
    placeholder: "name or model",
    value: filter,
    "aria-label": "filter the runs",
  });
  find.addEventListener("input", () => {
    filter = find.value;
    setParams({ name: filter });
    showTable();
  });
  const found = h("span", { class: "dim", role: "status" });
  let grouping = groupingOf(route.params.get("group"));
  const groupBy = h(
    "select",
    {},
    h("option", { value: "" }, "nothing"),
    Object.entries(GROUPINGS).map(([value, text]) => h("option", { value, selected: value === grouping }, text)),
  );
  groupBy.addEventListener("change", () => {
    grouping = groupingOf(groupBy.value);
    setParams({ group: groupBy.value });
    window.dispatchEvent(new Event("comparedchange")); // the frame's links keep it
    showTable();
  });
  const shown = () => runs.filter(({ id }) => id === run.id || comparedRuns(run.id).includes(id));
  const about = h("span", { class: "dim" });
  const showDifferences = () => {
    const chosen = shown();
    about.textContent = ` ${aboutSettings(run.summary, chosen.length)}`;
    fill(differences, settings(chosen, everything));
  };
  all.addEventListener("change", () => {
    everything = all.checked;
    showDifferences();
  });
  const table = h("div", { class: "card scroll" });
  const showAll = () => {
    showTable();
    showDifferences();
  };
  const showTable = () => {
    const colours = new Map(
      shown().map(({ id }, i) => [id, runColour([run.id, ...comparedRuns(run.id)].indexOf(id)) ?? runColour(i)]),
    );
    const listed = matching(runs, filter, run.id);
    found.textContent = listed.length < runs.length ? `${listed.length} of ${runs.length} runs` : "";
    const focused = document.activeElement?.getAttribute("data-run");
    fill(
      table,
      h(
        "table",
        { class: "runs" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, "in charts"),
            COLUMNS.map(([name, key]) => {
              const isSorted = sorted?.name === name;
              const sort = () => {
                sorted = { name, key, descending: isSorted ? !sorted!.descending : true };
                showTable();
              };
              const arrow = isSorted ? (sorted!.descending ? " ↓" : " ↑") : "";
              return h(
                "th",
                { scope: "col", "aria-sort": isSorted ? (sorted!.descending ? "descending" : "ascending") : "none" },
                button(`${name}${arrow}`, sort, { "data-run": `sort ${name}` }),
              );
            }),
          ),
        ),
        rowsOf(inOrder(listed, sorted), grouping).map(({ label, runs: members }) =>
          h(
            "tbody",
            {},
            label === null ? null : groupRow(label, members, run.id, showAll),
            members.map((other) => row(other, run.id, colours.get(other.id), showAll)),
          ),
        ),
      ),
    );
    if (focused) table.querySelector<HTMLElement>(`[data-run="${CSS.escape(focused)}"]`)?.focus();
  };
  showTable();
  showDifferences();
  return {
    element: h(
      "div",
      {},
      h("h1", {}, "Runs and settings"),
      h(
        "p",
        { class: "dim lead" },
        runs.length > 1
          ? "Selected runs are overlaid in the charts, and their settings are compared below."
          : "Give several runs, or a folder of runs, to compare them: sqlenv report RUN RUN --serve",
      ),
      runs.length > 1 ? h("div", { class: "controls" }, find, found, h("label", {}, "group by ", groupBy)) : null,
      table,
      h("h2", {}, "Settings", about),
      h("label", { class: "controls" }, all, " show all settings"),
      differences,
    ),
  };
}

type Value = string | number | null;

interface SortColumn {
  readonly name: string;
  readonly key: (run: RunListing) => Value;
  readonly descending: boolean;
}

const rateOf = (evaluation: Evaluation | null, split: "seen" | "unseen") =>
  evaluation?.[split].greedy.success_rate ?? null;

const COLUMNS: readonly (readonly [string, (run: RunListing) => Value])[] = [
  ["run", ({ id }) => runName(id)],
  ["unseen, after", ({ now }) => rateOf(now, "unseen")], // first, since a phone shows few columns
  ["unseen, before", ({ before }) => rateOf(before, "unseen")],
  ["seen, after", ({ now }) => rateOf(now, "seen")],
  ["state", ({ state }) => state],
  ["steps", ({ step }) => step],
  ["time", ({ result, elapsed }) => result?.seconds ?? elapsed],
  ["model", ({ model_name }) => model_name],
];

/** Runs whose name or model contains every word of the filter; the current one, and those in the charts, are always listed. */
function matching(runs: readonly RunListing[], filter: string, current: string): readonly RunListing[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const kept = [current, ...comparedRuns(current)];
  return runs.filter(({ id, model_name }) => {
    const text = `${id} ${runName(id)} ${model_name ?? ""}`.toLowerCase();
    return kept.includes(id) || words.every((word) => text.includes(word));
  });
}

/** The table's parts: all runs without a heading, or groups with their labels. */
function rowsOf(
  runs: readonly RunListing[],
  grouping: Grouping | null,
): readonly (Omit<RunGroup<RunListing>, "label"> & { readonly label: string | null })[] {
  return grouping ? groupRuns(runs, grouping, (run) => run) : [{ label: null, runs }];
}

/** A group's heading, with the mean and the range of its runs' success; its tick puts all of them into the charts. */
function groupRow(label: string, runs: readonly RunListing[], current: string, onChange: () => void): HTMLElement {
  const ids = runs.map(({ id }) => id);
  const isIn = (id: string) => id === current || comparedRuns(current).includes(id);
  const tick = h("input", {
    type: "checkbox",
    checked: ids.every(isIn),
    "aria-label": `show all of ${label} in the charts`,
    "data-run": `group ${label}`,
  });
  tick.addEventListener("change", () => {
    const others = comparedRuns(current).filter((id) => !ids.includes(id));
    setComparedRuns(tick.checked ? [...others, ...ids.filter((id) => id !== current)] : others);
    onChange();
  });
  const rate = (of: (run: RunListing) => number | null): string => {
    const known = runs.map(of).filter((value) => value !== null);
    if (known.length === 0) return "–";
    const [low, high] = [Math.min(...known), Math.max(...known)].map((value) => (100 * value).toFixed(1));
    const range = known.length > 1 ? ` (${low} – ${high})` : "";
    return `${(100 * mean(known)).toFixed(1)} %${range}`;
  };
  return h(
    "tr",
    { class: "group" },
    h("td", {}, tick),
    h("th", { scope: "rowgroup" }, `${label}: ${count(runs.length, "run")}`),
    h(
      "td",
      {},
      h(
        "b",
        {},
        rate(({ now }) => rateOf(now, "unseen")),
      ),
    ),
    h(
      "td",
      {},
      rate(({ before }) => rateOf(before, "unseen")),
    ),
    h(
      "td",
      {},
      rate(({ now }) => rateOf(now, "seen")),
    ),
    h("td", { colspan: COLUMNS.length - 4, class: "dim" }, runs.length > 1 ? "mean (lowest – highest)" : ""),
  );
}

/** A run's name, which can be changed; the folder's name stays beside it. */
function nameCell(id: string, onChange: () => void): HTMLElement {
  const cell = h("td", {});
  const show = () => {
    const name = runName(id);
    const edit = button("✎", input, { class: "rename", title: "rename", "aria-label": `rename ${id}` });
    fill(cell, link(hrefOf(id, "overview"), name), edit, name === id ? null : h("span", { class: "dim" }, ` ${id}`));
  };
  const input = () => {
    const field = h("input", { type: "text", value: runName(id), maxlength: 80, "aria-label": `name of ${id}` });
    let isOpen = true;
    const end = (name: string) => {
      if (!isOpen) return; // removing a focused field blurs it
      isOpen = false;
      renameRun(id, name);
      onChange();
    };
    field.addEventListener("blur", () => end(field.value));
    field.addEventListener("keydown", ({ key }) => {
      if (key === "Enter") end(field.value);
      if (key === "Escape") end(runName(id));
    });
    fill(cell, field);
    field.select();
  };
  show();
  return cell;
}

/** The runs in the given order, or sorted by a column; runs without a value come last. */
function inOrder(runs: readonly RunListing[], sorted: SortColumn | null): readonly RunListing[] {
  if (!sorted) return runs;
  const { key, descending } = sorted;
  return [...runs].sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === y) return 0;
    if (x === null || y === null) return x === null ? 1 : -1;
    return (x < y ? -1 : 1) * (descending ? -1 : 1);
  });
}

/** Says what the table of settings shows at first. */
function aboutSettings({ preset }: RunListing, runs: number): string {
  if (runs > 1) return "that differ between the selected runs";
  return preset?.name ? `that differ from the preset ${preset.name}` : "that differ from the defaults";
}

function row(other: RunListing, current: string, colour: string | undefined, onChange: () => void): HTMLElement {
  const { id, state, model_name, step, result, elapsed, before, now } = other;
  const isCurrent = id === current;
  const tick = h("input", {
    type: "checkbox",
    checked: isCurrent || comparedRuns(current).includes(id),
    disabled: isCurrent,
    "aria-label": `show ${id} in the charts`,
    "data-run": id,
  });
  tick.addEventListener("change", () => {
    const others = comparedRuns(current).filter((name) => name !== id);
    setComparedRuns(tick.checked ? [...others, id] : others);
    onChange();
  });
  const seconds = result?.seconds ?? elapsed;
  const rate = (evaluation: Evaluation | null, split: "seen" | "unseen"): Child =>
    evaluation ? withInterval(evaluation[split].greedy) : "–";
  return h(
    "tr",
    { "aria-current": isCurrent ? "true" : undefined },
    h("td", {}, tick, colour ? h("i", { class: "dot", vars: { "--colour": `var(${colour})` } }) : null),
    nameCell(id, onChange),
    h("td", {}, h("b", {}, rate(now, "unseen"))),
    h("td", {}, rate(before, "unseen")),
    h("td", {}, rate(now, "seen")),
    h("td", {}, STATE_LABELS[state]),
    h("td", { class: "number" }, count(step, "step")),
    h("td", { class: "number" }, seconds === null ? "–" : duration(seconds)),
    h("td", {}, model_name ?? "–"),
  );
}

/** A table of settings by run; differing ones, or all. */
function settings(runs: readonly RunListing[], everything: boolean): Child {
  const [only] = runs;
  if (runs.length === 1 && only?.preset && !everything) return presetSettings(only);
  const flat = runs.map(({ config }) => flatSettings(config ?? {}));
  const keys = [...new Set(flat.flatMap((config) => [...config.keys()]))];
  const differs = (key: string) => new Set(flat.map((config) => config.get(key) ?? "")).size > 1;
  const shown = keys.filter((key) => everything || runs.length === 1 || differs(key));
  if (shown.length === 0) return h("p", { class: "dim" }, "All settings are the same.");
  return h(
    "table",
    { class: "settings" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        h("th", { scope: "col" }, "setting"),
        runs.map(({ id }) => h("th", { scope: "col" }, runName(id))),
      ),
    ),
    h(
      "tbody",
      {},
      shown.map((key) =>
        h(
          "tr",
          { class: runs.length > 1 && differs(key) ? "differs" : "" },
          h("td", {}, h("code", {}, key)),
          flat.map((config) => h("td", {}, config.get(key) ?? "–")),
        ),
      ),
    ),
  );
}

/** The settings of one run that differ from its preset's. */
function presetSettings({ id, config, preset }: RunListing): Child {
  const { name, usual } = preset!;
  const flat = flatSettings(config ?? {});
  const keys = Object.keys(usual);
  if (keys.length === 0) return h("p", { class: "dim" }, "None.");
  return h(
    "table",
    { class: "settings" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["setting", runName(id), name === null ? "default" : `preset ${name}`].map((text) =>
          h("th", { scope: "col" }, text),
        ),
      ),
    ),
    h(
      "tbody",
      {},
      keys.map((key) =>
        h(
          "tr",
          {},
          h("td", {}, h("code", {}, key)),
          h("td", {}, h("b", {}, flat.get(key) ?? "–")),
          h("td", {}, usual[key]),
        ),
      ),
    ),
  );
}
