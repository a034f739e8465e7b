// GRPO in one picture: the episodes of one group, their rewards, the group's mean, and what each episode's tokens get.
import { escapeHtml } from "../../dist/apps/reports/format.js";
import { svgDocument } from "../../dist/apps/reports/svg-chart.js";

const [WIDTH, ROW, TOP] = [960, 34, 104];
const CHIP = {
  D: ["DESCRIBE", "blue", 78],
  S: ["SAMPLE", "green", 66],
  Q: ["QUERY", "orange", 58],
  A: ["ANSWER", "purple", 68],
};
const [REWARD, ADVANTAGE] = [
  { x: 470, width: 190 },
  { x: 800, width: 110 },
];

const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
const n = (value) => Math.round(10 * value) / 10;

export function groupPicture(episodes) {
  const rows = [...episodes].sort((a, b) => b.total_reward - a.total_reward);
  const mean = rows.reduce((sum, { total_reward }) => sum + total_reward, 0) / rows.length;
  const most = Math.max(...rows.map(({ total_reward }) => total_reward));
  const px = (reward) => REWARD.x + (Math.max(0, reward) / most) * REWARD.width;
  const bottom = TOP + ROW * rows.length;
  const height = bottom + 62;
  const drawn = rows.map((episode, i) => {
    const y = TOP + i * ROW;
    let x = 24;
    const chips = episode.steps.slice(0, 5).map(({ action }) => {
      const [name, colour, width] = CHIP[action.action_type[0]];
      const chip = `<rect class="sc-fill-${colour}" fill-opacity="0.16" x="${x}" y="${y + 6}" width="${width}" height="20" rx="4"/><text class="sc-fill-${colour}" x="${x + 7}" y="${y + 20}" font-size="11" font-weight="700">${name}</text>`;
      x += width + 6;
      return chip;
    });
    const more =
      episode.steps.length > 5
        ? `<text class="sc-dim" x="${x}" y="${y + 20}">… ${episode.steps.length - 5} more</text>`
        : "";
    const right = episode.correctness === 1;
    const { advantage } = episode;
    const length = (Math.abs(advantage) / 1.1) * ADVANTAGE.width;
    const [from, colour] = advantage > 0 ? [ADVANTAGE.x, "green"] : [ADVANTAGE.x - length, "orange"];
    return `${chips.join("")}${more}<text class="${right ? "sc-fill-green" : "sc-dim"}" x="${REWARD.x - 14}" y="${y + 20}" text-anchor="end" font-weight="700">${right ? "✓ right" : "✗ wrong"}</text><rect class="sc-fill-${right ? "green" : "grey"}" fill-opacity="0.75" x="${REWARD.x}" y="${y + 8}" width="${n(Math.max(2, px(episode.total_reward) - REWARD.x))}" height="16" rx="2"/><text class="sc-fill-ink" x="${n(px(episode.total_reward) + 8)}" y="${y + 20}">${episode.total_reward.toFixed(2)}</text><rect class="sc-fill-${colour}" x="${n(from)}" y="${y + 8}" width="${n(length)}" height="16" rx="2"/><text class="sc-fill-ink" x="${n(advantage > 0 ? from + length + 8 : from - 8)}" y="${y + 20}" text-anchor="${advantage > 0 ? "start" : "end"}">${signed(advantage)}</text>`;
  });
  const heads = [
    [24, "What it did", "eight attempts at one question, sampled"],
    [REWARD.x - 64, "Reward", "1 for the right answer, up to 0.25 for the way there"],
    [ADVANTAGE.x - 66, "Advantage", "reward − mean of the group"],
  ].map(
    ([x, title, note]) =>
      `<text class="sc-fill-ink" x="${x}" y="76" font-weight="700">${title}</text><text class="sc-dim" x="${x}" y="93" font-size="11">${note}</text>`,
  );
  const meanLine = `<path class="sc-ink" stroke-dasharray="4 4" stroke-width="1.5" d="M${n(px(mean))} ${TOP}V${bottom + 6}"/><text class="sc-fill-ink" x="${n(px(mean))}" y="${bottom + 22}" text-anchor="middle">mean ${mean.toFixed(2)}</text><path class="sc-axis" d="M${ADVANTAGE.x} ${TOP}V${bottom}"/>`;
  const foot = `<text class="sc-fill-ink" x="24" y="${height - 16}"><tspan class="sc-fill-green" font-weight="700">Green:</tspan> every token of the attempt becomes likelier. <tspan class="sc-fill-orange" font-weight="700">Orange:</tspan> less likely. There is no value network: the group is the baseline.</text>`;
  const title = `<text class="sc-fill-ink" x="24" y="36" font-size="17" font-weight="700">GRPO in one picture</text><text class="sc-dim" x="226" y="36">step ${rows[0].step}: “${escapeHtml(rows[0].question)}”</text>`;
  return svgDocument(
    { width: WIDTH, height, title: "GRPO in one picture: a group of eight attempts" },
    [title, ...heads, ...drawn, meanLine, foot].join(""),
  );
}
