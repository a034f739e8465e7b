// The bundled data set: twelve databases and their questions, generated from a seed.
import { SqlEnvError } from "../../errors.ts";
import { type Random, random } from "../../random.ts";
import type { DataSet, Difficulty, QuestionRecord, Split } from "../data/index.ts";
import { type Database, DatabasePool, normalizeSql } from "../sql/index.ts";
import { type Asked, ask } from "./ask.ts";
import { fillWorld, type World, worldBytes } from "./build.ts";
import { airline } from "./bundled/airline.ts";
import { films } from "./bundled/films.ts";
import { football } from "./bundled/football.ts";
import { hospital } from "./bundled/hospital.ts";
import { library } from "./bundled/library.ts";
import { museum } from "./bundled/museum.ts";
import { restaurants } from "./bundled/restaurants.ts";
import { shop } from "./bundled/shop.ts";
import { space } from "./bundled/space.ts";
import { university } from "./bundled/university.ts";
import { wine } from "./bundled/wine.ts";
import { zoo } from "./bundled/zoo.ts";
import { FORMS, type Form } from "./forms/index.ts";
import type { WorldSpec } from "./spec.ts";

const TRAIN_SPECS: readonly WorldSpec[] = [library, hospital, airline, restaurants, football, films, shop, university];
const UNSEEN_SPECS: readonly WorldSpec[] = [zoo, wine, space, museum];

/** Databases with training questions. */
export const TRAIN_DATABASES: readonly string[] = TRAIN_SPECS.map(({ name }) => name);

/** Databases held out from training. */
export const UNSEEN_DATABASES: readonly string[] = UNSEEN_SPECS.map(({ name }) => name);

/** The specs of all twelve databases, training ones first. */
export const BUNDLED_SPECS: readonly WorldSpec[] = [...TRAIN_SPECS, ...UNSEEN_SPECS];

/** Number of questions in each part of the data set. */
export const BUNDLED_COUNTS = { train: 473, eval_seen: 101, eval_unseen: 102 } as const;

/** Names that nearly every database has, so knowing them is no advantage. */
export const UNIVERSAL_NAMES: readonly string[] = ["id", "name"];

/**
 * Names that only unseen databases have: of databases, tables and columns, and the words people use for them, in lower
 * case.
 */
export function unseenNames(): ReadonlySet<string> {
  const shared = new Set([...UNIVERSAL_NAMES, ...TRAIN_SPECS.flatMap(wordsOf)]);
  return new Set(UNSEEN_SPECS.flatMap(wordsOf).filter((word) => !shared.has(word)));
}

function wordsOf({ name, tables }: WorldSpec): string[] {
  const words = tables.flatMap((table) => [
    table.name,
    table.one,
    table.many,
    ...table.columns.flatMap((column) => [column.name, column.phrase]),
  ]);
  return [name, ...words].map((word) => word.toLowerCase());
}

export interface BundledOptions {
  /** Seed for rows and questions. @default 42 */
  readonly seed?: number;
}

/**
 * Generates the data set; `loadSqlite()` must have been awaited. The same seed gives the same bytes and questions.
 *
 * @example
 * await loadSqlite();
 * const data = bundledDataSet({ seed: 42 });
 * console.log(data.questions[0]!.question_text);
 */
export function bundledDataSet({ seed = 42 }: BundledOptions = {}): DataSet {
  const worlds = new Map(BUNDLED_SPECS.map((spec) => [spec.name, fillWorld(spec, seed)]));
  const read = (name: string) => worldBytes(worlds.get(name)!);
  const databases = new DatabasePool({ names: [...worlds.keys()], read });
  const asked = new Asking(worlds, databases, seed);
  const questions = [
    ...asked.part("train", TRAIN_DATABASES, BUNDLED_COUNTS.train),
    ...asked.part("eval", TRAIN_DATABASES, BUNDLED_COUNTS.eval_seen),
    ...asked.part("eval", UNSEEN_DATABASES, BUNDLED_COUNTS.eval_unseen),
  ];
  return { name: "bundled", questions, databases, rejected: [], file: read };
}

const SHARES: readonly (readonly [Difficulty, number])[] = [
  ["easy", 0.4],
  ["medium", 0.4],
  ["hard", 0.2],
];

/** Attempts with one form before the next is tried. */
const DRAWS = 12;

/** Generates questions: no text and no query is used twice, and forms alternate. */
class Asking {
  readonly #worlds: ReadonlyMap<string, World>;
  readonly #databases: DatabasePool;
  readonly #seed: number;
  readonly #texts = new Set<string>();
  readonly #queries = new Set<string>();

  constructor(worlds: ReadonlyMap<string, World>, databases: DatabasePool, seed: number) {
    this.#worlds = worlds;
    this.#databases = databases;
    this.#seed = seed;
  }

  /** Generates `count` questions, spread evenly over the databases. */
  part(split: Split, names: readonly string[], count: number): QuestionRecord[] {
    const uses = new Map<string, number>();
    return names.flatMap((name, i) => {
      const share = Math.floor(count / names.length) + (i < count % names.length ? 1 : 0);
      const r = random("bundled", this.#seed, split, name);
      const asked = quotas(share).flatMap(([difficulty, n]) =>
        Array.from({ length: n }, () => this.#next(name, difficulty, uses, r)),
      );
      return r.shuffle(asked).map((question, index) => ({
        question_id: `${name}_${split}_${String(index).padStart(3, "0")}`,
        ...question,
        split,
      }));
    });
  }

  /** Generates a new question of the least used form that fits the database. */
  #next(name: string, difficulty: Difficulty, uses: Map<string, number>, r: Random): Asked {
    const world = this.#worlds.get(name)!;
    const database = this.#databases.get(name);
    const forms = r.shuffle(FORMS.filter((form) => form.difficulty === difficulty));
    const usesOf = (form: Form) => (uses.get(`${name} ${form.name}`) ?? 0) * 100 + (uses.get(form.name) ?? 0);
    for (const form of forms.sort((a, b) => usesOf(a) - usesOf(b))) {
      const asked = this.#draw(form, world, database, r);
      if (!asked) continue;
      for (const key of [form.name, `${name} ${form.name}`]) uses.set(key, (uses.get(key) ?? 0) + 1);
      return asked;
    }
    throw new SqlEnvError("bad_spec", {
      what: `no further ${difficulty} question can be made about`,
      value: name,
      remedy: "give its spec more columns or rows",
    });
  }

  #draw(form: Form, world: World, database: Database, r: Random): Asked | undefined {
    for (let draw = 0; draw < DRAWS; draw++) {
      const asked = ask(form, world, database, r);
      if (!asked) continue;
      const [text, query] = [asked.question_text.toLowerCase(), normalizeSql(asked.gold_sql)];
      if (this.#texts.has(text) || this.#queries.has(query)) continue;
      this.#texts.add(text);
      this.#queries.add(query);
      return asked;
    }
    return undefined;
  }
}

/** Splits `count` by difficulty; the hard questions absorb rounding. */
function quotas(count: number): [Difficulty, number][] {
  const rounded = SHARES.map(([difficulty, share]): [Difficulty, number] => [difficulty, Math.round(count * share)]);
  const hard = rounded.at(-1)!;
  hard[1] += count - rounded.reduce((sum, [, n]) => sum + n, 0);
  return rounded;
}
