// An animated SVG: the same question played at several steps of a training, beside the curve of right answers.
import { escapeHtml } from "../../dist/apps/reports/format.js";
import { svgDocument } from "../../dist/apps/reports/svg-chart.js";

const [WIDTH, HEIGHT] = [900, 384];
const SECONDS_PER_FRAME = 3.2;
const LAST_FRAME_SECONDS = 5.6;
const LINES = 4; // of an observation
const COLUMNS = 62;

const n = (value) => Math.round(10 * value) / 10;
const cut = (text, columns = COLUMNS) => (text.length > columns ? `${text.slice(0, columns - 1)}…` : text);

/** One frame per probed step; the last is shown longest, and alone where motion is unwanted. */
export function film(probes, evaluations, habits) {
  const frames = framesOf(probes);
  const total = SECONDS_PER_FRAME * (frames.length - 1) + LAST_FRAME_SECONDS;
  const style = frames.map((_, i) => {
    const from = (100 * SECONDS_PER_FRAME * i) / total;
    const to = i === frames.length - 1 ? 100 : (100 * SECONDS_PER_FRAME * (i + 1)) / total;
    const shown = `${from.toFixed(2)}%{visibility:visible}${to.toFixed(2)}%{visibility:hidden}`;
    return `@keyframes f${i}{0%{visibility:hidden}${shown}100%{visibility:${i === frames.length - 1 ? "visible" : "hidden"}}}.f${i}{visibility:hidden;animation:f${i} ${total}s step-end infinite}`;
  });
  const still = `@media (prefers-reduced-motion:reduce){[class^=f]{animation:none}.f${frames.length - 1}{visibility:visible}}`;
  const mono = ".m{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:12.5px}";
  const body = frames.map((frame, i) => `<g class="f${i}">${scene(frame)}${marker(frame, evaluations, habits)}</g>`);
  return svgDocument(
    { width: WIDTH, height: HEIGHT, title: "The same question at five steps of a training" },
    `<style>${mono}${style.join("")}${still}</style>${curve(evaluations, habits)}${body.join("")}`,
  );
}

/** The question that shows the change best: first answered at once, finally right, with the most different ways between. */
function framesOf(probes) {
  const last = probes.at(-1);
  const candidates = last.episodes.filter(({ correctness, steps }) => correctness === 1 && steps.length >= 3);
  const plays = (id) =>
    probes.map(({ step, episodes }) => ({ step, episode: episodes.find((e) => e.question_id === id) }));
  const ways = (id) => new Set(plays(id).map(({ episode }) => episode.steps.map(({ text }) => text).join("\n"))).size;
  const starts = (id) => plays(id)[0].episode;
  const scored = candidates
    .map(({ question_id: id, question }) => ({
      id,
      score:
        ways(id) +
        (starts(id).steps.length === 1 ? 2 : 0) +
        (starts(id).correctness === 0 ? 2 : 0) -
        question.length / 200,
    }))
    .sort((a, b) => b.score - a.score);
  if (!scored[0]) throw new Error("no probed question ends right");
  return plays(scored[0].id);
}

