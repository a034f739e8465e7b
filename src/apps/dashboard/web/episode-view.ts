// One episode turn by turn, and one question's group side by side.
import { signed } from "../../../gym/evaluation/transcript.ts";
import type { EpisodeLine } from "../../../rl/run/records.ts";
import { shortNumber } from "../../reports/format.ts";
import { rewardLabel, rewardWeight } from "../../reports/reward-weights.ts";
import { type Child, fill, h, link } from "../../web-shared/dom.ts";
import type { EpisodeNeighbours, EpisodeQuery, NumberedEpisode } from "../server/schemas.ts";
import { aboutEpisode, conversation, episodeColumn, goldCard, verdictTag } from "./conversation.ts";
import { paramsOf, queryOf } from "./episode-query.ts";
import { firstDifference, foldAttempts } from "./fold-attempts.ts";
import { hrefOf } from "./route.ts";
import type { Context, View } from "./view-types.ts";

/** An episode by its number, within the filtered list it was opened from. */
export function episodeView({ run, source, route }: Context): View {
  const n = Number(route.rest[0]);
  const query = queryOf(route.params);
  const element = h("div", { class: "episode" }, h("p", { class: "dim" }, "Reading the episode …"));
  let around: EpisodeNeighbours | null = null;
  source.episode(run.id, n, query).then(
    ({ episode, gold, neighbours }) => {
      around = neighbours ?? null;
      fill(
        element,
        heading(run.id, episode, query, around),
        gold ? goldCard(gold) : null,
        rewards(episode, run.summary.config?.reward_weights as readonly number[] | null),
        conversation(episode),
      );
    },
    (error: Error) =>
      fill(element, h("p", { class: "warning" }, error.message), link(hrefOf(run.id, "episodes"), "All episodes")),
  );
  const go = (to: number | null | undefined) => {
    if (typeof to === "number") location.hash = hrefOf(run.id, "episode", [to], paramsOf(query));
  };
  return {
    element,
    onKey({ key }) {
      if (key === "j") go(around?.next);
      if (key === "k") go(around?.previous);
    },
  };
}

function heading(run: string, episode: EpisodeLine, query: EpisodeQuery, around: EpisodeNeighbours | null): Child {
  const { question, step, group } = episode;
  const to = (n: number | null | undefined, text: string) =>
    typeof n === "number" ? link(hrefOf(run, "episode", [n], paramsOf(query)), text) : null;
  return [
    h(
      "p",
      { class: "trail" },
      link(hrefOf(run, "episodes", [], paramsOf(query)), isFiltered(query) ? "Episodes, filtered" : "Episodes"),
      ` › step ${step} › `,
      link(hrefOf(run, "group", [step, group], paramsOf(query)), "this question's group, side by side"),
      h(
        "span",
        { class: "turner" },
        to(around?.previous, "← previous (k)"),
        around ? h("span", { class: "dim" }, `${around.position} of ${around.total.toLocaleString("en-US")}`) : null,
        to(around?.next, "next (j) →"),
      ),
    ),
    h("h1", { class: "question" }, question),
    h("p", { class: "dim" }, aboutEpisode(episode)),
  ];
}

function isFiltered({ text, from_step, to_step, verdict, difficulty, actions }: EpisodeQuery): boolean {
  return [text || undefined, from_step, to_step, verdict, difficulty, actions].some((value) => value !== undefined);
}

