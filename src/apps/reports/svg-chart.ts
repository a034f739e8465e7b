// Line charts as SVG: axes, lines with raw points, bands, labels at the line ends. No fonts, scripts or network.
// The default style rules are the light theme's, for renderers without media queries.

import { cut, escapeHtml, isNumber, shortNumber } from "./format.ts";
import { type Point, reach, type Spread, smooth, thin } from "./smooth.ts";

/** A palette that is safe for color-blind readers; `ink` is the text color, `grey` is for secondary lines. */
export type Colour = "ink" | "blue" | "orange" | "green" | "purple" | "yellow" | "grey";

export const LINE_COLOURS: readonly Colour[] = ["blue", "orange", "green", "purple", "yellow", "ink"];

const LIGHT: Readonly<Record<Colour, string>> = {
  ink: "#1f2328",
  blue: "#0a6ebd",
  orange: "#c8500a",
  green: "#0b8060",
  purple: "#a2407f",
  yellow: "#8a6d00",
  grey: "#6b7480",
};
const DARK: Readonly<Record<Colour, string>> = {
  ink: "#e8edf2",
  blue: "#5fb4f5",
  orange: "#ff9c52",
  green: "#3fd1a2",
  purple: "#e792c9",
  yellow: "#e2c14e",
  grey: "#98a2ad",
};

export interface Series {
  readonly label: string;
  readonly colour: Colour;
  readonly points: readonly Point[];
  /** Draws a smoothed line over the raw points. @default false: the points, connected */
  readonly smoothed?: boolean;
  readonly dashed?: boolean;
  readonly band?: readonly Spread[];
  /** A horizontal line, such as a baseline; `points` has one point. */
  readonly level?: boolean;
}

export interface Panel {
  readonly title: string;
  /** A short description after the title. */
  readonly note?: string;
  readonly series: readonly Series[];
  /** Range of the y axis. @default fits the data, from 0 if that is near */
  readonly y?: readonly [number, number];
  /** Range of the x axis. @default fits the data */
  readonly x?: readonly [number, number];
  readonly xLabel?: string;
  /** Number format of the axis and labels. @default three digits */
  readonly format?: (value: number) => string;
  /** Text shown when there is no data. */
  readonly empty?: string;
}

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

const FONT = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif";
const CHARACTER = 6.4; // average width in px at 12 px font size
const LABEL_GAP = 15;

/** The style rules of all charts; a page needs them once. */
export function chartStyle(): string {
  const colours = (of: Readonly<Record<Colour, string>>) =>
    Object.entries(of)
      .map(([name, colour]) => `.sc-${name}{stroke:${colour}}.sc-fill-${name}{fill:${colour}}`)
      .join("");
  return [
    `.sc-text{font-family:${FONT};font-size:12px;font-variant-numeric:tabular-nums}`,
    `.sc-back{fill:#ffffff}.sc-dim{fill:#59636e}.sc-grid{stroke:#e3e8ed}.sc-axis{stroke:#aab3bc}${colours(LIGHT)}`,
    `@media screen and (prefers-color-scheme:dark){.sc-back{fill:#14181d}.sc-dim{fill:#98a2ad}.sc-grid{stroke:#2a3138}.sc-axis{stroke:#56606a}${colours(DARK)}}`,
  ].join("");
}

export interface DocumentOptions {
  readonly width: number;
  readonly height: number;
  /** Text alternative. */
  readonly title: string;
  /** Omits background and style rules, for a page that has both. @default false */
  readonly inline?: boolean;
}

/** A complete SVG document around drawn panels. */
export function svgDocument({ width, height, title, inline = false }: DocumentOptions, body: string): string {
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeHtml(title)}"`;
  if (inline) return `${head}><g class="sc-text">${body}</g></svg>`;
  return `${head} width="${width}" height="${height}"><title>${escapeHtml(title)}</title><style>${chartStyle()}</style><rect class="sc-back" width="${width}" height="${height}" rx="8"/><g class="sc-text">${body}</g></svg>\n`;
}

