// What the model does over training: the share of episodes that answer at once, explore first, query again, per step.
import { type ActionStats, BEHAVIOURS, type EpisodeBehaviour } from "./action-stats.ts";
import { escapeHtml } from "./format.ts";
import { type Colour, svgDocument } from "./svg-chart.ts";

export interface BehaviourChartOptions {
  /** @default "What the model does" */
  readonly title?: string;
  /** After the title. @default the number of episodes per step */
  readonly note?: string;
  /** End of the x axis, such as the planned steps. @default the last step */
  readonly total_steps?: number;
  /** Omits style rules and background, for a page that has them. @default false */
  readonly inline?: boolean;
  /** @default 900 */
  readonly width?: number;
  /** @default 300 */
  readonly height?: number;
}

const SHOWN: Readonly<
  Record<EpisodeBehaviour, { readonly label: string; readonly colour: Colour; readonly opacity: number }>
> = {
  explore_query_answer: { label: "explores, queries, answers", colour: "green", opacity: 0.95 },
  explore_query_again: { label: "explores, queries more than once", colour: "green", opacity: 0.45 },
  other: { label: "other", colour: "grey", opacity: 0.35 },
  answer_at_once: { label: "answers at once", colour: "purple", opacity: 0.9 },
};

/** An SVG element, so that a page whose policy forbids parsing markup can build it too. */
export interface Shape {
  readonly tag: "path" | "rect" | "text" | "tspan";
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly children?: readonly (string | Shape)[];
}

/** Maximum number of steps drawn; longer runs are averaged. */
const POINTS = 120;

/**
 * Stacked areas over the steps, as a self-contained SVG.
 *
 * @example
 * const { habits } = await readRun("runs/starter");
 * const svg = behaviourChart(habits, { title: "What the starter does" });
 */
export function behaviourChart(stats: readonly ActionStats[], options: BehaviourChartOptions = {}): string {
  const { width = 900, height = 300, inline = false, title = "What the model does" } = options;
  return svgDocument({ width, height, title, inline }, behaviourShapes(stats, options).map(markup).join(""));
}

/** The chart's elements, for a page that builds its own SVG. */
export function behaviourShapes(stats: readonly ActionStats[], options: BehaviourChartOptions = {}): Shape[] {
  const { width = 900, height = 300, inline = false, title = "What the model does" } = options;
  const { note = noteOf(stats), total_steps = stats.at(-1)?.step ?? 1 } = options;
  const [left, right, top, bottom] = [62, width - 272, 44, height - 34];
  const points = averaged(stats);
  const first = points[0]?.step ?? 1;
  const px = (step: number) => left + ((step - first) / Math.max(1, total_steps - first)) * (right - left);
  const py = (share: number) => bottom - share * (bottom - top);
  const heading: Shape[] = [
    { tag: "tspan", attributes: { "font-weight": 700, "font-size": inline ? 13 : 16 }, children: [title] },
    { tag: "tspan", attributes: { class: "sc-dim", dx: 8 }, children: [note] },
  ];
  const head: Shape[] = [
    { tag: "text", attributes: { class: "sc-fill-ink", x: 20, y: 26 }, children: heading },
    ...[0, 0.5, 1].flatMap((share): Shape[] => [
      { tag: "path", attributes: { class: "sc-grid", d: `M${n(left)} ${n(py(share))}H${n(right)}` } },
      label(`${100 * share} %`, left - 7, py(share) + 4, "end"),
    ]),
  ];
  if (points.length === 0) return [...head, label("no episode yet", (left + right) / 2, (top + bottom) / 2)];
  const steps = [...new Set([first, ...middleSteps(first, total_steps), total_steps])];
  return [
    ...head,
    ...areas(points, px, py, right),
    ...steps.map((step) => label(`${step === total_steps ? "step " : ""}${step}`, px(step), bottom + 18)),
    ...legend(points.at(-1)!, right + 16, top + 14),
  ];
}

function areas(points: readonly ActionStats[], px: Scale, py: Scale, right: number): Shape[] {
  let below = points.map(() => 0);
  return BEHAVIOURS.map((behaviour) => {
    const { colour, opacity } = SHOWN[behaviour];
    const above = points.map((point, i) => Math.min(1, below[i]! + point[behaviour]));
    const edge = (values: readonly number[]) => {
      const line = points.map(({ step }, i) => [px(step), py(values[i]!)] as const);
      return line.length === 1 ? [line[0]!, [right, line[0]![1]] as const] : line; // a single step is a column
    };
    const ring = [...edge(above), ...edge(below).reverse()].map(([x, y]) => `${n(x)} ${n(y)}`);
    below = above;
    return {
      tag: "path",
      attributes: { class: `sc-fill-${colour}`, "fill-opacity": opacity, d: `M${ring.join("L")}Z` },
    };
  });
}

/** The behaviours from top to bottom as they are stacked, with the shares of the last steps. */
function legend(last: ActionStats, x: number, y: number): Shape[] {
  return [...BEHAVIOURS].reverse().flatMap((behaviour, i): Shape[] => {
    const { label: name, colour, opacity } = SHOWN[behaviour];
    const row = y + i * 26;
    const share: Shape = {
      tag: "tspan",
      attributes: { "font-weight": 700 },
      children: [`${Math.round(100 * last[behaviour])} %`],
    };
    return [
      {
        tag: "rect",
        attributes: {
          class: `sc-fill-${colour}`,
          "fill-opacity": opacity,
          x: n(x),
          y: n(row - 10),
          width: 12,
          height: 12,
          rx: 2,
        },
      },
      { tag: "text", attributes: { class: "sc-fill-ink", x: n(x + 18), y: n(row) }, children: [`${name} `, share] },
    ];
  });
}

function label(text: string, x: number, y: number, anchor = "middle"): Shape {
  return { tag: "text", attributes: { class: "sc-dim", x: n(x), y: n(y), "text-anchor": anchor }, children: [text] };
}

function markup(shape: string | Shape): string {
  if (typeof shape === "string") return escapeHtml(shape);
  const { tag, attributes, children = [] } = shape;
  const set = Object.entries(attributes).map(([name, value]) => ` ${name}="${escapeHtml(String(value))}"`);
  return `<${tag}${set.join("")}>${children.map(markup).join("")}</${tag}>`;
}

type Scale = (value: number) => number;

function noteOf(stats: readonly ActionStats[]): string {
  const episodes = Math.max(0, ...stats.map(({ episodes: count }) => count));
  return episodes === 0 ? "" : `shares of the ${episodes} training episodes of each step`;
}

/** At most `POINTS` points: means of neighbouring steps, each at its last step. */
function averaged(stats: readonly ActionStats[]): readonly ActionStats[] {
  const size = Math.ceil(stats.length / POINTS);
  if (size <= 1) return stats;
  return Array.from({ length: Math.ceil(stats.length / size) }, (_, i) => {
    const some = stats.slice(i * size, (i + 1) * size);
    const mean = (key: EpisodeBehaviour) => some.reduce((sum, one) => sum + one[key], 0) / some.length;
    return {
      ...some.at(-1)!,
      ...(Object.fromEntries(BEHAVIOURS.map((key) => [key, mean(key)])) as Record<EpisodeBehaviour, number>),
    };
  });
}

function middleSteps(first: number, last: number): number[] {
  const size = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((one) => (last - first) / one <= 5) ?? 5000;
  return Array.from({ length: Math.floor(last / size) + 1 }, (_, i) => i * size).filter(
    (step) => step > first + size / 2 && step < last - size / 2,
  );
}

function n(value: number): number {
  return Math.round(10 * value) / 10;
}
