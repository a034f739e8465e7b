// All metrics of a run as charts, grouped, with shared controls.

import { button, fill, h } from "../../web-shared/dom.ts";
import { logCsv } from "../server/csv.ts";
import { Chart, type ChartStyle, type Range } from "./chart.ts";
import { GROUPS, overlaid, type Panel, panelsOf } from "./chart-panels.ts";
import { hrefOf, setParams } from "./route.ts";
import { groupingOf } from "./run-groups.ts";
import type { RunModel, XAxis } from "./run-model.ts";
import { saveFile } from "./save-file.ts";
import type { Context, View } from "./view-types.ts";

const AXES: readonly XAxis[] = ["step", "time", "tokens"];

interface DrawnChart {
  readonly panel: Panel;
  readonly chart: Chart;
  isNear: boolean;
  isDrawn: boolean;
}

/** Safari has no idle callbacks. */
function whenIdle(work: () => void): void {
  if ("requestIdleCallback" in window) requestIdleCallback(work);
  else setTimeout(work, 50);
}

export function chartsView(context: Context): View {
  const { run, route, source } = context;
  const { params } = route;
  const number = (key: string) =>
    params.has(key) && Number.isFinite(Number(params.get(key))) ? Number(params.get(key)) : null;
  const [from, to] = [number("from"), number("to")];
  let style: ChartStyle = {
    smoothing: Math.min(0.99, Math.max(0, number("smooth") ?? 0.6)),
    axis: AXES.find((axis) => axis === params.get("x")) ?? "step",
    log: params.get("log") === "1",
    range: from !== null && to !== null && from < to ? [from, to] : null,
  };
  const grouping = groupingOf(params.get("group")); // chosen in the list of runs
  let filter = params.get("find") ?? "";
  let others: readonly RunModel[] = [];
  const charts = new Map<string, DrawnChart>();
  const near = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const drawn = [...charts.values()].find(({ chart }) => chart.element === target);
        if (!drawn) continue;
        drawn.isNear = isIntersecting;
        if (isIntersecting) draw(drawn);
      }
    },
    { rootMargin: "300px" },
  );
  const body = h("div", {});
  const reset = button("Reset zoom", () => change({ range: null }), { disabled: style.range === null });

  const draw = (drawn: DrawnChart) => {
    drawn.isDrawn = true;
    const until = others.length === 0 ? run.summary.total_steps : null;
    drawn.chart.draw(overlaid(drawn.panel, [run, ...others], style.axis, grouping), { ...style, until });
  };
  const drawNear = () => {
    for (const drawn of charts.values()) if (drawn.isNear) draw(drawn);
  };
  const drawAll = () => {
    for (const drawn of charts.values()) draw(drawn);
  };
  /** Charts further down are drawn when the browser is idle, so that none is empty when printed or scrolled to. */
  const drawLater = () => {
    const next = [...charts.values()].find(({ isDrawn, chart }) => !isDrawn && chart.element.isConnected);
    if (!next || isGone) return;
    draw(next);
    whenIdle(drawLater);
  };
  let isGone = false;
  const pick = (x: number) => {
    const step = run.stepAt(x, style.axis);
    if (step !== null) location.hash = hrefOf(run.id, "episodes", [], { from_step: step, to_step: step });
  };

  function change(changes: Partial<ChartStyle>): void {
    style = { ...style, ...changes };
    const { smoothing, axis, log, range } = style;
    setParams({
      smooth: smoothing === 0.6 ? undefined : smoothing,
      x: axis === "step" ? undefined : axis,
      log: log ? 1 : undefined,
      from: range ? Number(range[0].toPrecision(6)) : undefined,
      to: range ? Number(range[1].toPrecision(6)) : undefined,
    });
    reset.toggleAttribute("disabled", range === null);
    drawNear();
  }

  let laidOut = "";
  /** Adds charts as their data appears; existing ones stay. */
  function layOut(): void {
    const panels = panelsOf(run).filter(({ options }) => options.title.toLowerCase().includes(filter.toLowerCase()));
    const now = panels.map(({ options }) => options.title).join("\n");
    if (now === laidOut && body.childElementCount > 0) return;
    laidOut = now;
    for (const panel of panels) {
      const { title } = panel.options;
      if (charts.has(title)) continue;
      const chart = new Chart({
        ...panel.options,
        onZoom: (range: Range | null) => change({ range }),
        onPick: pick,
      });
      charts.set(title, { panel, chart, isNear: false, isDrawn: false });
      near.observe(chart.element);
    }
    const groups = GROUPS.map((group) => ({ group, those: panels.filter((panel) => panel.group === group) }));
    const focused = document.activeElement; // moved elements lose focus
    fill(
      body,
      groups
        .filter(({ those }) => those.length > 0)
        .map(({ group, those }) =>
          h(
            "section",
            {},
            h("h2", {}, group),
            h(
              "div",
              { class: "charts" },
              those.map(({ options }) => charts.get(options.title)!.chart.element),
            ),
          ),
        ),
      panels.length === 0
        ? h(
            "p",
            { class: "dim" },
            filter ? "No chart title matches." : "No data yet: the first step has not been logged.",
          )
        : null,
    );
    if (focused instanceof HTMLElement && body.contains(focused)) focused.focus({ preventScroll: true });
    whenIdle(drawLater);
  }

  const smoothing = h("input", {
    type: "range",
    min: 0,
    max: 0.99,
    step: 0.01,
    value: style.smoothing,
    "aria-label": "smoothing",
  });
  const shown = h("output", {}, style.smoothing.toFixed(2));
  smoothing.addEventListener("input", () => {
    shown.textContent = Number(smoothing.value).toFixed(2);
    change({ smoothing: Number(smoothing.value) });
  });
  const axis = h(
    "select",
    { "aria-label": "x axis" },
    AXES.map((name) => h("option", { value: name, selected: name === style.axis }, name)),
  );
  axis.addEventListener("change", () => change({ axis: axis.value as XAxis, range: null }));
  const log = h("input", { type: "checkbox", checked: style.log });
  log.addEventListener("change", () => change({ log: log.checked }));
  const find = h("input", { type: "search", placeholder: "find a chart", value: filter, "aria-label": "find a chart" });
  find.addEventListener("input", () => {
    filter = find.value;
    setParams({ find: filter });
    layOut();
  });
  const files = (["metrics", "timings", "habits"] as const).map((name) =>
    button(`${name}.csv`, () =>
      saveFile(source.download(run.id, `${name}.csv`), `${run.id}-${name}.csv`, () => logCsv(run.logs[name])),
    ),
  );
  const json = button("metrics.json", () =>
    saveFile(source.download(run.id, "metrics.json"), `${run.id}-metrics.json`, () => JSON.stringify(run.logs.metrics)),
  );
  const controls = h(
    "div",
    { class: "controls", role: "toolbar", "aria-label": "charts" },
    h("label", {}, "Smoothing ", smoothing, shown),
    h("label", {}, "x ", axis),
    h("label", {}, log, " log y"),
    reset,
    find,
    h("span", { class: "files" }, "Download ", files, json),
  );
  layOut();
  void context.others().then((loaded) => {
    others = loaded;
    drawNear();
  });
  window.addEventListener("themechange", drawAll);
  window.addEventListener("beforeprint", drawAll);
  return {
    element: h(
      "div",
      {},
      h("h1", {}, "Charts"),
      controls,
      h(
        "p",
        { class: "note" },
        "Click a point to see that step's episodes. Drag across a chart to zoom, double-click to reset. Charts share cursor and zoom.",
        grouping ? " Lines are means of a group's runs, and bands reach from the lowest to the highest run." : null,
      ),
      body,
    ),
    update() {
      layOut();
      drawNear();
    },
    destroy() {
      isGone = true;
      window.removeEventListener("themechange", drawAll);
      window.removeEventListener("beforeprint", drawAll);
      near.disconnect();
      for (const { chart } of charts.values()) chart.destroy();
    },
  };
}
