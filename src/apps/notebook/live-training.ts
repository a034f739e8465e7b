// A live view of a training in a notebook: plots updated in place, and the newest transcript below them.

import type { LiveView, RewardPoint, Show, SuccessPoint } from "../../rl/index.ts";
import { episodeHtml } from "../reports/episode-html.ts";
import { escapeHtml } from "../reports/format.ts";
import { htmlFragment } from "../reports/html-page.ts";
import { livePlots } from "../reports/index.ts";
import { type Board, Shown } from "./display.ts";

/** For `LiveVisualizationCallback({ show })`. */
export function showOn(board: Board): Show {
  let rewards: readonly RewardPoint[] = [];
  let success: readonly SuccessPoint[] = [];
  let captions = { reward: "", success: "" };
  let started = false;
  return async (view: LiveView) => {
    if (view.kind === "reward") rewards = view.points;
    if (view.kind === "success") success = view.points;
    if (view.kind !== "transcript") captions = { ...captions, [view.kind]: view.text };
    if (!started || view.kind !== "transcript") {
      started = true; // plots are displayed first, so that they are above the transcript
      const plots = livePlots({ rewards, success, total_steps: view.total_steps });
      const text = [captions.reward, captions.success].filter(Boolean).join("\n");
      await board("plots", new Shown({ "image/svg+xml": plots, "text/plain": text }));
    }
    if (view.kind === "transcript") await board("transcript", transcript(view));
  };
}

function transcript({ step, text, episode }: LiveView & { readonly kind: "transcript" }): Shown {
  const body = `<p><b>Step ${step}</b>: ${escapeHtml(episode.question)}</p>${episodeHtml(episode, episode.database_name)}`;
  return new Shown({ "text/html": htmlFragment(body), "text/plain": text });
}
