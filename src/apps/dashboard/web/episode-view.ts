// One episode turn by turn, and one question's group side by side.
import { signed } from "../../../gym/evaluation/transcript.ts";
import type { EpisodeLine } from "../../../rl/run/records.ts";
import { shortNumber } from "../../reports/format.ts";
import { type Child, fill, h, link } from "../../web-shared/dom.ts";
import { aboutEpisode, conversation, episodeColumn, verdictTag } from "./conversation.ts";
import { hrefOf } from "./route.ts";
import type { NumberedEpisode } from "./run-source.ts";
import type { Context, View } from "./view-types.ts";

/** An episode by its number. */
export function episodeView({ run, source, route }: Context): View {
  const n = Number(route.rest[0]);
  const element = h("div", { class: "episode" }, h("p", { class: "dim" }, "Reading the episode …"));
  source.episode(run.id, n).then(
    ({ episode }) => fill(element, heading(run.id, n, episode), rewards(episode), conversation(episode)),
    (error: Error) =>
      fill(element, h("p", { class: "warning" }, error.message), link(hrefOf(run.id, "episodes"), "All episodes")),
  );
  const go = (to: number) => {
    if (to >= 0 && to < run.summary.episodes.count) location.hash = hrefOf(run.id, "episode", [to]);
  };
  return {
    element,
    onKey({ key }) {
      if (key === "j") go(n + 1);
      if (key === "k") go(n - 1);
    },
  };
}

function heading(run: string, n: number, episode: EpisodeLine): Child {
  const { question, step, group } = episode;
  return [
    h(
      "p",
      { class: "trail" },
      link(hrefOf(run, "episodes"), "Episodes"),
      ` › step ${step} › `,
      link(hrefOf(run, "group", [step, group]), "this question's group, side by side"),
      h(
        "span",
        { class: "turner" },
        n > 0 ? link(hrefOf(run, "episode", [n - 1]), "← previous (k)") : null,
        link(hrefOf(run, "episode", [n + 1]), "next (j) →"),
      ),
    ),
    h("h1", { class: "question" }, question),
    h("p", { class: "dim" }, aboutEpisode(episode)),
  ];
}

/** Rewards, advantage and token counts. */
function rewards(episode: EpisodeLine): HTMLElement {
  const { rewards: parts, total_reward, advantage, completion_tokens, prompt_tokens, truncated, segments } = episode;
  const facts: [string, Child][] = [
    ["outcome", verdictTag(episode)],
    ...Object.entries(parts).map(([name, value]): [string, Child] => [
      name.replace(/^reward_/, ""),
      value === null ? "none" : signed(value),
    ]),
    ["weighted total", total_reward === null ? "not scored" : h("b", {}, signed(total_reward))],
    ["advantage", h("b", { class: advantage > 0 ? "good" : advantage < 0 ? "bad" : "" }, signed(advantage))],
    ["completion, prompt tokens", `${shortNumber(completion_tokens)}, ${shortNumber(prompt_tokens)}`],
    ...(segments > 1 ? [["segments", String(segments)] as [string, Child]] : []),
    ...(truncated ? [["truncated", "out of tokens"] as [string, Child]] : []),
  ];
  return h(
    "dl",
    { class: "facts card wide" },
    facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

/** All episodes of one question in one step. */
export function groupView({ run, source, route }: Context): View {
  const [step, group] = route.rest.map(Number) as [number, number];
  const element = h("div", { class: "episode" }, h("p", { class: "dim" }, "Reading the group …"));
  source.group(run.id, step, group).then(
    (episodes) => fill(element, groupOf(run.id, step, episodes)),
    (error: Error) => fill(element, h("p", { class: "warning" }, error.message)),
  );
  return { element };
}

function groupOf(run: string, step: number, group: readonly NumberedEpisode[]): Child {
  const episodes = [...group].sort((a, b) => b.episode.advantage - a.episode.advantage); // the best first
  const [first] = episodes;
  if (!first) return h("p", { class: "dim" }, "There is no such group.");
  const right = episodes.filter(({ episode }) => episode.correctness === 1).length;
  const flat = episodes.every(({ episode }) => episode.advantage === 0);
  return [
    h("p", { class: "trail" }, link(hrefOf(run, "episodes"), "Episodes"), ` › step ${step} › one question's group`),
    h("h1", { class: "question" }, first.episode.question),
    h("p", { class: "dim" }, aboutEpisode(first.episode)),
    h(
      "p",
      {},
      `${right} of ${episodes.length} attempts are right. `,
      flat
        ? "All have the same reward, so the group gives no gradient."
        : "Training makes tokens with a positive advantage more likely and those with a negative one less likely.",
    ),
    h(
      "div",
      { class: "columns scroll", tabindex: 0, role: "region", "aria-label": "attempts side by side" },
      episodes.map(({ n, episode }) =>
        episodeColumn(
          link(hrefOf(run, "episode", [n]), `attempt ${episode.generation + 1}`),
          episode,
          h(
            "span",
            { class: `advantage ${episode.advantage > 0 ? "good" : episode.advantage < 0 ? "bad" : "dim"}` },
            `advantage ${signed(episode.advantage)}`,
          ),
        ),
      ),
    ),
  ];
}
