// A live line chart on a canvas (uPlot): smoothing, zoom by dragging or keys, a cursor shared by all charts.
import uPlot from "uplot";
import { shortNumber } from "../../reports/format.ts";
import { announce, button, fill, h, refill } from "../../web-shared/dom.ts";
import { chartTable, chartTableView } from "./chart-table.ts";
import { ema } from "./ema.ts";
import type { Points, XAxis } from "./run-model.ts";

export interface ChartLine {
  readonly label: string;
  /** A CSS custom property with the color, such as "--blue". */
  readonly colour: string;
  readonly points: Points;
  readonly smoothed?: boolean;
  readonly dashed?: boolean;
  /** An interval around each point. */
  readonly band?: { readonly low: Points; readonly high: Points };
}

export interface ChartOptions {
  readonly title: string;
  readonly note?: string | undefined;
  readonly format?: (value: number) => string;
  readonly y?: readonly [number, number] | undefined;
  readonly height?: number;
  /** Called with the zoomed x range; null for all. */
  readonly onZoom?: (range: Range | null) => void;
  /** Called with the x of a point that is clicked, or chosen with Enter. */
  readonly onPick?: (x: number) => void;
}

export type Range = readonly [from: number, to: number];

/** Drawing options shared by the charts of a view. */
export interface ChartStyle {
  readonly smoothing: number;
  readonly axis: XAxis;
  readonly log: boolean;
  readonly range: Range | null;
  /** Minimum end of the x axis, such as the number of planned steps. */
  readonly until?: number | null;
}

export const PLAIN: ChartStyle = { smoothing: 0, axis: "step", log: false, range: null };

/** Charts with this key share their cursor. */
const SYNC = uPlot.sync("run");

/** Pixels that a click may move, and milliseconds in which a second click makes it a double one. */
const [CLICK_REACH, DOUBLE_CLICK] = [4, 300];

/** Steps between ticks: whole numbers only. */
const STEP_TICKS = [1, 10, 100, 1e3, 1e4, 1e5, 1e6].flatMap((power) => [power, 2 * power, 5 * power]);

/** Lines with more points are drawn without dots. */
const DOTTED = 25;

const AXIS_LABELS: Readonly<Record<XAxis, string>> = { step: "step", time: "time", tokens: "tokens" };

export class Chart {
  readonly element: HTMLElement;
  readonly #options: ChartOptions;
  readonly #canvas = h("div", { class: "canvas", tabindex: 0, role: "group" });
  readonly #legend = h("div", { class: "legend" });
  readonly #table = h("div", { class: "scroll chart-data", hidden: true });
  readonly #hidden = new Set<string>();
  #plot: uPlot | null = null;
  #lines: readonly ChartLine[] = [];
  #style: ChartStyle = PLAIN;
  #shape = "";
  #isReady = false;
  readonly #resize = new ResizeObserver(() => this.#fit());

