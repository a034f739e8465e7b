// The page's memory of an episode: where it stands, who plays, and the replay that may lie over it.
import type { Outcome, SQLAction } from "../../../gym/env/index.ts";
import { type EpisodeRecord, isRepeat, type StepRecord } from "../../../gym/episode.ts";
import type { Client } from "./client.ts";
import { DEFAULT_LINK, type Link, type LinkedAction } from "./link.ts";
import type { Calls, DataChoice, Gold, OpenQuestion, PlayerChoice, Replay, Started, Stepped } from "./protocol.ts";

const NOTHING: Outcome = { correctness: 0, progress: 0, operational: 0, done_reason: null };

/** One episode at a time; `changed` is called whenever there is something else to draw. */
export class Game {
  data: DataChoice = DEFAULT_LINK.data;
  questions: readonly OpenQuestion[] = [];
  started: Started | undefined;
  steps: readonly StepRecord[] = [];
  gold: Gold | null = null;
  seed = 0;
  budget = DEFAULT_LINK.budget;
  /** Who made the moves. */
  by = "person";
  /** Whether a move is awaited, and whether a player plays on its own. */
  busy = false;
  playing = false;
  /** Whether the player has no further move. */
  stuck = false;
  replay: { readonly list: readonly Replay[]; readonly index: number; readonly at: number } | null = null;
  readonly #client: Client;
  readonly #changed: () => void;
  #outcome = NOTHING;
  #opened = "";
  #turn = Promise.resolve();

  constructor(client: Client, changed: () => void) {
    this.#client = client;
    this.#changed = changed;
  }

  get done(): boolean {
    return this.steps.at(-1)?.observation.done ?? false;
  }

  /** The position as a link. */
  get link(): Link {
    const actions = this.steps.map(({ action }) => action as LinkedAction);
    const { data, seed, budget } = this;
    const player = this.by === "person" ? undefined : this.by;
    return { data, question: this.started?.question.question_id, seed, budget, player, actions };
  }

  /** The episode as a file would hold it. */
  get record(): EpisodeRecord {
    const { question_id, question_text, ...question } = this.started!.question;
    const { steps } = this;
    const sum = steps.reduce((total, { observation }) => total + (observation.reward ?? 0), 0);
    return {
      ...{ player: this.by, question_id, question: question_text, ...question, answer_type: "string" },
      ...{ start: this.started!.observation, steps, ...this.#outcome },
      reward: this.#outcome.correctness === null ? null : Math.round(sum * 1e9) / 1e9,
      step_count: steps.length,
      parse_failures: steps.filter(({ parse_error }) => parse_error !== null).length,
      repeats: steps.filter(isRepeat).length,
      invalid: steps.filter(({ observation: { error_class } }) => error_class !== null && error_class !== "repeat")
        .length,
      error: null,
    };
  }

  /** Makes a data set, unless it is there. */
  async open(data: DataChoice): Promise<void> {
    const key = JSON.stringify(data);
    if (key === this.#opened) return;
    const { questions } = await this.#client.call("open", data);
    this.data = data;
    this.questions = questions;
    this.#opened = key;
    this.started = undefined;
  }

  /** Starts an episode: a question by its id, or drawn by a seed. */
  async begin(which: Omit<Calls["reset"]["take"], "budget">): Promise<void> {
    this.playing = false;
    this.replay = null;
    this.#place(await this.#client.call("reset", { ...which, budget: this.budget }));
    this.#changed();
  }

  /** What a link says: data, question, and its actions one after the other. */
  async follow(link: Link): Promise<void> {
    await this.open(link.data);
    this.seed = link.seed;
    this.budget = link.budget;
    try {
      await this.begin(link.question === undefined ? { seed: link.seed } : { question_id: link.question });
    } catch (error) {
      await this.begin({ seed: link.seed }); // something to play, whatever the link says
      throw error;
    }
    for (const action of link.actions) await this.act(action);
    if (link.player !== undefined) this.by = link.player;
    this.#changed();
  }

  async act(action: SQLAction): Promise<void> {
    this.playing = false;
    this.by = "person";
    await this.#take(() => this.#client.call("act", action));
  }

  /** One move of a player; false when it has none. */
  async move(choice: PlayerChoice): Promise<boolean> {
    let moved = false;
    await this.#take(async () => {
      const { restarted, stepped } = await this.#client.call("move", choice);
      if (restarted) this.#place(restarted);
      if (stepped) this.by = choice.name;
      moved = stepped !== null;
      return stepped;
    });
    return moved;
  }

  /** Moves until the end, or until `playing` is switched off. */
  async play(choice: PlayerChoice, pause: () => number): Promise<void> {
    if (this.done) await this.begin({ question_id: this.started!.question.question_id });
    this.playing = true;
    try {
      while (this.playing && !this.done) {
        if (!(await this.move(choice))) break;
        const wait = pause();
        if (wait > 0 && this.playing && !this.done) await new Promise((resolve) => setTimeout(resolve, wait));
      }
    } finally {
      this.playing = false;
      this.#changed();
    }
  }

  async reveal(): Promise<void> {
    this.gold = await this.#client.call("reveal", null);
    this.#changed();
  }

  /** Puts a replay over the episode, or takes it away. */
  show(replay: Game["replay"]): void {
    this.playing = false;
    this.replay = replay;
    this.#changed();
  }

  #place(started: Started): void {
    this.started = started;
    this.steps = [];
    this.gold = null;
    this.#outcome = NOTHING;
    this.stuck = false;
  }

  /** One step after the other, each drawn before and after. */
  async #take(ask: () => Promise<Stepped | null>): Promise<void> {
    const previous = this.#turn;
    let end = () => {};
    this.#turn = new Promise((resolve) => {
      end = resolve;
    });
    await previous;
    this.busy = true;
    this.#changed();
    try {
      const stepped = await ask();
      this.stuck = stepped === null;
      if (!stepped) return;
      this.steps = [...this.steps, stepped.step];
      this.#outcome = stepped.outcome;
      this.gold = stepped.gold ?? this.gold;
    } finally {
      this.busy = false;
      end();
      this.#changed();
    }
  }
}
