// Practice worlds: any number of small databases with questions, generated one after the other from a seed.
import { nearest, UsageError } from "../../../errors.ts";
import { random } from "../../../random.ts";
import { type DataSet, DIFFICULTIES, type Difficulty, type QuestionRecord } from "../../data/index.ts";
import { Database, DatabasePool } from "../../sql/index.ts";
import { type Asked, type AskOptions, ask } from "../ask.ts";
import { fillWorld, type World, worldBytes } from "../build.ts";
import { FORMS, type Form } from "../forms/index.ts";
import type { WorldSpec } from "../spec.ts";
import { practiceWorld } from "./spec.ts";

export interface PracticeOptions extends AskOptions {
  readonly seed: number | string;
  /** Number of worlds. @default endless */
  readonly worlds?: number;
  /** Index of the first world; skipping worlds costs nothing. @default 0 */
  readonly first?: number;
  /** Number of questions per world; small worlds may have fewer. @default 8 */
  readonly questionsPerWorld?: number;
  /** @default all, in the ratio 40 : 40 : 20 (easy, medium, hard) */
  readonly difficulties?: readonly Difficulty[];
  /** Share of names and values that are invented words. @default 0.35 */
  readonly inventedShare?: number;
  /** Names of the question forms to use. @default all of these difficulties */
  readonly forms?: readonly string[] | undefined;
}

export interface PracticeWorld {
  readonly index: number;
  readonly spec: WorldSpec;
  readonly bytes: Uint8Array;
  /** Closed when the next world is requested; open `bytes` to keep it longer. */
  readonly database: Database;
  readonly questions: readonly PracticeQuestion[];
}

/** A question and the name of its form. */
export interface PracticeQuestion {
  readonly record: QuestionRecord;
  readonly form: string;
}

/** Attempts per form; with one, forms that often fail would be rare. */
const DRAWS = 4;

/** Maximum forms tried per question; many do not suit a small world. */
const TRIES = 12;

const SHARES: Readonly<Record<Difficulty, number>> = { easy: 40, medium: 40, hard: 20 };

/**
 * Yields one world at a time with its questions; `loadSqlite()` must have been awaited. The same options give the same
 * worlds.
 *
 * @example
 * for (const { spec, database, questions } of practiceWorlds({ seed: 1, worlds: 3 })) console.log(questions.length);
 */
export function* practiceWorlds(options: PracticeOptions): Generator<PracticeWorld, void> {
  const { seed, worlds = Number.POSITIVE_INFINITY, first = 0 } = options;
  check(options);
  for (let index = first; index < first + worlds; index++) {
    const world = worldAt(seed, index, options);
    const bytes = worldBytes(world);
    const database = new Database(world.spec.name, bytes);
    try {
      yield { index, spec: world.spec, bytes, database, questions: askQuestions(world, database, index, options) };
    } finally {
      database.close();
    }
  }
}

/**
 * Collects the questions of many worlds into a data set; their databases are regenerated from the seed when needed.
 *
 * @example
 * const data = practiceDataSet({ seed: 1, worlds: 100, difficulties: ["easy"] });
 */
export function practiceDataSet(options: PracticeOptions & { readonly worlds: number }): DataSet {
  const questions: QuestionRecord[] = [];
  const indexes = new Map<string, number>();
  for (const world of practiceWorlds(options)) {
    for (const { record } of world.questions) questions.push(record);
    indexes.set(world.spec.name, world.index);
  }
  const read = (name: string) => worldBytes(worldAt(options.seed, indexes.get(name)!, options));
  const databases = new DatabasePool({ names: [...indexes.keys()], read });
  return { name: `practice_${options.seed}`, questions, databases, rejected: [], file: read };
}

function worldAt(seed: number | string, index: number, { inventedShare }: PracticeOptions): World {
  const spec = practiceWorld(`${seed}_${index}`, inventedShare === undefined ? {} : { inventedShare });
  return fillWorld(spec, index);
}

function askQuestions(world: World, database: Database, index: number, options: PracticeOptions): PracticeQuestion[] {
  const { seed, questionsPerWorld = 8 } = options;
  const difficulties = (options.difficulties ?? DIFFICULTIES).filter((name) => formsOf(name, options).length > 0);
  const r = random("practice questions", `${seed}_${index}`);
  const questions: PracticeQuestion[] = [];
  const texts = new Set<string>();
  const untried = new Map<Difficulty, Form[]>();
  for (let attempt = 0; attempt < TRIES * questionsPerWorld && questions.length < questionsPerWorld; attempt++) {
    const difficulty = r.pickWeighted(difficulties.map((name) => [name, SHARES[name]] as const));
    // Every form is used once before any is repeated, so that a world's questions vary as much as possible.
    if (!untried.get(difficulty)?.length) untried.set(difficulty, r.shuffle(formsOf(difficulty, options)));
    const form = untried.get(difficulty)!.pop()!;
    let asked: Asked | null = null;
    for (let draw = 0; draw < DRAWS && !asked; draw++) asked = ask(form, world, database, r, options);
    if (!asked || texts.has(asked.question_text)) continue;
    texts.add(asked.question_text);
    const question_id = `practice_${seed}_${index}_train_${questions.length}`;
    questions.push({ record: { question_id, ...asked, split: "train" }, form: form.name });
  }
  return questions;
}

function formsOf(difficulty: Difficulty, { forms }: PracticeOptions): Form[] {
  return FORMS.filter((form) => form.difficulty === difficulty && (!forms || forms.includes(form.name)));
}

function check(options: PracticeOptions) {
  const { worlds, first = 0, questionsPerWorld = 1, difficulties = DIFFICULTIES, inventedShare = 0, forms } = options;
  const wrong = (what: string, value: string | number, remedy: string) => new UsageError({ what, value, remedy });
  for (const [name, value] of Object.entries({ worlds: worlds ?? 0, first, questionsPerWorld })) {
    if (!Number.isInteger(value) || value < 0) throw wrong(`${name} cannot be used`, value, "give a whole number");
  }
  if (!(inventedShare >= 0 && inventedShare <= 1))
    throw wrong("inventedShare cannot be used", inventedShare, "give a share from 0 to 1");
  if (difficulties.length === 0) throw wrong("no difficulties", "[]", `give some of ${DIFFICULTIES.join(", ")}`);
  const unknown = forms?.find((name) => !FORMS.some((form) => form.name === name));
  if (unknown !== undefined) {
    const near = nearest(
      unknown,
      FORMS.map(({ name }) => name),
    );
    throw wrong(
      "no such form",
      unknown,
      near ? `did you mean ${near}?` : `the forms are ${FORMS.map(({ name }) => name).join(", ")}`,
    );
  }
  if (difficulties.every((difficulty) => formsOf(difficulty, options).length === 0))
    throw wrong("no form has these difficulties", difficulties.join(", "), "give other forms or difficulties");
}
