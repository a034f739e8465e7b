// A training's live board in a notebook: one picture updated in place, and the newest episode below it.
import { evaluationMetrics } from "../../rl/evaluate-model.ts";
import type {
  EpisodeLine,
  Evaluation,
  LiveView,
  MetricLine,
  Show,
  TrainerCallback,
  TrainingView,
} from "../../rl/index.ts";
import { ActionStatsCounter } from "../reports/action-stats.ts";
import { percent } from "../reports/format.ts";
import { trainingBoardSvg } from "../reports/training-board.ts";
import { type Board, Shown } from "./display.ts";
import { episodeView, trendOf } from "./views.ts";

/**
 * Collects a training's episodes and metrics as a callback. It draws them after each evaluation, and whenever a
 * `LiveVisualizationCallback` calls its `show`.
 *
 * @example
 * const board = new TrainingBoard(notebookBoard());
 * const live = new LiveVisualizationCallback({ reward_every: 2, success_every: 0, show: board.show });
 * const trainer = buildTrainer({ model, data, config, callbacks: [board, live] });
 */
export class TrainingBoard implements TrainerCallback {
  readonly #board: Board;
  readonly #behaviour = new ActionStatsCounter();
  readonly #metrics: MetricLine[] = [];

  constructor(board: Board) {
    this.#board = board;
  }

  on_step_end(_: TrainingView, { episodes }: { readonly episodes: readonly EpisodeLine[] }): void {
    for (const episode of episodes) this.#behaviour.add(episode);
  }

  on_log(_: TrainingView, metrics: MetricLine): void {
    this.#metrics.push(metrics);
  }

  async on_evaluate({ state, total_steps }: TrainingView, evaluation: Evaluation): Promise<void> {
    this.#metrics.push(evaluationMetrics(state.step, evaluation));
    await this.#draw(total_steps);
  }

  /**
   * For `LiveVisualizationCallback({ show })`. Its success rates of a few episodes are ignored: evaluations measure
   * success better.
   */
  readonly show: Show = async (view: LiveView) => {
    if (view.kind === "reward") await this.#draw(view.total_steps);
    if (view.kind === "transcript") {
      const shown = episodeView(view.episode, { title: `after step ${view.step}` });
      await this.#board("episode", new Shown({ ...shown.bundle, "text/plain": view.text }));
    }
  };

  async #draw(total_steps: number): Promise<void> {
    const svg = trainingBoardSvg({ behaviour: this.#behaviour.list(), metrics: this.#metrics, total_steps });
    await this.#board("board", new Shown({ "image/svg+xml": svg, "text/plain": this.#caption() }));
  }

  #caption(): string {
    const rewards = this.#metrics.flatMap(({ reward }) => (reward === undefined ? [] : [{ reward }]));
    const evaluated = this.#metrics.filter((line) => line["eval_unseen/greedy/success_rate"] !== undefined);
    const rates = evaluated.map((line) => `step ${line.step} ${percent(line["eval_unseen/greedy/success_rate"]!)}`);
    return [trendOf(rewards), ...(rates.length > 0 ? [`right on unseen databases: ${rates.join(", ")}`] : [])].join(
      "\n",
    );
  }
}
