// The overview: whether the model learned, by how much on unseen databases, and how its behaviour changed.
import type { EpisodeRecord, Summary } from "../../../gym/evaluation/index.ts";
import type { EvaluationSplit } from "../../../rl/run/records.ts";
import type { ActionStats } from "../../reports/action-stats.ts";
import { behaviourShapes } from "../../reports/behaviour-chart.ts";
import { behaviourRows } from "../../reports/evaluation-summary.ts";
import { exampleQuestion } from "../../reports/example-question.ts";
import { count, duration, percent, percentRange } from "../../reports/format.ts";
import { splitLabel } from "../../reports/split-label.ts";
import { type Verdict, verdictSentence } from "../../reports/verdict-sentence.ts";
import { type Child, fill, h, link, refill, shapeNode, svg } from "../../web-shared/dom.ts";
import type { ActionSequences, NumberedEpisode, RunSummary } from "../server/schemas.ts";
import { Chart, PLAIN } from "./chart.ts";
import { GENERALIZATION, REWARD } from "./chart-panels.ts";
import { goldCard, sql, verdictTag } from "./conversation.ts";
import { hrefOf } from "./route.ts";
import type { RunModel } from "./run-model.ts";
import type { Source } from "./run-source.ts";
import { actionWords, describeChange, splitHeading, trainingSuccess } from "./run-text.ts";
import type { Context, View } from "./view-types.ts";

export function overview({ run, source }: Context): View {
  const hero = h("section", { class: "hero card", "aria-label": "did it learn" });
  const warnings = h("section", { class: "warnings", "aria-label": "warnings", "aria-live": "polite" });
  const bars = h("section", { class: "card evaluation" });
  const habits = h("section", { class: "card habits" });
  const areas = h("section", { class: "card areas", "aria-label": "behaviour over training" });
  const example = h("section", { class: "card example" });
  const time = h("section", { class: "card time" });
  const [curve, reward] = [GENERALIZATION, REWARD].map((panel, i) => ({
    panel,
    chart: new Chart({
      ...panel.options,
      height: i === 0 ? 232 : 200,
      onPick: (x) => {
        const step = run.stepAt(x, "step");
        if (step !== null) location.hash = hrefOf(run.id, "episodes", [], { from_step: step, to_step: step });
      },
    }),
  })) as [Drawn, Drawn];
  let shown = "";

  /** The comparison once it exists; until then the newest episode, updated each step. */
  const showExample = async () => {
    const { state, step, episodes } = run.summary;
    const finished = state === "finished";
    const now = finished ? "after" : episodes.count > 0 ? `step ${step}` : "";
    if (now === shown || now === "") return;
    shown = now;
    try {
      const content = finished
        ? await exampleOf(run.id, source)
        : newestEpisode(run.id, await source.episode(run.id, episodes.count - 1));
      if (shown === now) fill(example, content);
    } catch {
      shown = ""; // retried on the next event
    }
  };

  const update = () => {
    const { summary } = run;
    const { state, now_step, random, before, now, early, late, episodes } = summary;
    const verdict = verdictSentence(summary, trainingSuccess(run));
    refill(hero, verdict, () => heroOf(verdict));
    refill(warnings, [summary.warnings, summary.problems], () => warningsOf(summary));
    refill(bars, [state, now_step, random, before, now], () => evaluationBars(summary));
    if (!summary.environment) {
      refill(areas, [run.logs.habits.step?.length, summary.total_steps], () => behaviourAreas(run));
      refill(habits, [state, early, late, now, episodes.indexed], () => behaviourChange(summary));
    }
    fill(
      time,
      timeOf(run.summary, (key) => run.sum("timings", key), run.last("timings", "tokens_per_s")),
    );
    for (const { panel, chart } of [curve, reward])
      chart.draw(panel.lines(run, "step"), { ...PLAIN, until: summary.total_steps });
    void showExample();
  };
  update();
  const element = h(
    "div",
    { class: "overview" },
    hero,
    warnings,
    // Other environments than SQL have no kinds of actions, so no charts of them.
    run.summary.environment
      ? h("div", { class: "duo" }, curve.chart.element, bars)
      : [h("div", { class: "trio" }, bars, curve.chart.element, habits), areas],
    example,
    h("div", { class: "duo" }, reward.chart.element, time),
  );
  return {
    element,
    update,
    destroy: () => {
      for (const { chart } of [curve, reward]) chart.destroy();
    },
  };
}

