// Bars of speeds beside other software, one group of bars per workload; longer is faster.
import { escapeHtml } from "../../dist/apps/reports/format.js";
import { svgDocument } from "../../dist/apps/reports/svg-chart.js";

const [WIDTH, BAR, GAP, LEFT, RIGHT] = [960, 17, 16, 352, 640];
const n = (value) => Math.round(10 * value) / 10;
/** A rate for people: 1,234, or 11.8 below a hundred. */
export const rateText = (value) => (value < 100 ? value.toFixed(1) : Math.round(value).toLocaleString("en-US"));
/** A ratio for people: 39, 11.8 or 1.16. */
export const ratioText = (value) => value.toFixed(value < 2 ? 2 : value < 20 ? 1 : 0);

/** `panels`: title, a note on the machine, and rows of `scripts/benchmarks.mjs`, of which details are left to the tables. */
export function peerBars(panels) {
  const parts = [];
  let y = 36;
  const title = "Speed beside other software";
  parts.push(
    `<text class="sc-fill-ink" x="24" y="${y}" font-size="17" font-weight="700">${title}</text><text class="sc-dim" x="${LEFT}" y="${y}">longer is faster; each group of bars has its own scale</text>`,
  );
  for (const { title, note, rows } of panels) {
    y += 40;
    parts.push(
      `<text class="sc-fill-ink" x="24" y="${y}" font-size="14" font-weight="700">${escapeHtml(title)}</text>`,
      `<text class="sc-dim" x="${LEFT}" y="${y}">${escapeHtml(note)}</text>`,
    );
    y += 16;
    for (const { label, unit, ours, peers } of rows.filter(({ detail }) => !detail)) {
      const bars = [{ name: "SQLEnv", colour: "blue", value: ours }, ...peers];
      const most = Math.max(...bars.map(({ value }) => value));
      parts.push(
        `<text class="sc-fill-ink" x="24" y="${y + 13}">${escapeHtml(label)}</text><text class="sc-dim" x="24" y="${y + 28}" font-size="11">${unit}</text>`,
      );
      for (const { name, colour, value, ratio } of bars) {
        const length = Math.max(2, (value / most) * (RIGHT - LEFT));
        const times = ratio
          ? `<tspan class="sc-dim" font-weight="400"> · SQLEnv is </tspan><tspan class="sc-fill-ink">${ratioText(ratio)}×</tspan><tspan class="sc-dim" font-weight="400"> as fast</tspan>`
          : "";
        parts.push(
          `<rect class="sc-fill-${colour}" fill-opacity="${ratio ? 0.7 : 1}" x="${LEFT}" y="${y + 2}" width="${n(length)}" height="${BAR - 4}" rx="2"/><text class="sc-fill-${colour}" x="${n(LEFT + length + 8)}" y="${y + 13}" font-weight="700">${escapeHtml(name)} ${rateText(value)}${times}</text>`,
        );
        y += BAR;
      }
      y += Math.max(GAP, 2 * BAR + GAP - bars.length * BAR);
    }
  }
  return svgDocument({ width: WIDTH, height: y + 10, title }, parts.join(""));
}
