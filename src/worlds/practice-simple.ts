// The simplest practice worlds: one table of people, a few plain columns, few words in all, so that a very small model can learn them.
import { type Random, random } from "../random.ts";
import { plural } from "./english.ts";
import type { CategoryColumn, ColumnSpec, NumberColumn, WorldSpec } from "./spec.ts";

export interface SimpleWorldOptions {
  /** Kinds of people, quantities and attributes that may be used, at most so many of each; 2 or more. @default 24: all */
  readonly words?: number;
  /** Fewest and most rows of a table, at most 36. @default [10, 30] */
  readonly rows?: readonly [number, number];
}

const PEOPLE = `actor archer baker barber boxer chef clown dancer dentist diver doctor driver
  farmer guard hunter judge lawyer miner nurse pilot poet sailor singer tailor`.split(/\s+/);
const NAMES = `Ada Amir Anna Axel Beth Boris Carl Dana Elsa Emil Erik Eva Felix Finn Gina Hana Hugo Ida
  Igor Iris Jack Kira Lars Lena Luca Mara Mia Nina Noah Olga Omar Otto Paul Rosa Sven Zoe`.split(/\s+/);
const QUANTITIES = "age score salary speed rating power bonus fame income wealth strength luck".split(" ");
const ATTRIBUTES = `city: Cairo Lima Oslo Paris Quito Rome
team: red blue green yellow black white
language: Arabic Dutch Greek Hindi Korean Polish
country: Chile Egypt Ghana India Japan Kenya
club: chess drama music sailing tennis yoga
mood: calm happy lonely proud sleepy tense`
  .split("\n")
  .map((line) => line.split(": ") as [string, string])
  .map(([noun, values]) => ({ noun, values: values.split(" ") }));

/** A table has two quantities, and up to two attributes. */
export const MIN_WORDS = 2;

/** Names are not repeated. */
export const MAX_ROWS = NAMES.length;

/** The one-table schema that a seed gives. */
export function simpleWorld(
  seed: number | string,
  { words = PEOPLE.length, rows: [fewest, most] = [10, 30] }: SimpleWorldOptions = {},
): WorldSpec {
  const r = random("simple world", String(seed));
  const one = r.pick(PEOPLE.slice(0, words));
  const many = plural(one);
  const rows = r.int(fewest, most);
  const columns: ColumnSpec[] = r.shuffle([
    ...r.sample(QUANTITIES.slice(0, words), 2).map((phrase) => quantity(r, phrase)),
    ...r.sample(ATTRIBUTES.slice(0, words), r.int(1, 2)).map((attribute) => category(r, attribute)),
  ]);
  const name: ColumnSpec = { kind: "label", name: "name", phrase: "name", values: r.sample(NAMES, rows) };
  return {
    name: `${many}_${String(seed).replace(/[^A-Za-z0-9]+/g, "_")}`,
    topic: many,
    tables: [{ name: many, one, many, label: "name", person: true, rows, columns: [name, ...columns] }],
  };
}

function quantity(r: Random, phrase: string): NumberColumn {
  return { kind: "integer", name: phrase, phrase, low: 10, high: r.pick([99, 500]), summable: true };
}

function category(r: Random, { noun, values }: { noun: string; values: readonly string[] }): CategoryColumn {
  const few = r.sample(values, r.int(3, 5));
  return { kind: "category", name: noun, phrase: noun, plural: plural(noun), values: few };
}