interface Drawn {
  readonly panel: typeof REWARD;
  readonly chart: Chart;
}

function heroOf({ tone, word, sentence, footnote }: Verdict): Child {
  return [
    h(
      "h1",
      { class: tone },
      word,
      " ",
      h(
        "span",
        {},
        sentence.map((part) => (typeof part === "string" ? part : h("b", {}, part.strong))),
      ),
    ),
    footnote ? h("p", { class: "dim" }, footnote) : null,
  ];
}

/** The behaviour of the training episodes of each step, as stacked areas. */
function behaviourAreas({ logs: { habits }, summary }: RunModel): Child {
  const rows = (habits.step ?? []).map(
    (_, i) =>
      Object.fromEntries(
        Object.entries(habits).map(([key, column]) => [key, column[i] ?? 0]),
      ) as unknown as ActionStats,
  );
  const total = summary.total_steps ?? rows.at(-1)?.step ?? 1;
  const { width, height } = areasSize();
  const shapes = behaviourShapes(rows, { inline: true, width, height, total_steps: total });
  return svg(
    "svg",
    {
      viewBox: `0 0 ${width} ${height}`,
      class: "sc-text",
      role: "img",
      "aria-label": "What the model does over training",
    },
    shapes.map(shapeNode),
  );
}

/** The drawing's size; a phone gets a smaller one, so that its text stays readable. */
function areasSize(): { readonly width: number; readonly height: number } {
  return innerWidth < 760 ? { width: 620, height: 240 } : { width: 1200, height: 200 };
}

/** One entry per kind of warning, newest first. */
export function warningsOf({ warnings, problems }: RunSummary): Child {
  const kinds = [...new Set(warnings.map(({ code }) => code).reverse())];
  return [
    ...kinds.map((code) => {
      const those = warnings.filter((warning) => warning.code === code);
      const last = those.at(-1)!;
      const when = those.length === 1 ? `step ${last.step}` : `${those.length} times, last at step ${last.step}`;
      return h(
        "p",
        { class: "warning" },
        h("b", {}, `${last.message}. `),
        `${sentenceCase(last.remedy)} `,
        h("span", { class: "dim" }, `(${when})`),
      );
    }),
    ...problems.map((problem) => h("p", { class: "warning" }, problem)),
  ];
}

function sentenceCase(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
}

/** Success of the random baseline, and before and after training, as bars with intervals. */
function evaluationBars(summary: RunSummary): Child {
  const { random, before, now, state, now_step } = summary;
  const last = state === "finished" ? "after" : now_step === null ? "now" : `step ${now_step}`;
  const splits = (["unseen", "seen"] as const).filter((split) =>
    [random, before, now].some((evaluation) => (evaluation?.[split].greedy.scored ?? 0) > 0),
  );
  if (splits.length === 0) return [h("h2", {}, "Right answers"), h("p", { class: "dim" }, "No evaluation yet.")];
  const rows = (split: EvaluationSplit) => [
    h("h3", {}, splitHeading(split, summary)),
    summary.environment ? null : bar("random", random?.[split].greedy ?? null, "random"),
    bar("before", before?.[split].greedy ?? null, "was"),
    bar(last, now?.[split].greedy ?? null, "is"),
  ];
  return [h("h2", {}, "Right answers"), splits.map(rows), sampledNote(summary), failuresLink(summary)];
}

function bar(name: string, summary: Summary | null, kind: string): HTMLElement {
  const { success_rate: rate = null, success_ci: ci = null } = summary ?? {};
  const at = (value: number) => `${(100 * Math.max(0, Math.min(1, value))).toFixed(1)}%`;
  return h(
    "div",
    { class: `bar ${kind}`, title: ci ? `95 % interval ${percentRange(ci)}` : "" },
    h("span", { class: "name" }, name),
    h(
      "span",
      { class: "track" },
      rate === null ? null : h("i", { vars: { "--to": at(rate) } }),
      ci ? h("u", { vars: { "--from": at(ci[0]), "--width": at(ci[1] - ci[0]) } }) : null,
    ),
    h("b", {}, rate === null ? "…" : percent(rate)),
  );
}