/** Draws one panel into its box. */
export function drawPanel(panel: Panel, box: Box): string {
  const { title, note, xLabel = "step", format = shortNumber, empty = "nothing logged yet" } = panel;
  const series = panel.series
    .map((one) => ({ ...one, points: one.points.filter(({ x, y }) => isNumber(x) && isNumber(y)) }))
    .filter(({ points }) => points.length > 0);
  const labels = series.map((one) => `${cut(one.label, 24)} ${format(lastOf(one))}`.trim());
  const [ylow, yhigh] = panel.y ?? rangeOf(series);
  const [xlow, xhigh] = panel.x ?? xRange(series);
  const yTicks = ticks(ylow, yhigh, Math.max(2, Math.round(box.height / 55)));
  const left = box.x + 10 + CHARACTER * Math.max(...yTicks.map((tick) => format(tick).length), 3);
  const right =
    box.x + box.width - Math.max(30, 12 + CHARACTER * 1.3 * Math.max(0, ...labels.map(({ length }) => length)));
  const [top, bottom] = [box.y + 26, box.y + box.height - 22];
  const px = (x: number) => left + ((x - xlow) / (xhigh - xlow)) * (right - left);
  const py = (y: number) => bottom - ((Math.min(yhigh, Math.max(ylow, y)) - ylow) / (yhigh - ylow)) * (bottom - top);
  const parts = [
    `<text class="sc-fill-ink" x="${box.x}" y="${box.y + 12}"><tspan font-weight="700">${escapeHtml(title)}</tspan>${note ? `<tspan class="sc-dim" dx="8">${escapeHtml(note)}</tspan>` : ""}</text>`,
    ...yTicks.map(
      (tick) =>
        `<path class="sc-grid" d="M${n(left)} ${n(py(tick))}H${n(right)}"/><text class="sc-dim" x="${n(left - 7)}" y="${n(py(tick) + 4)}" text-anchor="end">${escapeHtml(format(tick))}</text>`,
    ),
    `<path class="sc-axis" d="M${n(left)} ${n(bottom)}H${n(right)}"/>`,
  ];
  if (series.length === 0) {
    parts.push(
      `<text class="sc-dim" x="${n((left + right) / 2)}" y="${n((top + bottom) / 2)}" text-anchor="middle">${escapeHtml(empty)}</text>`,
    );
    return parts.join("");
  }
  const xTicks = ticks(xlow, xhigh, Math.max(2, Math.round((right - left) / 90))).filter(Number.isInteger);
  for (const tick of xTicks) {
    const word = tick === xTicks.at(-1) ? `${xLabel} ${shortNumber(tick)}` : shortNumber(tick);
    parts.push(
      `<path class="sc-axis" d="M${n(px(tick))} ${n(bottom)}v4"/><text class="sc-dim" x="${n(px(tick))}" y="${n(bottom + 17)}" text-anchor="middle">${escapeHtml(word)}</text>`,
    );
  }
  for (const one of series) parts.push(drawBand(one, px, py));
  for (const one of series) parts.push(drawLine(one, px, py, [left, right]));
  const labelHeights = spread(
    series.map((one) => py(lastOf(one)) + 4),
    top,
    bottom + 4,
  );
  series.forEach(({ colour }, i) => {
    parts.push(
      `<text class="sc-fill-${colour}" x="${n(right + 8)}" y="${n(labelHeights[i]!)}" font-weight="700">${escapeHtml(labels[i]!)}</text>`,
    );
  });
  return parts.join("");
}

type Scale = (value: number) => number;

function drawBand({ band = [], colour }: Series, px: Scale, py: Scale): string {
  const known = band.filter(({ x, low, high }) => isNumber(x) && isNumber(low) && isNumber(high));
  if (known.length === 0) return "";
  const only = known.length === 1 ? known[0] : undefined;
  if (only) {
    return `<path class="sc-${colour}" stroke-width="6" stroke-opacity="0.25" d="M${n(px(only.x))} ${n(py(only.low))}V${n(py(only.high))}"/>`;
  }
  const ring = [
    ...known.map(({ x, high }) => [x, high] as const),
    ...[...known].reverse().map(({ x, low }) => [x, low] as const),
  ];
  return `<path class="sc-fill-${colour}" fill-opacity="0.14" d="M${ring.map(([x, y]) => `${n(px(x))} ${n(py(y))}`).join("L")}Z"/>`;
}

