// One episode as a strip: the question, each action with what came back, and its reward.
import { escapeHtml } from "../../dist/apps/reports/format.js";
import { svgDocument } from "../../dist/apps/reports/svg-chart.js";

const [WIDTH, HEIGHT, GAP] = [960, 232, 16];
const COLOUR = { DESCRIBE: "blue", SAMPLE: "green", QUERY: "orange", ANSWER: "purple" };
const SAYS = {
  DESCRIBE: "reads a table's columns",
  SAMPLE: "reads some rows",
  QUERY: "runs SQL, reads the result",
  ANSWER: "is judged by its value",
};

const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3).replace(/0+$/, "").replace(/\.$/, "")}`;

/** Breaks a text into lines of at most `columns` characters, at spaces where there are some. */
function wrap(text, columns, lines) {
  const out = [""];
  for (const word of text.split(" ")) {
    if ((out.at(-1) + word).length > columns && out.at(-1) !== "") out.push("");
    out[out.length - 1] += `${word} `;
  }
  const cut = out
    .map((line) => line.trimEnd())
    .map((line) => (line.length > columns ? `${line.slice(0, columns - 1)}…` : line));
  return cut.length > lines ? [...cut.slice(0, lines - 1), "…"] : cut;
}

export function episodeStrip(episode) {
  const steps = episode.steps;
  const width = (WIDTH - GAP * (steps.length + 2)) / (steps.length + 1);
  const columns = Math.floor((width - 20) / 7.3);
  const box = (i, colour, title, note, lines, foot) => {
    const x = GAP + i * (width + GAP);
    const text = lines.map(
      ({ text: line, dim }, row) =>
        `<text class="m ${dim ? "sc-dim" : "sc-fill-ink"}" x="${x + 12}" y="${82 + 16 * row}">${escapeHtml(line)}</text>`,
    );
    const arrow =
      i === 0
        ? ""
        : `<path class="sc-axis" fill="none" stroke-width="2" d="M${x - GAP + 3} 120h${GAP - 6}m-4 -4l4 4l-4 4"/>`;
    return `${arrow}<rect class="b" x="${x}" y="16" width="${width}" height="${HEIGHT - 32}" rx="8"/><rect class="sc-fill-${colour}" x="${x}" y="16" width="${width}" height="5" rx="2"/><text class="sc-fill-${colour}" x="${x + 12}" y="42" font-weight="700" font-size="14">${title}</text><text class="sc-dim" x="${x + 12}" y="60">${note}</text>${text.join("")}<text class="sc-fill-ink" x="${x + 12}" y="${HEIGHT - 30}" font-weight="700">${foot}</text>`;
  };
  const question = [
    ...wrap(episode.question, columns, 4).map((text) => ({ text })),
    { text: "" },
    ...wrap(`tables: ${episode.start.schema_info}`, columns, 3).map((text) => ({ text, dim: true })),
  ];
  const panels = steps.map(({ action, observation }, i) => {
    const came = observation.error ? `error: ${observation.error}` : observation.result;
    const all = action.action_type === "ANSWER" ? [] : came.split("\n").flatMap((line) => wrap(line, columns, 2));
    const shown = all.length > 4 ? [...all.slice(0, 3), "…"] : all;
    const lines = [
      ...wrap(action.argument, columns, 3).map((text) => ({ text })),
      ...shown.map((text) => ({ text, dim: true })),
    ];
    const verdict = i === steps.length - 1 ? (episode.correctness === 1 ? " ✓ right" : " ✗ wrong") : "";
    return box(
      i + 1,
      COLOUR[action.action_type],
      action.action_type,
      SAYS[action.action_type],
      lines,
      `reward ${signed(observation.reward)}${verdict}`,
    );
  });
  const style =
    "<style>.m{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:12px}.b{fill:none;stroke:#aab3bc;stroke-opacity:.5}</style>";
  return svgDocument(
    { width: WIDTH, height: HEIGHT, title: "One episode: a question, three actions, their rewards" },
    `${style}${box(0, "ink", "The question", "about an unseen database", question, "schema unknown")}${panels.join("")}`,
  );
}