/** Leads to the questions that are still answered wrong. */
function failuresLink({ id, state, now }: RunSummary): Child {
  if (state !== "finished" || !now) return null;
  const greedy = [now.unseen.greedy, now.seen.greedy];
  const [asked, wrong] = [
    greedy.reduce((sum, { scored }) => sum + scored, 0),
    greedy.reduce((sum, { scored, success_rate }) => sum + Math.round(scored * (1 - (success_rate ?? 1))), 0),
  ];
  if (wrong === 0) return null;
  return link(hrefOf(id, "questions", [], { show: "wrong" }), `${wrong} of ${asked} still wrong: which, and why`);
}

function sampledNote({ before, now, environment }: RunSummary): Child {
  const [was, is] = [before?.unseen.sampled.success_rate ?? null, now?.unseen.sampled.success_rate ?? null];
  if (was === null || is === null) return null;
  const where = splitLabel("unseen", environment);
  return h("p", { class: "note" }, `Sampled as in training, ${where}: ${percent(was)} → ${percent(is)}.`);
}

/** The most frequent action sequences at the start and at the end of training. */
function behaviourChange(summary: RunSummary): Child {
  const { early, late, episodes, state } = summary;
  const now = state === "finished" ? "at the end" : "now";
  const change = describeChange(early, late, now);
  if (!early || !late)
    return [
      h("h2", {}, "How its behaviour changed"),
      h("p", { class: "dim" }, episodes.indexed < 1 ? "Indexing episodes …" : "Available after two steps."),
    ];
  const heldOut = behaviour(summary);
  const side = (title: string, played: ActionSequences) =>
    h(
      "div",
      {},
      h("h3", {}, title, h("span", { class: "dim" }, ` ${stepsOf(played)}, ${count(played.episodes, "episode")}`)),
      played.sequences
        .filter(({ share }) => share >= 0.005)
        .slice(0, heldOut ? 2 : 3) // fits the first screen
        .map(({ actions, share, right }) =>
          h(
            "div",
            { class: "sequence", title: `${percent(right)} of these were right` },
            h("span", { class: "track" }, h("i", { vars: { "--to": `${100 * share}%` } })),
            h("b", {}, `${Math.round(100 * share)} %`),
            h("span", { class: "chips" }, chips(actions)),
          ),
        ),
    );
  return [
    h("h2", {}, "How its behaviour changed"),
    h("p", { class: "lead" }, change),
    heldOut,
    side("At the start of training", early),
    side(now === "now" ? "Now" : "At the end of training", late),
    episodes.indexed < 1 ? h("p", { class: "note" }, `${percent(episodes.indexed)} of the episodes indexed`) : null,
  ];
}

/** Behaviour on held-out questions about unseen databases, before and after. */
function behaviour({ random, before, now, state }: RunSummary): Child {
  if (state !== "finished" || !random || !before || !now) return null;
  const rows = behaviourRows({ random, before, after: now }).slice(0, 2);
  return rows.map(([name, , was, is]) =>
    h("p", { class: "turned" }, h("span", {}, name), h("span", {}, `${was} → `, h("b", {}, is))),
  );
}

function stepsOf({ from_step, to_step }: ActionSequences): string {
  return from_step === to_step ? `step ${from_step}` : `steps ${from_step}–${to_step}`;
}

/** An action sequence as chips. */
export function chips(actions: string): Child {
  const words = actionWords(actions);
  if (words.length === 0) return h("span", { class: "dim" }, "nothing");
  return words.map((word) => h("span", { class: `chip ${word.toLowerCase()}` }, word));
}