function drawLine(
  { points, colour, smoothed, dashed, level }: Series,
  px: Scale,
  py: Scale,
  [left, right]: readonly [number, number],
): string {
  if (level) {
    return `<path class="sc-${colour}" stroke-width="1.5" stroke-dasharray="2 4" d="M${n(left)} ${n(py(points[0]!.y))}H${n(right)}"/>`;
  }
  const raw = thin(points);
  const line = smoothed ? smooth(raw) : raw;
  const dots = raw
    .map(
      ({ x, y }) => `<circle cx="${n(px(x))}" cy="${n(py(y))}" r="${smoothed && reach(raw.length) > 0 ? 1.6 : 2.6}"/>`,
    )
    .join("");
  const faint = smoothed && reach(raw.length) > 0 ? ' fill-opacity="0.28"' : "";
  const marks = smoothed || raw.length <= 60 ? `<g class="sc-fill-${colour}"${faint}>${dots}</g>` : "";
  const dash = dashed ? ' stroke-dasharray="6 4"' : "";
  const path = line.map(({ x, y }) => `${n(px(x))} ${n(py(y))}`).join("L");
  return `${marks}<path class="sc-${colour}" fill="none" stroke-width="2.2" stroke-linejoin="round" stroke-linecap="round"${dash} d="M${path}"/>`;
}

/** The last value of a line, shown in its label. */
function lastOf({ points, smoothed }: Series): number {
  const raw = thin(points);
  return (smoothed ? smooth(raw) : raw).at(-1)!.y;
}

/** A y range that covers all points and bands with a margin, and 0 if that is near. */
function rangeOf(series: readonly Series[]): [number, number] {
  const values = series.flatMap(({ points, band = [] }) => [
    ...points.map(({ y }) => y),
    ...band.flatMap(({ low, high }) => [low, high].filter(isNumber)),
  ]);
  if (values.length === 0) return [0, 1];
  let [low, high] = [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
  if (low > 0 && low < 0.5 * high) low = 0;
  if (high < 0 && high > 0.5 * low) high = 0;
  const isFlat = high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high));
  if (isFlat) [low, high] = low === 0 ? [0, 1] : [Math.min(0, 2 * low), Math.max(0, 2 * high)];
  const margin = 0.04 * (high - low);
  return [low === 0 ? 0 : low - margin, high === 0 ? 0 : high + margin];
}

function xRange(series: readonly Series[]): [number, number] {
  const values = series.filter(({ level }) => !level).flatMap(({ points }) => points.map(({ x }) => x));
  if (values.length === 0) return [0, 1];
  const [low, high] = [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
  return low === high ? [low - 1, high + 1] : [low, high];
}

/** Round tick values in a range, about `wanted` of them. */
export function ticks(low: number, high: number, wanted: number): number[] {
  const rough = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const off = (factor: number) => Math.abs(Math.log((factor * power) / rough));
  const step = power * [1, 2, 5, 10].reduce((best, factor) => (off(factor) < off(best) ? factor : best));
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** Moves label positions apart until none overlap, as little as possible, within the panel. */
export function spread(heights: readonly number[], top: number, bottom: number, gap = LABEL_GAP): number[] {
  const order = heights.map((_, i) => i).sort((a, b) => heights[a]! - heights[b]! || a - b);
  // Overlapping neighbours merge into a block around their mean; overlapping blocks merge again.
  const blocks: { members: number[]; middle: number }[] = [];
  for (const i of order) {
    let block = { members: [i], middle: heights[i]! };
    for (let before = blocks.at(-1); before; before = blocks.at(-1)) {
      const distance = ((before.members.length + block.members.length) / 2) * gap;
      if (clampMiddle(block, top, bottom, gap) - clampMiddle(before, top, bottom, gap) >= distance - 1e-9) break;
      blocks.pop();
      const members = [...before.members, ...block.members];
      block = { members, middle: members.reduce((sum, member) => sum + heights[member]!, 0) / members.length };
    }
    blocks.push(block);
  }
  const placed: number[] = [...heights];
  for (const block of blocks) {
    const start = clampMiddle(block, top, bottom, gap) - ((block.members.length - 1) / 2) * gap;
    block.members.forEach((member, k) => {
      placed[member] = start + k * gap;
    });
  }
  return placed;
}

function clampMiddle(
  { members, middle }: { readonly members: readonly number[]; readonly middle: number },
  top: number,
  bottom: number,
  gap: number,
): number {
  const half = ((members.length - 1) / 2) * gap;
  return Math.max(top + half, Math.min(bottom - half, middle));
}

/** A coordinate, rounded to a tenth of a pixel. */
function n(value: number): string {
  return String(Math.round(value * 10) / 10);
}
