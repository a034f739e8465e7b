// The same questions by the random player, the model before and after training, side by side.

import type { ComparedQuestion, Comparison } from "../../../rl/run/records.ts";
import { verdict } from "../../reports/episode-outcome.ts";
import { exampleQuestion } from "../../reports/example-question.ts";
import { type Child, fill, h, link } from "../../web-shared/dom.ts";
import { aboutEpisode, episodeColumn } from "./conversation.ts";
import { hrefOf } from "./route.ts";
import type { Context, View } from "./view-types.ts";

export function questionsView({ run, source, route }: Context): View {
  const element = h("div", { class: "questions" }, h("p", { class: "dim" }, "Reading the questions …"));
  let shown = "";
  const load = () =>
    source.comparison(run.id).then(
      (comparison) => {
        const now = `${comparison.players} ${comparison.questions.length}`;
        if (now === shown) return;
        shown = now;
        fill(element, contentOf(run.id, comparison, route.rest[0]));
      },
      (error: Error) => fill(element, h("p", { class: "warning" }, error.message)),
    );
  void load();
  return { element, update: () => void load() };
}

function contentOf(run: string, comparison: Comparison, wanted: string | undefined): Child {
  const { questions, players } = comparison;
  const question = questions.find(({ question_id }) => question_id === wanted) ?? exampleQuestion(comparison);
  if (!question)
    return h("p", { class: "dim" }, "No question has been played yet; evaluations appear here as they finish.");
  return [
    h(
      "nav",
      { class: "list card", "aria-label": "questions" },
      questions.map((other) =>
        link(hrefOf(run, "questions", [other.question_id]), [h("span", {}, other.question), marks(other, players)], {
          class: "item",
          "aria-current": other === question ? "true" : undefined,
        }),
      ),
    ),
    h(
      "div",
      { class: "compared" },
      h("h1", { class: "question" }, question.question),
      h("p", { class: "dim" }, question.episodes[0] ? aboutEpisode(question.episodes[0]) : question.database_name),
      h(
        "div",
        { class: "columns even" },
        question.episodes.map((episode, i) => episodeColumn(players[i] ?? episode.player, episode)),
      ),
      players.includes("after")
        ? null
        : h("p", { class: "note" }, "The trained model's episodes appear when training ends."),
    ),
  ];
}

function marks({ episodes }: ComparedQuestion, players: readonly string[]): HTMLElement {
  return h(
    "span",
    { class: "marks" },
    episodes.map((episode, i) => {
      const { tone, text } = verdict(episode);
      return h(
        "span",
        { class: `mark ${tone}`, title: text },
        `${{ good: "✓", bad: "✗", none: "–" }[tone]} ${players[i] ?? episode.player}`,
      );
    }),
  );
}
