// The questions of the last evaluation, before and after training, with their gold; grouped by form, the forms with the
// most failures first.

import { countBy } from "../../reports/evaluated-questions.ts";
import { exampleQuestion } from "../../reports/example-question.ts";
import { type Child, fill, h, link } from "../../web-shared/dom.ts";
import type { QuestionDetail, QuestionRow } from "../server/schemas.ts";
import { aboutEpisode, episodeColumn, goldCard } from "./conversation.ts";
import { hrefOf } from "./route.ts";
import type { Context, View } from "./view-types.ts";

/** Outcomes to choose from. */
const SHOWN: Readonly<Record<string, { readonly label: string; readonly fits: (row: QuestionRow) => boolean }>> = {
  all: { label: "all questions", fits: () => true },
  wrong: { label: "wrong after training", fits: ({ after }) => after !== 1 },
  learned: { label: "wrong before, right after", fits: ({ before, after }) => before !== 1 && after === 1 },
  lost: { label: "right before, wrong after", fits: ({ before, after }) => before === 1 && after !== 1 },
  kept: { label: "right before and after", fits: ({ before, after }) => before === 1 && after === 1 },
};

export function questionsView({ run, source, route }: Context): View {
  const show = Object.hasOwn(SHOWN, route.params.get("show") ?? "") ? route.params.get("show")! : "all";
  const by = route.params.get("by") === "difficulty" ? "difficulty" : "form";
  const params = { show: show === "all" ? undefined : show, by: by === "form" ? undefined : by };
  const element = h("div", { class: "questions" }, h("p", { class: "dim" }, "Reading the questions …"));
  const to = (id: string | undefined, changes = {}) =>
    hrefOf(run.id, "questions", id === undefined ? [] : [id], { ...params, ...changes });
  let shown = "";
  let order: readonly string[] = [];
  let current: string | undefined = route.rest[0];

  const load = async () => {
    const questions = await source.questions(run.id);
    const now = JSON.stringify([questions.length, questions.filter(({ after }) => after !== null).length]);
    if (now === shown) return;
    shown = now;
    const groups = countBy(questions, by).map((counted) => ({
      ...counted,
      rows: questions.filter((row) => row[by] === counted.name && SHOWN[show]!.fits(row)),
    }));
    order = groups.flatMap(({ rows }) => rows.map(({ question_id }) => question_id));
    if (current === undefined) {
      const example = show === "all" ? exampleQuestion(await source.comparison(run.id))?.question_id : undefined;
      current = example ?? order[0] ?? questions[0]?.question_id;
    }
    if (current === undefined) {
      fill(
        element,
        h("h1", {}, "Before and after"),
        h("p", { class: "dim" }, "No question has been played yet; evaluations appear here as they finish."),
      );
      return;
    }
    const detail = await source.question(run.id, current);
    const isTrained = questions.some(({ after }) => after !== null);
    fill(element, listOf(groups, isTrained), detailOf(detail, isTrained));
    element.querySelector('.item[aria-current="true"]')?.scrollIntoView({ block: "nearest" });
    window.scrollTo(0, 0);
  };
  const fail = (error: Error) => fill(element, h("p", { class: "warning" }, error.message));

  function listOf(
    groups: readonly { name: string; questions: number; before: number; after: number; rows: QuestionRow[] }[],
    isTrained: boolean,
  ): HTMLElement {
    const choose = h(
      "select",
      { "aria-label": "questions to list" },
      Object.entries(SHOWN).map(([name, { label }]) => h("option", { value: name, selected: name === show }, label)),
    );
    choose.addEventListener("change", () => {
      location.hash = to(undefined, { show: choose.value === "all" ? undefined : choose.value });
    });
    const group = h(
      "select",
      { "aria-label": "group by" },
      h("option", { value: "form", selected: by === "form" }, "by form"),
      h("option", { value: "difficulty", selected: by === "difficulty" }, "by difficulty"),
    );
    group.addEventListener("change", () => {
      location.hash = to(current, { by: group.value === "form" ? undefined : group.value });
    });
    return h(
      "nav",
      { class: "list card", "aria-label": "questions" },
      h("div", { class: "controls" }, choose, group),
      order.length === 0 ? h("p", { class: "dim pad" }, "None.") : null,
      groups
        .filter(({ rows }) => rows.length > 0)
        .map(({ name, questions, before, after, rows }) => [
          h(
            "h2",
            {},
            name,
            h("span", { class: "dim" }, isTrained ? ` right: ${before} → ${after} of ${questions}` : ` ${questions}`),
          ),
          rows.map((row) =>
            link(to(row.question_id), [h("span", {}, row.question), marks(row)], {
              class: "item",
              "aria-current": row.question_id === current ? "true" : undefined,
            }),
          ),
        ]),
    );
  }

  void load().catch(fail);
  const go = (by: number) => {
    const next = order[order.indexOf(current ?? "") + by];
    if (next !== undefined) location.hash = to(next);
  };
  return {
    element,
    update: () => void load().catch(fail),
    onKey({ key }) {
      if (key === "j") go(1);
      if (key === "k" && order.indexOf(current ?? "") > 0) go(-1);
    },
  };
}

function detailOf({ question, gold, form, episodes }: QuestionDetail, isTrained: boolean): Child {
  return h(
    "div",
    { class: "compared" },
    h("h1", { class: "question" }, question),
    h("p", { class: "dim" }, [
      ...(form === "other" ? [] : [`${form}, `]),
      episodes[0] ? aboutEpisode(episodes[0]) : "",
    ]),
    gold ? goldCard(gold) : null,
    h(
      "div",
      { class: "columns even" },
      episodes.map((episode) => episodeColumn(episode.player, episode)),
    ),
    isTrained ? null : h("p", { class: "note" }, "The trained model's episodes appear when training ends."),
  );
}

function marks(row: QuestionRow): HTMLElement {
  return h(
    "span",
    { class: "marks" },
    (["before", "after"] as const).flatMap((stage) => {
      const right = row[stage];
      if (right === null) return [];
      return [h("span", { class: `mark ${right === 1 ? "good" : "bad"}` }, `${right === 1 ? "✓" : "✗"} ${stage}`)];
    }),
  );
}