function scene({ step, episode }) {
  const parts = [
    `<text class="sc-fill-ink" x="24" y="36" font-size="16" font-weight="700">${step === 0 ? "Before training" : `After ${step} steps`}</text>`,
    `<text class="sc-dim" x="24" y="60">${escapeHtml(cut(episode.question, 74))}</text>`,
    `<text class="sc-dim" x="24" y="78">tables: ${escapeHtml(cut(episode.start.schema_info, 66))}</text>`,
  ];
  let y = 106;
  for (const { action, observation } of episode.steps) {
    if (y > 330) break;
    parts.push(
      `<text class="m sc-fill-ink" x="24" y="${y}"><tspan font-weight="700" class="${COLOUR[action.action_type] ?? "sc-dim"}">${action.action_type}</tspan> ${escapeHtml(cut(action.argument.replaceAll("\n", " "), COLUMNS - 9))}</text>`,
    );
    y += 18;
    if (action.action_type === "ANSWER") break;
    const lines = observation.error ? [`error: ${observation.error}`] : observation.result.split("\n");
    const shown =
      lines.length > LINES ? [...lines.slice(0, LINES - 1), `… ${lines.length - LINES + 1} more lines`] : lines;
    for (const line of shown) {
      parts.push(
        `<text class="m ${observation.error ? "sc-fill-orange" : "sc-dim"}" x="42" y="${y}">${escapeHtml(cut(line, COLUMNS - 2))}</text>`,
      );
      y += 16;
    }
    y += 6;
  }
  const right = episode.correctness === 1;
  const verdict = right ? "✓ right" : episode.done_reason === "answered" ? "✗ wrong" : "✗ no answer";
  parts.push(
    `<text class="${right ? "sc-fill-green" : "sc-fill-orange"}" x="24" y="${Math.min(y + 10, 364)}" font-weight="700" font-size="14">${verdict}</text>`,
  );
  return parts.join("");
}

const COLOUR = { DESCRIBE: "sc-fill-blue", SAMPLE: "sc-fill-green", QUERY: "sc-fill-orange", ANSWER: "sc-fill-purple" };
const BOX = { left: 606, right: 868, top: 74, bottom: 300 };

const last = (habits) => habits.at(-1).step;
const px = (step, habits) => BOX.left + (step / last(habits)) * (BOX.right - BOX.left);
const py = (rate) => BOX.bottom - rate * (BOX.bottom - BOX.top);

/** Right answers on unseen databases, by step. */
function curve(evaluations, habits) {
  const line = evaluations.map(({ step, unseen }) => `${n(px(step, habits))} ${n(py(unseen))}`).join("L");
  const ticks = [0, 0.5, 1].map(
    (rate) =>
      `<path class="sc-grid" d="M${BOX.left} ${n(py(rate))}H${BOX.right}"/><text class="sc-dim" x="${BOX.left - 8}" y="${n(py(rate) + 4)}" text-anchor="end">${100 * rate} %</text>`,
  );
  return [
    `<text class="sc-fill-ink" x="${BOX.left - 40}" y="36" font-weight="700">Right answers</text>`,
    `<text class="sc-dim" x="${BOX.left - 40}" y="54">on unseen databases, greedy, by step</text>`,
    ...ticks,
    `<path class="sc-blue" fill="none" stroke-opacity="0.35" stroke-width="2.2" stroke-linejoin="round" d="M${line}"/>`,
    ...[0, 10, 20, 30, 40]
      .filter((step) => step <= last(habits))
      .map(
        (step) =>
          `<text class="sc-dim" x="${n(px(step, habits))}" y="${BOX.bottom + 18}" text-anchor="middle">${step}</text>`,
      ),
  ].join("");
}

/** Where the frame's step is on the curve. */
function marker({ step }, evaluations, habits) {
  const after = evaluations.find((one) => one.step >= step);
  const before = evaluations.findLast((one) => one.step <= step);
  const share = after.step === before.step ? 0 : (step - before.step) / (after.step - before.step);
  const rate = before.unseen + share * (after.unseen - before.unseen);
  const shown = evaluations.filter((one) => one.step < step).map((one) => [one.step, one.unseen]);
  const line = [...shown, [step, rate]].map(([x, y]) => `${n(px(x, habits))} ${n(py(y))}`).join("L");
  return `<path class="sc-blue" fill="none" stroke-width="3" stroke-linejoin="round" d="M${line}"/><circle class="sc-fill-blue" cx="${n(px(step, habits))}" cy="${n(py(rate))}" r="6"/><text class="sc-fill-blue" x="${n(Math.min(px(step, habits) + 10, BOX.right - 26))}" y="${n(py(rate) + (rate > 0.85 ? 24 : -10))}" font-weight="700">${Math.round(100 * rate)} %</text>`;
}
