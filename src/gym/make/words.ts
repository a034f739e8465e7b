// Splits identifiers into English words: `bottlePrice`, `bottle_price` and `bottleprice` into "bottle price".
import { plural } from "../worlds/english.ts";
import {
  ACRONYMS,
  COMMON,
  MORE_CODED,
  MORE_PERSONS,
  MORE_PLACES,
  MORE_QUANTITIES,
  SHORT_FORMS,
  SINGULARS,
  STAY,
} from "../worlds/lexicon/schema-words.ts";
import { type Words, wordPools } from "../worlds/lexicon/words.ts";

const POOLS: Words = wordPools();

const KNOWN: ReadonlySet<string> = new Set(
  [
    ...COMMON.split(/\s+/),
    ...[
      POOLS.people,
      POOLS.places,
      POOLS.things,
      POOLS.quantities,
      POOLS.counts,
      POOLS.amounts,
      POOLS.attributes,
    ].flat(),
  ].flatMap((noun) => noun.split(" ").flatMap((word) => [word, plural(word)])),
);

const PERSONS: ReadonlySet<string> = new Set([...POOLS.people, ...MORE_PERSONS.split(" ")]);

const PLACES: ReadonlySet<string> = new Set([...POOLS.places, ...MORE_PLACES.split(" ")]);

const QUANTITIES: ReadonlySet<string> = new Set([
  ...POOLS.quantities,
  ...POOLS.amounts,
  ...POOLS.counts,
  ...POOLS.spoken.map(({ noun }) => noun),
  ...MORE_QUANTITIES.split(" "),
]);

const CODED: ReadonlySet<string> = new Set(MORE_CODED.split(" "));

const THINGS: ReadonlySet<string> = new Set([...POOLS.people, ...POOLS.places, ...POOLS.things, ...POOLS.attributes]);

/** Whether a word names something that is not a quantity, so that a number in its column is a code: "advisor". */
export function isCoded(word: string): boolean {
  if (CODED.has(word)) return true;
  return (
    !QUANTITIES.has(word) &&
    !QUANTITIES.has(plural(word)) &&
    (THINGS.has(word) || PERSONS.has(word) || PLACES.has(word))
  );
}

/** Whether amounts of this can be added up: "cost", "visitors". */
export function isSummable(word: string): boolean {
  return SUMMABLE.has(word) || SUMMABLE.has(plural(word));
}

const SUMMABLE: ReadonlySet<string> = new Set([...POOLS.amounts, ...POOLS.counts]);

/** Endings of three consonants that English words have. */
const ENDING = new RegExp(
  `(?:${"ngth ghts? nct rsh ltz [lnrst]ths? [cnrt]ch [lr]st [lnr][cdgkmnpst]s [lmnr]pts? [rn]sts? cks cts fts pts sts sks sps mps lls ss tth rld dges?".split(" ").join("|")})$`,
);

/** Whether a word is unknown and cannot be read aloud, such as "edispl" or "txn". */
export function isAbbreviation(word: string): boolean {
  const low = word.toLowerCase();
  if (word !== low || low.length < 3 || KNOWN.has(low) || KNOWN.has(singular(low)) || !/^[a-z]+$/.test(low))
    return false;
  return !/[aeiouy]/.test(low) || (/[bcdfghjklmnpqrstvwxz]{3}$/.test(low) && !ENDING.test(low));
}

/** Whether a noun names people: "student", "poker player". */
export function isPerson(noun: string): boolean {
  return PERSONS.has(noun.split(" ").at(-1)!);
}

/** Whether a noun names places, of which one says that they are "in" a city: "hotel". */
export function isPlace(noun: string): boolean {
  return PLACES.has(noun.split(" ").at(-1)!);
}

/**
 * The words of an identifier, in lower case but for acronyms. `extra` are words of the same schema, at which names
 * without separators are split.
 */