  constructor(options: ChartOptions) {
    this.#options = options;
    const { title, note } = options;
    this.#canvas.setAttribute(
      "aria-label",
      `${title}. Arrow keys move along the line, plus and minus zoom, 0 shows everything${options.onPick ? ", Enter opens the step's episodes" : ""}.`,
    );
    this.#canvas.addEventListener("keydown", (event) => this.#onKey(event));
    this.element = h(
      "figure",
      { class: "chart card" },
      h(
        "figcaption",
        {},
        h("b", {}, title),
        this.#tableButton(title),
        note ? h("span", { class: "dim" }, ` ${note}`) : null,
        this.#legend,
      ),
      this.#canvas,
      this.#table,
    );
    this.#resize.observe(this.#canvas);
  }

  /** Draws these lines in this style, replacing earlier ones. */
  draw(lines: readonly ChartLine[], style: ChartStyle): void {
    this.#lines = lines;
    this.#isReady = true;
    // A chart with its own zoom keeps it.
    this.#style = this.#options.onZoom ? style : { ...style, range: this.#style.range };
    const { data, shape } = this.#data();
    const width = this.#canvas.clientWidth;
    if (width === 0) return; // not visible yet: the observer redraws it
    if (this.#plot && shape === this.#shape) this.#plot.setData(data);
    else {
      this.#plot?.destroy();
      this.#plot = new uPlot(this.#plotOptions(width), data, this.#canvas);
      this.#shape = shape;
    }
    this.#showValues(null);
    this.#showTable();
  }

  #tableButton(title: string): HTMLButtonElement {
    const toggle = button(
      "data",
      () => {
        this.#table.hidden = !this.#table.hidden;
        toggle.setAttribute("aria-expanded", String(!this.#table.hidden));
        this.#showTable();
      },
      { class: "data", "aria-expanded": "false", "aria-label": `data of ${title} as a table`, title: "as a table" },
    );
    return toggle;
  }

  #showTable(): void {
    if (this.#table.hidden) return;
    const { axis, range } = this.#style;
    const table = chartTable(this.#shown, { title: this.#options.title, axis: AXIS_LABELS[axis], range });
    refill(this.#table, table, () => chartTableView(table));
  }

  destroy(): void {
    this.#resize.disconnect();
    this.#plot?.destroy();
    this.#plot = null;
  }

  #fit(): void {
    const width = this.#canvas.clientWidth;
    if (width === 0) return;
    if (!this.#plot && this.#isReady) this.draw(this.#lines, this.#style);
    else if (!this.#plot)
      return; // nothing to draw yet: empty axes would look like data
    else if (this.#plot.width !== width) this.#plot.setSize({ width, height: this.#plot.height });
  }

  get #shown(): readonly ChartLine[] {
    return this.#lines.filter(({ label }) => !this.#hidden.has(label));
  }

  /** Aligned data of all lines, and a key that changes when the plot must be rebuilt. */
  #data(): { readonly data: uPlot.AlignedData; readonly shape: string } {
    const tables: uPlot.AlignedData[] = [];
    const { smoothing } = this.#style;
    const shape: string[] = [];
    for (const { label, colour, points, smoothed = true, band, dashed } of this.#shown) {
      const smooth = smoothed && smoothing > 0;
      if (band) tables.push(tableOf(band.low), tableOf(band.high));
      if (smooth) tables.push(tableOf(points));
      tables.push([[...points.x], smooth ? ema(points.y, smoothing) : [...points.y]]);
      shape.push([label, colour, smooth, Boolean(band), dashed, points.x.length > DOTTED].join());
    }
    const { log, axis } = this.#style;
    const theme = document.documentElement.dataset.theme ?? "";
    const data = tables.length === 0 ? ([[]] as uPlot.AlignedData) : uPlot.join(tables);
    // A log axis cannot show values <= 0.
    const positive = (values: ArrayLike<number | null | undefined>) =>
      Array.from(values, (value) => (typeof value === "number" && value <= 0 ? null : value));
    return {
      data: log ? [data[0], ...data.slice(1).map((values) => positive(values!))] : data,
      shape: [log, axis, theme, matchMedia("(prefers-color-scheme: dark)").matches, ...shape].join(";"),
    };
  }

  #plotOptions(width: number): uPlot.Options {
    const { format = shortNumber, height = 190 } = this.#options;
    const { log, axis, smoothing } = this.#style;
    const colour = (name: string, alpha = 1) => colourOf(this.element, name, alpha);
    const series: uPlot.Series[] = [{}];
    const bands: uPlot.Band[] = [];
    for (const { colour: name, points, smoothed = true, dashed, band } of this.#shown) {
      const stroke = colour(name);
      const faint = { spanGaps: true, points: { show: false } };
      if (band) {
        series.push({ ...faint, stroke: "transparent" }, { ...faint, stroke: "transparent" });
        bands.push({ series: [series.length - 1, series.length - 2], fill: colour(name, 0.18) });
      }
      if (smoothed && smoothing > 0) series.push({ ...faint, stroke: colour(name, 0.27), width: 1 });
      const few = points.x.length <= DOTTED;
      series.push({
        stroke,
        width: 2,
        spanGaps: true,
        points: { show: few && !dashed, size: 5, fill: stroke },
        ...(dashed ? { dash: [6, 4] } : {}),
      });
    }
    const axisStyle = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    const font = "11px ui-sans-serif, system-ui, sans-serif";
    return {
      width,
      height,
      series,
      bands,
      legend: { show: false },
      scales: {
        x: { time: false, range: (plot) => this.#span(plot.data).x },
        y: { distr: log ? 3 : 1, range: (plot) => this.#span(plot.data).y },
      },
      axes: [
        {
          ...axisStyle,
          font,
          size: 28,
          gap: 5,
          ...(axis === "step" ? { incrs: STEP_TICKS } : {}),
          values: (_, values) => values.map((value) => xText(value, axis)),
        },
        {
          ...axisStyle,
          font,
          gap: 4,
          size: 48,
          ...(log ? { splits: (_plot, _axis, min, max) => logTicks(min, max) } : {}),
          values: (_, values) => values.map((value) => (value === null ? "" : format(value))),
        },
      ],
      cursor: {
        sync: { key: SYNC.key, scales: ["x", null] },
        drag: { x: true, y: false, setScale: false },
        points: { size: 7 },
        dataIdx: (plot, line, at) => nearestKnown(plot.data[line], at),
      },
      hooks: {
        setCursor: [(plot) => this.#showValues(plot.cursor.idx ?? null)],
        setSelect: [
          (plot) => {
            const { left, width: wide } = plot.select;
            if (wide < 4) return;
            this.#zoom([plot.posToVal(left, "x"), plot.posToVal(left + wide, "x")]);
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          },
        ],
        ready: [(plot) => this.#listen(plot)],
      },
    };
  }

  /** A click picks a point; a double click shows everything again. */
  #listen(plot: uPlot): void {
    const { over } = plot;
    let [from, timer] = [0, 0];
    over.addEventListener("dblclick", () => {
      clearTimeout(timer);
      this.#zoom(null);
    });
    over.addEventListener("mousedown", ({ clientX }) => {
      from = clientX;
    });
    over.addEventListener("click", ({ clientX }) => {
      if (Math.abs(clientX - from) > CLICK_REACH) return; // a drag, which zooms
      clearTimeout(timer);
      const at = plot.posToIdx(clientX - over.getBoundingClientRect().left);
      // Only a zoomed chart reacts to a double click, so only there a single click has to wait.
      if (this.#style.range) timer = window.setTimeout(() => this.#pick(at), DOUBLE_CLICK);
      else this.#pick(at);
    });
    over.classList.toggle("pickable", this.#options.onPick !== undefined);
  }

  #pick(at: number | null | undefined): void {
    const x = at === null || at === undefined ? undefined : this.#plot?.data[0][at];
    if (x !== undefined) this.#options.onPick?.(x);
  }

  /** Ranges of both axes: the zoomed x range, and the values in it. */
  #span(data: uPlot.AlignedData): { readonly x: [number, number]; readonly y: [number, number] } {
    const { range, log, axis } = this.#style;
    const xs = data[0];
    const until = (axis === "step" ? this.#style.until : null) ?? Number.NEGATIVE_INFINITY;
    const [first, last] = [xs[0] ?? 0, Math.max(xs.at(-1) ?? 1, until)];
    const [min, max] = range ?? [first, last > first ? last : first + 1];
    const inside: number[] = [];
    for (const values of data.slice(1))
      xs.forEach((x, i) => {
        const value = values![i];
        if (x >= min && x <= max && typeof value === "number") inside.push(value);
      });
    const { y } = this.#options;
    const [low, high] = y && !log ? y : spanOf(inside, log);
    return { x: [min, max], y: [low, high] };
  }

  #zoom(range: Range | null): void {
    if (this.#options.onZoom) this.#options.onZoom(range);
    else {
      this.#style = { ...this.#style, range };
      this.#plot?.setData(this.#plot.data);
      this.#showTable();
    }
  }

  /** Each line's value at the cursor, or its last; clicking a label hides the line. */
  #showValues(at: number | null): void {
    const { format = shortNumber } = this.#options;
    const { axis } = this.#style;
    const x = at === null ? undefined : this.#plot?.data[0][at];
    const items = this.#lines.map(({ label, colour, points }) => {
      const hidden = this.#hidden.has(label);
      const value = x === undefined ? points.y.at(-1) : points.y[nearestTo(points.x, x)];
      const text = value === undefined || hidden ? "" : format(value);
      const parts = [
        h("i", { vars: { "--colour": `var(${colour})` } }),
        label ? `${label} ` : "",
        h("b", {}, text),
      ] as const;
      return this.#lines.length === 1
        ? h("span", { class: "key" }, ...parts)
        : button(parts, () => this.#toggle(label), {
            class: "key",
            "aria-pressed": String(!hidden),
            title: "show or hide",
          });
    });
    const focused = document.activeElement;
    const index = focused ? [...this.#legend.children].indexOf(focused) : -1;
    fill(
      this.#legend,
      ...items,
      x === undefined ? null : h("span", { class: "dim" }, `${AXIS_LABELS[axis]} ${xText(x, axis)}`),
    );
    if (index >= 0) (this.#legend.children[index] as HTMLElement | undefined)?.focus();
  }

  #toggle(label: string): void {
    if (!this.#hidden.delete(label)) this.#hidden.add(label);
    this.draw(this.#lines, this.#style);
  }

  #onKey(event: KeyboardEvent): void {
    const plot = this.#plot;
    if (!plot || event.ctrlKey || event.metaKey || event.altKey) return;
    const xs = plot.data[0];
    if (xs.length === 0) return;
    const [min, max] = [plot.scales.x!.min ?? 0, plot.scales.x!.max ?? 1];
    const { idx } = plot.cursor;
    const middle = idx === null || idx === undefined ? (min + max) / 2 : xs[idx]!;
    const half = (factor: number): Range => {
      const reach = ((max - min) * factor) / 2;
      return [Math.max(xs[0]!, middle - reach), Math.min(xs.at(-1)!, middle + reach)];
    };
    const move = (by: number) => {
      const next = Math.max(0, Math.min(xs.length - 1, idx === null || idx === undefined ? xs.length - 1 : idx + by));
      // uPlot's types omit the third argument, which also moves the other charts' cursors.
      const setCursor = plot.setCursor as (at: { left: number; top: number }, fire: boolean, publish: boolean) => void;
      setCursor({ left: plot.valToPos(xs[next]!, "x"), top: 10 }, true, true);
      announce([...this.#legend.children].map((child) => child.textContent).join(", "));
    };
    const keys: Readonly<Record<string, () => void>> = {
      ArrowLeft: () => move(-1),
      ArrowRight: () => move(1),
      "+": () => this.#zoom(half(0.5)),
      "=": () => this.#zoom(half(0.5)),
      "-": () => this.#zoom(half(2)),
      "0": () => this.#zoom(null),
      Enter: () => this.#pick(idx),
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
}

function tableOf({ x, y }: Points): uPlot.AlignedData {
  return [[...x], [...y]];
}

/** A CSS color as canvas needs it, in the current theme. */
function colourOf(element: HTMLElement, name: string, alpha: number): string {
  element.style.setProperty("outline-color", `var(${name})`); // an invisible property with a computed value
  const [red, green, blue] = getComputedStyle(element).outlineColor.match(/[\d.]+/g) ?? [];
  element.style.removeProperty("outline-color");
  return `rgba(${red}, ${green}, ${blue}, ${alpha})`;
}

/** A line without a point here shows its nearest one. */
function nearestKnown(values: ArrayLike<number | null | undefined> | undefined, at: number): number {
  if (!values || (values[at] !== null && values[at] !== undefined)) return at;
  for (let far = 1; far < values.length; far++)
    for (const i of [at - far, at + far]) if (values[i] !== null && values[i] !== undefined) return i;
  return at;
}

/** Index of the value nearest to x in ascending values. */
function nearestTo(xs: readonly number[], x: number): number {
  let [low, high] = [0, xs.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle]! < x) low = middle;
    else high = middle;
  }
  return Math.abs((xs[high] ?? 0) - x) < Math.abs((xs[low] ?? 0) - x) ? high : low;
}

/** A range that covers these values with a margin, from 0 if that is near. */
function spanOf(values: readonly number[], log: boolean): readonly [number, number] {
  const used = log ? values.filter((value) => value > 0) : values;
  if (used.length === 0) return log ? [0.1, 1] : [0, 1];
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of used) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (log) return [Math.max(low, high * 1e-9) / 1.2, high * 1.2];
  if (low > 0 && low < 0.6 * high) low = 0;
  if (high < 0 && high > 0.6 * low) high = 0;
  const air = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  return [low === 0 ? 0 : low - air, high === 0 ? 0 : high + air];
}

/** Ticks of a log axis: 1, 2 and 5 times each power of ten, or the powers alone if there are many. */
function logTicks(min: number, max: number): number[] {
  const [first, last] = [Math.floor(Math.log10(min)), Math.ceil(Math.log10(max))];
  const steps = last - first > 3 ? [1] : [1, 2, 5];
  const ticks: number[] = [];
  for (let power = first; power <= last; power++)
    for (const step of steps) {
      const tick = Number(`${step}e${power}`);
      if (tick >= min && tick <= max) ticks.push(tick);
    }
  return ticks;
}

function xText(value: number, axis: XAxis): string {
  if (axis === "step") return shortNumber(value);
  if (axis === "tokens") return value >= 1e3 && value < 1e6 ? `${shortNumber(value / 1e3)}k` : shortNumber(value);
  const seconds = Math.round(value);
  if (seconds < 60) return `${shortNumber(value)} s`;
  const parts = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60), seconds % 60];
  const [first, ...rest] = parts[0] === 0 ? parts.slice(1) : parts;
  return [first, ...rest.map((part) => String(part).padStart(2, "0"))].join(":");
}
