// The page's state: the current episode, its player, and the replay shown in its place.
import type { Outcome, SQLAction } from "../../../gym/env/index.ts";
import { type EpisodeRecord, isRepeat, type StepRecord } from "../../../gym/episode.ts";
import { DEFAULT_LINK, type Link, type LinkedAction } from "./permalink.ts";
import type { Client } from "./worker-client.ts";
import type {
  Calls,
  DataChoice,
  Gold,
  OpenQuestion,
  PlayerChoice,
  Replay,
  Started,
  Stepped,
} from "./worker-protocol.ts";

const NO_OUTCOME: Outcome = { correctness: 0, progress: 0, operational: 0, done_reason: null };

/** One episode at a time; `changed` is called after every change. */
export class EpisodeState {
  data: DataChoice = DEFAULT_LINK.data;
  questions: readonly OpenQuestion[] = [];
  started: Started | undefined;
  steps: readonly StepRecord[] = [];
  gold: Gold | null = null;
  /** Whether the gold was shown before the end. */
  peeked = false;
  seed = 0;
  budget = DEFAULT_LINK.budget;
  /** Who took the steps. */
  by = "person";
  /** Whether a step is running, and whether a player is playing to the end. */
  busy = false;
  playing = false;
  /** Whether the player cannot continue. */
  stuck = false;
  replay: { readonly list: readonly Replay[]; readonly index: number; readonly at: number } | null = null;
  readonly #client: Client;
  readonly #changed: () => void;
  #outcome = NO_OUTCOME;
  #opened = "";
  #lastStep = Promise.resolve();

  constructor(client: Client, changed: () => void) {
    this.#client = client;
    this.#changed = changed;
  }

  get done(): boolean {
    return this.steps.at(-1)?.observation.done ?? false;
  }

  /** The episode so far as a permalink. */
  get link(): Link {
    const actions = this.steps.map(({ action }) => action as LinkedAction);
    const { data, seed, budget } = this;
    const player = this.by === "person" ? undefined : this.by;
    return { data, question: this.started?.question.question_id, seed, budget, player, actions };
  }

  /** The episode as an episode file stores it. */
  get record(): EpisodeRecord {
    const { question_id, question_text, ...question } = this.started!.question;
    const { steps } = this;
    const sum = steps.reduce((total, { observation }) => total + (observation.reward ?? 0), 0);
    return {
      player: this.by,
      question_id,
      question: question_text,
      ...question,
      answer_type: "string",
      start: this.started!.observation,
      steps,
      ...this.#outcome,
      reward: this.#outcome.correctness === null ? null : Math.round(sum * 1e9) / 1e9,
      step_count: steps.length,
      parse_failures: steps.filter(({ parse_error }) => parse_error !== null).length,
      repeats: steps.filter(isRepeat).length,
      invalid: steps.filter(({ observation: { error_class } }) => error_class !== null && error_class !== "repeat")
        .length,
      error: null,
    };
  }

  /** Generates a data set unless it is already open. */
  async open(data: DataChoice): Promise<void> {
    const key = JSON.stringify(data);
    if (key === this.#opened) return;
    const { questions } = await this.#client.call("open", data);
    this.data = data;
    this.questions = questions;
    this.#opened = key;
    this.started = undefined;
  }

  /** Starts an episode on a question by its id, or one drawn by a seed. */
  async begin(which: Omit<Calls["reset"]["params"], "budget">): Promise<void> {
    this.playing = false;
    this.replay = null;
    this.#start(await this.#client.call("reset", { ...which, budget: this.budget }));
    this.#changed();
  }

  /** Restores a permalink: data set, question, and its actions in order. */
  async follow(link: Link): Promise<void> {
    await this.open(link.data);
    this.seed = link.seed;
    this.budget = link.budget;
    try {
      await this.begin(link.question === undefined ? { seed: link.seed } : { question_id: link.question });
    } catch (error) {
      await this.begin({ seed: link.seed }); // a playable question even if the link names none
      throw error;
    }
    for (const action of link.actions) await this.act(action);
    if (link.player !== undefined) this.by = link.player;
    this.#changed();
  }

  async act(action: SQLAction): Promise<void> {
    this.playing = false;
    this.by = "person";
    await this.#runStep(() => this.#client.call("act", action));
  }

  /** Lets a player take one step; false if it takes none. */
  async playStep(choice: PlayerChoice): Promise<boolean> {
    let stepTaken = false;
    await this.#runStep(async () => {
      const { restarted, stepped } = await this.#client.call("playStep", choice);
      if (restarted) this.#start(restarted);
      if (stepped) this.by = choice.name;
      stepTaken = stepped !== null;
      return stepped;
    });
    return stepTaken;
  }

  /** Plays to the end, or until `playing` is set to false. */
  async play(choice: PlayerChoice, pause: () => number): Promise<void> {
    if (this.done) await this.begin({ question_id: this.started!.question.question_id });
    this.playing = true;
    try {
      while (this.playing && !this.done) {
        if (!(await this.playStep(choice))) break;
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
    this.peeked = true;
    this.#changed();
  }

  /** Shows a replay in place of the episode; null closes it. */
  show(replay: EpisodeState["replay"]): void {
    this.playing = false;
    this.replay = replay;
    this.#changed();
  }

  #start(started: Started): void {
    this.started = started;
    this.steps = [];
    this.gold = null;
    this.peeked = false;
    this.#outcome = NO_OUTCOME;
    this.stuck = false;
  }

  /** Runs one step at a time; the page is redrawn before and after. */
  async #runStep(ask: () => Promise<Stepped | null>): Promise<void> {
    const previous = this.#lastStep;
    let end = () => {};
    this.#lastStep = new Promise((resolve) => {
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
