// The live chart of right answers over training steps. Built from DOM nodes: the page's content security policy forbids
// parsing markup, so the SVG strings of reports/svg-chart.ts cannot be used.
import type { Point } from "../../reports/smooth.ts";
import { fill, svg } from "../../web-shared/dom.ts";

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [620, 200, 46, 26, 10, 14];

export interface Line {
  readonly name: string;
  /** CSS class. */
  readonly className: string;
  /** Shares from 0 to 1. */
  readonly points: readonly Point[];
}

/** Draws lines over steps 0 to `steps`. */
export function drawRightChart(into: SVGSVGElement, lines: readonly Line[], steps: number): void {
  const x = (step: number) => LEFT + (step / Math.max(1, steps)) * (WIDTH - LEFT - RIGHT);
  const y = (share: number) => TOP + (1 - share) * (HEIGHT - TOP - BOTTOM);
  const round = (value: number) => Math.round(value * 10) / 10;
  into.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  const ticks = [0, 0.5, 1].flatMap((share) => [
    svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(share), y2: y(share) }),
    svg("text", { class: "tick", x: LEFT - 5, y: y(share) + 3.5, "text-anchor": "end" }, `${100 * share} %`),
  ]);
  const ends = [0, steps].map((step) => {
    const anchor = step === 0 ? "start" : "end";
    return svg("text", { class: "tick", x: x(step), y: HEIGHT - 5, "text-anchor": anchor }, `step ${step}`);
  });
  const drawn = lines.flatMap(({ className, points }) => {
    const path = points.map((point) => `${round(x(point.x))},${round(y(point.y))}`).join(" ");
    return [
      svg("polyline", { class: className, points: path }),
      ...points.map((point) => svg("circle", { class: className, cx: x(point.x), cy: y(point.y), r: 2.5 })),
    ];
  });
  const label = lines.map(({ name, points }) => `${name} ${share(points.at(-1))}`).join(", ");
  into.setAttribute(
    "aria-label",
    `Right answers: ${label}, after ${lines.at(-1)?.points.at(-1)?.x ?? 0} of ${steps} steps`,
  );
  fill(into, ...ticks, ...ends, ...drawn);
}

function share(point: Point | undefined): string {
  return point ? `${Math.round(100 * point.y)} %` : "not yet";
}
