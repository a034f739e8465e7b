// Generates the values of practice worlds: people, places, titles, codes and short words.
import type { Random } from "../../../random.ts";
import { capitalized, inventWord, type Words } from "../lexicon/words.ts";

/** What the labels of a table's rows are. */
export type LabelKind = "person" | "place" | "title" | "code" | "invented";

/** Generates `count` different labels of one kind. */
export function labels(r: Random, words: Words, kind: LabelKind, count: number, inventedShare: number): string[] {
  const plain = labelMaker(r, words, kind, inventedShare);
  const draw = kind !== "code" && r.chance(0.15) ? () => (r.chance(0.3) ? accented(r, plain()) : plain()) : plain;
  const values = new Set<string>();
  // If a narrow pattern is exhausted, a number makes values distinct, as in real tables.
  for (let tries = 0; values.size < count; tries++) {
    const value = draw();
    values.add(tries > 4 * count ? `${value} ${values.size + 1}` : value);
  }
  return [...values];
}

function labelMaker(r: Random, words: Words, kind: LabelKind, inventedShare: number): () => string {
  const invented = () => capitalized(inventWord(r));
  const orInvented = (pool: readonly string[], share = inventedShare) =>
    r.chance(share) ? invented() : capitalized(r.pick(pool));
  const half = (pool: readonly string[]) => orInvented(pool, inventedShare / 2);
  switch (kind) {
    case "person": {
      const isShort = r.chance(0.2);
      return () =>
        isShort
          ? orInvented(words.givenNames)
          : `${half(words.givenNames)} ${r.chance(0.04) ? `${invented().charAt(0)}. ` : ""}${half(words.surnames)}`;
    }
    case "place": {
      const plain = r.chance(0.5);
      const nouns = r.chance(0.5) ? someOf(r, words.places) : words.places;
      const noun = () => capitalized(r.pick(nouns));
      return () =>
        plain
          ? orInvented(words.placeNames)
          : r.pickWeighted<() => string>([
              [() => `${capitalized(r.pick(words.adjectives))} ${noun()}`, 3],
              [() => `${orInvented(words.placeNames)} ${noun()}`, 3],
              [() => `${orInvented(words.surnames)} ${noun()}`, 2],
              [() => `${invented()} ${noun()}`, 1],
            ])();
    }
    case "title":
      return titleMaker(r, words, half);
    case "code":
      return codeMaker(r);
    case "invented":
      return r.chance(0.7) ? invented : () => `${invented()} ${r.chance(0.5) ? r.int(2, 990) : invented()}`;
  }
}

function titleMaker(r: Random, words: Words, orInvented: (pool: readonly string[]) => string): () => string {
  const [things, places] = r.chance(0.4)
    ? [someOf(r, words.things), someOf(r, words.places)]
    : [words.things, words.places];
  const noun = () => orInvented(r.chance(0.8) ? things : places);
  const adjective = () => capitalized(r.pick(words.adjectives));
  const style = r.int(0, 3);
  if (style === 0) return () => `${adjective()} ${noun()}`;
  if (style === 1) return noun;
  return () =>
    r.pickWeighted<() => string>([
      [() => `The ${adjective()} ${noun()}`, 4],
      [() => `${adjective()} ${noun()}`, 4],
      [() => `${noun()} of ${orInvented(words.placeNames)}`, 2],
      [() => `${noun()} and ${noun()}`, 2],
      [() => `The ${noun()} in the ${noun()}`, 1],
      [() => `${noun()} ${r.pick(JOINTS)} ${noun()}`, 3],
      [() => `${orInvented(words.givenNames)}'s ${noun()}`, 1],
      [() => noun(), 2],
      [() => `${noun()} ${r.int(2, 99)}`, 1],
    ])();
}

const JOINTS = "at of for to with over by from without a the at_the of_the in_a on_the under_a after"
  .split(" ")
  .map((words) => words.replace("_", " "));

const ACCENTS: Readonly<Record<string, string>> = {
  a: "áàäâãåąă",
  c: "çćč",
  e: "éèêëęě",
  i: "íîïı",
  l: "ł",
  n: "ñń",
  o: "óöôøõő",
  s: "şšś",
  u: "úüûů",
  y: "ýÿ",
  z: "žżź",
};

/** Puts an accent on one letter of the text. */
function accented(r: Random, text: string): string {
  const places = [...text].flatMap((letter, i) => (ACCENTS[letter] ? [i] : []));
  if (places.length === 0) return text;
  const at = r.pick(places);
  return text.slice(0, at) + r.pick([...ACCENTS[text[at]!]!]) + text.slice(at + 1);
}

/** Picks a few words, so that labels of a table share some, like names of streets and products. */
function someOf(r: Random, pool: readonly string[]): string[] {
  return Array.from({ length: r.int(2, 5) }, () => r.pick(pool));
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/** Returns a generator of codes with one pattern: AB-1234, K27, 2019/331. */
export function codeMaker(r: Random): () => string {
  const letters = (n: number) => Array.from({ length: n }, () => r.pick([...LETTERS])).join("");
  const digits = (n: number) => String(r.int(10 ** (n - 1), 10 ** n - 1));
  const [a, d] = [r.int(1, 3), r.int(3, 5)];
  const prefix = letters(r.int(2, 3));
  return r.pick<() => string>([
    () => `${letters(a)}-${digits(d)}`,
    () => `${letters(a)}${digits(d)}`,
    () => `${prefix}-${digits(d)}`,
    () => `${letters(a)} ${digits(d)}`,
    () => `${digits(2)}${letters(2)}${digits(2)}`,
    () => `${r.int(1990, 2024)}/${digits(3)}`,
    () => `${prefix}_${digits(d)}`,
  ]);
}

/** Returns a generator of e-mail addresses of one company: brondel27@tarmik.example. */
export function addressMaker(r: Random): () => string {
  const house = inventWord(r);
  return () => `${inventWord(r)}${r.chance(0.6) ? r.int(1, 300) : ""}@${house}.example`;
}

/** Generates a few different words for a category column, the most frequent first. */
export function categoryValues(r: Random, words: Words, inventedShare: number): string[] {
  const count = r.pickWeighted([
    [2, 2],
    [3, 5],
    [4, 5],
    [5, 3],
    [6, 2],
    [8, 1],
  ] as const);
  const raise = r.chance(0.35) ? capitalized : (text: string) => text;
  const pool = r.pickWeighted<readonly string[]>([
    [words.adjectives, 5],
    [words.things, 3],
    [words.people, 1],
    [words.placeNames, 2],
    [words.surnames, 1],
  ]);
  const code = codeMaker(r);
  const isCode = r.chance(0.06);
  const isInvented = r.chance(inventedShare);
  const isCompound = r.chance(0.12);
  const isVaried = r.chance(0.12); // values such as captain, training captain, first captain
  const base = r.pick(pool);
  const values = new Set<string>();
  while (values.size < count) {
    if (isCode) values.add(code());
    else if (isInvented) values.add(raise(inventWord(r)));
    else if (isVaried)
      values.add(
        raise(
          values.size === 1
            ? base
            : `${r.pick(r.chance(0.5) ? words.adjectives : words.things)} ${r.chance(0.7) ? base : r.pick(pool)}`,
        ),
      );
    else if (isCompound) values.add(raise(`${r.pick(words.adjectives)} ${r.pick(words.things)}`));
    else values.add(raise(r.pick(pool)));
  }
  return [...values];
}