/** Rewards times their weights, their total, advantage and token counts. */
function rewards(episode: EpisodeLine, weights: readonly number[] | null | undefined): HTMLElement {
  const { rewards: parts, total_reward, reward, advantage, completion_tokens, prompt_tokens } = episode;
  const names = Object.keys(parts);
  const facts: [string, Child][] = [
    ["outcome", verdictTag(episode)],
    ...names.map((name): [string, Child] => {
      const weight = rewardWeight(name, names, weights);
      const value = parts[name];
      if (value === null || value === undefined) return [rewardLabel(name, 1), "none"];
      const times = weight === 1 ? "" : ` × ${shortNumber(weight)} = ${signed(value * weight)}`;
      return [rewardLabel(name, 1), `${signed(value)}${times}`];
    }),
    ["reward, their sum", total_reward === null ? "not scored" : h("b", {}, signed(total_reward))],
    ["advantage", h("b", { class: advantage > 0 ? "good" : advantage < 0 ? "bad" : "" }, signed(advantage))],
    ["completion, prompt tokens", `${shortNumber(completion_tokens)}, ${shortNumber(prompt_tokens)}`],
    ...(episode.segments > 1 ? [["segments", String(episode.segments)] as [string, Child]] : []),
    ...(episode.truncated ? [["truncated", "out of tokens"] as [string, Child]] : []),
  ];
  const note =
    reward !== null && total_reward !== null && Math.abs(reward - total_reward) > 5e-4
      ? `The turns below show the environment's own rewards, ${signed(reward)} in all: they include a cost for each action and are not weighted by reward_weights.`
      : "";
  return h(
    "div",
    { class: "card rewards" },
    h(
      "dl",
      { class: "facts wide" },
      facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    ),
    note ? h("p", { class: "note" }, note) : null,
  );
}

/** All episodes of one question in one step. */
export function groupView({ run, source, route }: Context): View {
  const [step, group] = route.rest.map(Number) as [number, number];
  const query = queryOf(route.params);
  const element = h("div", { class: "episode" }, h("p", { class: "dim" }, "Reading the group …"));
  source.group(run.id, step, group).then(
    (episodes) => fill(element, groupOf(run.id, step, episodes, query)),
    (error: Error) => fill(element, h("p", { class: "warning" }, error.message)),
  );
  return { element };
}

function groupOf(run: string, step: number, group: readonly NumberedEpisode[], query: EpisodeQuery): Child {
  const attempts = foldAttempts(group);
  const best = attempts[0]?.[0];
  if (!best) return h("p", { class: "dim" }, "There is no such group.");
  const right = group.filter(({ episode }) => episode.correctness === 1).length;
  const flat = group.every(({ episode }) => episode.advantage === 0);
  return [
    h(
      "p",
      { class: "trail" },
      link(hrefOf(run, "episodes", [], paramsOf(query)), isFiltered(query) ? "Episodes, filtered" : "Episodes"),
      ` › step ${step} › one question's group`,
    ),
    h("h1", { class: "question" }, best.episode.question),
    h("p", { class: "dim" }, aboutEpisode(best.episode)),
    best.gold ? goldCard(best.gold) : null,
    h(
      "p",
      {},
      `${right} of ${group.length} attempts are right. `,
      flat
        ? "All have the same reward, so the group gives no gradient."
        : "Training makes tokens with a positive advantage more likely and those with a negative one less likely. ",
      attempts.length > 1 ? "The best and the worst are next to each other; equal attempts share a column." : "",
    ),
    h(
      "div",
      { class: "columns scroll", tabindex: 0, role: "region", "aria-label": "attempts side by side" },
      attempts.map((same) => attemptColumn(run, same, best.episode, query)),
    ),
  ];
}

function attemptColumn(
  run: string,
  same: readonly NumberedEpisode[],
  best: EpisodeLine,
  query: EpisodeQuery,
): HTMLElement {
  const { episode } = same[0]!;
  const links = same.map(({ n, episode: { generation } }, i) => [
    i === 0 ? "" : ", ",
    link(hrefOf(run, "episode", [n], paramsOf(query)), String(generation + 1)),
  ]);
  const title = [
    same.length === 1 ? "attempt " : "attempts ",
    links,
    same.length === 1 ? null : h("b", { class: "times" }, ` × ${same.length}`),
  ];
  const { advantage } = episode;
  const tone = advantage > 0 ? "good" : advantage < 0 ? "bad" : "dim";
  const more = h("span", { class: `advantage ${tone}` }, `advantage ${signed(advantage)}`);
  return episodeColumn(title, episode, { more, differsAt: firstDifference(best, episode) });
}
