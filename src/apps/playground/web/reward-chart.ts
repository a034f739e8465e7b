// The live chart of reward and right answers over training steps. Built from DOM nodes: the page's content security
// policy forbids parsing markup, so the SVG strings of reports/svg-chart.ts cannot be used.
import type { Point } from "../../reports/smooth.ts";
import { fill, svg } from "../../web-shared/dom.ts";

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [320, 150, 34, 20, 8, 8];

export interface Line {
  readonly name: string;
  /** CSS class. */
  readonly className: string;
  readonly points: readonly Point[];
}

/** Draws lines over steps 1 to `steps`; the y axis covers at least 0 to 1. */
export function drawRewardChart(into: SVGSVGElement, lines: readonly Line[], steps: number): void {
  const values = lines.flatMap(({ points }) => points.map(({ y }) => y));
  const low = Math.min(0, ...values);
  const high = Math.max(1, ...values);
  const x = (step: number) => LEFT + ((step - 1) / Math.max(1, steps - 1)) * (WIDTH - LEFT - RIGHT);
  const y = (value: number) => TOP + ((high - value) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const round = (value: number) => Math.round(value * 10) / 10;
  into.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  const ticks = [0, 0.5, 1].flatMap((value) => [
    svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
    svg("text", { class: "tick", x: LEFT - 5, y: y(value) + 3.5, "text-anchor": "end" }, String(value)),
  ]);
  const ends = [1, steps].map((step) =>
    svg(
      "text",
      { class: "tick", x: x(step), y: HEIGHT - 5, "text-anchor": step === 1 ? "start" : "end" },
      `step ${step}`,
    ),
  );
  const drawn = lines.flatMap(({ className, points }) => {
    const path = points.map((point) => `${round(x(point.x))},${round(y(point.y))}`).join(" ");
    const last = points.at(-1);
    return [
      svg("polyline", { class: className, points: path }),
      ...(last ? [svg("circle", { class: className, cx: x(last.x), cy: y(last.y), r: 2.5 })] : []),
    ];
  });
  const label = lines.map(({ name, points }) => `${name} ${points.at(-1)?.y.toFixed(2) ?? "not yet"}`).join(", ");
  into.setAttribute("aria-label", `${label}, after ${lines[0]?.points.at(-1)?.x ?? 0} of ${steps} steps`);
  fill(into, ...ticks, ...ends, ...drawn);
}