/** One question that shows the change, each player in a few lines. */
async function exampleOf(run: string, source: Source): Promise<Child> {
  const comparison = await source.comparison(run);
  const question = exampleQuestion(comparison);
  if (!question) return null;
  const { gold } = await source.question(run, question.question_id);
  const { players } = comparison;
  const where = question.seen ? "seen in training" : "unseen in training";
  return [
    h(
      "h2",
      {},
      `The same question, ${players.join(", ")}`,
      h("span", { class: "dim" }, ` · ${question.database_name}, ${where}`),
    ),
    h("p", { class: "question" }, `“${question.question}”`),
    h(
      "div",
      { class: "players" },
      question.episodes.map((episode, i) => player(players[i] ?? episode.player, episode)),
    ),
    gold ? goldCard(gold) : null,
    link(hrefOf(run, "questions"), "All compared questions, turn by turn"),
  ];
}

/** The newest episode, until there is an "after" to compare with. */
function newestEpisode(run: string, { n, episode, gold }: NumberedEpisode): Child {
  return [
    h("h2", {}, `Newest episode, step ${episode.step}`, h("span", { class: "dim" }, ` · ${episode.database_name}`)),
    h("p", { class: "question" }, `“${episode.question}”`),
    h("div", { class: "players" }, player("the model", episode)),
    gold ? goldCard(gold) : null,
    link(hrefOf(run, "episode", [n]), "This episode, turn by turn"),
  ];
}

function player(name: string, episode: EpisodeRecord): HTMLElement {
  const more = episode.steps.length - SHOWN_STEPS;
  return h(
    "div",
    { class: "player" },
    h("header", {}, h("h3", {}, name), verdictTag(episode)),
    h(
      "ol",
      {},
      episode.steps
        .slice(0, SHOWN_STEPS)
        .map(({ action, observation }) =>
          h(
            "li",
            { class: observation.error !== null ? "failed" : "" },
            h("span", { class: `chip ${action.action_type.toLowerCase()}` }, action.action_type),
            h("code", {}, action.action_type === "QUERY" ? sql(action.argument) : action.argument),
          ),
        ),
      more > 0 ? h("li", { class: "dim" }, `… ${count(more, "more step")}`) : null,
    ),
  );
}

const SHOWN_STEPS = 4;

const TIME_PARTS = [
  ["sampling", "--blue"],
  ["training", "--orange"],
  ["environment", "--green"],
  ["rewards", "--purple"],
] as const;

function timeOf({ result, elapsed, eta }: RunSummary, sum: (key: string) => number, speed: number | null): Child {
  const all = sum("step_time");
  if (all === 0) return [h("h2", {}, "Time"), h("p", { class: "dim" }, "No step yet.")];
  const parts = TIME_PARTS.map(([name, colour]) => ({
    name: name as string,
    colour: colour as string,
    seconds: sum(name),
  }));
  const rest = Math.max(0, all - parts.reduce((total, { seconds }) => total + seconds, 0));
  const shown = [...parts, { name: "other", colour: "--grey", seconds: rest }].filter(
    ({ seconds }) => seconds / all > 0.001,
  );
  const facts: [string, string][] = [
    ["tokens sampled per second", speed === null ? "–" : Math.round(speed).toLocaleString("en-US")],
    ["time in steps", duration(all)],
    ...(elapsed !== null && elapsed > all * 1.02
      ? [["including evaluations", duration(elapsed)] as [string, string]]
      : []),
    ...(result ? [["total, including SFT and evaluations", duration(result.seconds)] as [string, string]] : []),
    ...(eta === null ? [] : [["left", duration(eta)] as [string, string]]),
  ];
  return [
    h("h2", {}, "Time"),
    h(
      "div",
      { class: "stack" },
      shown.map(({ colour, seconds }) => h("i", { vars: { "--share": seconds / all, "--colour": `var(${colour})` } })),
    ),
    h(
      "p",
      { class: "legend" },
      shown.map(({ name, colour, seconds }) =>
        h(
          "span",
          { class: "key" },
          h("i", { vars: { "--colour": `var(${colour})` } }),
          `${name} `,
          h("b", {}, percent(seconds / all)),
        ),
      ),
    ),
    h(
      "dl",
      { class: "facts" },
      facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
    ),
  ];
}