export function wordsIn(identifier: string, extra: ReadonlySet<string> = new Set()): string[] {
  const unit = /^(.*\S)\s*\(([^()]+)\)\s*$/.exec(identifier.replaceAll("_", " "));
  if (unit) return [...wordsIn(unit[1]!, extra), "in", ...wordsIn(unit[2]!, extra)];
  const isMixed = /[a-z]/.test(identifier);
  const parts = identifier
    .normalize("NFC")
    .replace(/^([FLM])_?(?=N(?:ame|AME)$|_?name$)/, (letter) => `${NAME_PARTS[letter.charAt(0)]} `)
    .replace(/([\p{Ll}\d])(\p{Lu})/gu, "$1 $2")
    .replace(/(\p{Lu}+)(\p{Lu}\p{Ll})/gu, "$1 $2")
    .split(/[^\p{L}\p{N}%]+/u)
    .filter((part) => part !== "");
  const words = parts.flatMap((part) => {
    const low = part.toLowerCase();
    const long = SHORT_FORMS.get(low);
    if (long !== undefined) return long.split(" ");
    if (ACRONYMS.has(low)) return [part.toUpperCase()];
    if (isMixed && /^\p{Lu}{2,4}\d?$/u.test(part) && !KNOWN.has(low)) return [part];
    const whole =
      low.length >= 3 && !KNOWN.has(low) && !extra.has(low) ? [...extra].filter((word) => word.startsWith(low)) : [];
    if (whole.length === 1) return whole;
    return splitRun(low, extra).map((word) =>
      ACRONYMS.has(word) ? word.toUpperCase() : (SHORT_FORMS.get(word) ?? word),
    );
  });
  return words.length > 1 && words.at(-1) === "no" ? [...words.slice(0, -1), "number"] : words;
}

const SHORT_TAILS = ["id", "no"];

const NAME_PARTS: Readonly<Record<string, string>> = { F: "first", L: "last", M: "middle" };

/** Splits words written without a space, such as "pettype", where every part is a known word. */
function splitRun(run: string, extra: ReadonlySet<string>): string[] {
  const isWord = (word: string) => KNOWN.has(word) || extra.has(word);
  // Names such as `dname` of departments and `pnum` of projects: one letter for the table, then a word.
  const [, letter, tail] = /^([a-z])(name|num|number|no|code|date|type|title|location|status)$/.exec(run) ?? [];
  const table = letter === undefined ? undefined : [...extra].find((word) => word.startsWith(letter));
  if (table !== undefined && tail !== undefined && !isWord(run)) return [table, tail];
  if (run.length < 5 || isWord(run)) return [run];
  for (let cut = run.length - 3; cut >= 3; cut--) {
    const [head, tail] = [run.slice(0, cut), run.slice(cut)];
    if (isWord(head) && isWord(tail) && !/^(?:age|ion|ing|ate|able|ally|ship|man|men)$/.test(tail)) return [head, tail];
    const of = /^(.{3,})of(.{3,})$/.exec(run);
    if (of && isWord(of[1]!) && isWord(of[2]!)) return [of[1]!, "of", of[2]!];
  }
  for (const tail of SHORT_TAILS) {
    const head = run.slice(0, -tail.length);
    if (run.endsWith(tail) && head.length >= 3 && (extra.has(head) || KNOWN.has(head))) return [head, tail];
  }
  const stem = run.endsWith("id") ? run.slice(0, -2) : "";
  if (stem.length >= 3 && [...extra].some((word) => word.length > stem.length && word.startsWith(stem)))
    return [[...extra].find((word) => word.length > stem.length && word.startsWith(stem))!, "id"];
  return [run];
}

/** The singular of a word; a singular is returned as it is. */
export function singular(word: string): string {
  const irregular = SINGULARS.get(word);
  if (irregular !== undefined) return irregular;
  if (STAY.has(word) || !word.endsWith("s") || /(?:ss|us|is)$/.test(word) || word.length < 4) return word;
  if (/[^aeiou]ies$/.test(word)) return `${word.slice(0, -3)}y`;
  if (/(?:ss|x|ch|sh|zz|[^aeiou]o)es$/.test(word)) return word.slice(0, -2);
  return word.slice(0, -1);
}

/** Whether a word is in the plural, as far as its form shows. */
export function isPlural(word: string): boolean {
  return singular(word) !== word;
}
