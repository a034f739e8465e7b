// The vocabulary of practice worlds: thousands of real words, and any number of invented ones.
import type { Random } from "../../../random.ts";
import { plural } from "../english.ts";
import {
  ADJECTIVES,
  ATTRIBUTES,
  KNOWN_ATTRIBUTES,
  LEVEL_QUANTITIES,
  OCCASIONS,
  SPOKEN_QUANTITIES,
  SUMMABLE_QUANTITIES,
} from "./columns.ts";
import { PERSON_NOUNS, PLACE_NOUNS, THING_NOUNS } from "./nouns.ts";
import { GIVEN_NAMES, PLACES, SURNAMES } from "./people.ts";

/** A quantity with its own comparatives: "tallest", "taller than", "meters". */
export interface SpokenQuantity {
  readonly noun: string;
  readonly low: number;
  readonly high: number;
  readonly decimals: number;
  readonly superlatives: readonly [string, string];
  readonly comparatives: readonly [string, string];
  readonly unit: string | undefined;
  readonly summable: boolean;
}

/** An attribute and its usual values. */
export interface KnownAttribute {
  readonly noun: string;
  readonly values: readonly string[];
}

/** An event that happens on a day: "release", "released". */
export interface Occasion {
  readonly noun: string;
  readonly participle: string;
}

/** All word lists. Nouns of two words are written with a space. */
export interface Words {
  readonly people: readonly string[];
  readonly places: readonly string[];
  readonly things: readonly string[];
  readonly quantities: readonly string[];
  /** Plurals of things that are counted: "goals". */
  readonly counts: readonly string[];
  /** Quantities that can be summed: "cost". */
  readonly amounts: readonly string[];
  readonly spoken: readonly SpokenQuantity[];
  readonly attributes: readonly string[];
  readonly known: readonly KnownAttribute[];
  readonly occasions: readonly Occasion[];
  readonly adjectives: readonly string[];
  readonly givenNames: readonly string[];
  readonly surnames: readonly string[];
  readonly placeNames: readonly string[];
}

/** All words that `allowed` permits as names; nouns are checked in the singular and in the plural. */
export function wordPools(allowed: (name: string) => boolean = () => true): Words {
  const noun = (word: string) => allowed(word) && allowed(plural(word));
  const nouns = (text: string) => cut(text).filter(noun);
  const summable = nouns(SUMMABLE_QUANTITIES);
  return {
    people: nouns(PERSON_NOUNS),
    places: nouns(PLACE_NOUNS),
    things: nouns(THING_NOUNS),
    quantities: nouns(LEVEL_QUANTITIES),
    counts: summable.filter(isCount),
    amounts: summable.filter((word) => !isCount(word)),
    spoken: lines(SPOKEN_QUANTITIES)
      .map(spokenQuantity)
      .filter((quantity) => noun(quantity.noun)),
    attributes: nouns(ATTRIBUTES),
    known: lines(KNOWN_ATTRIBUTES)
      .map((line) => {
        const [name = "", values = ""] = line.split(": ");
        return { noun: spaced(name), values: values.split(" ") };
      })
      .filter((attribute) => noun(attribute.noun)),
    occasions: cut(OCCASIONS)
      .map((pair) => pair.split(":") as [string, string])
      .map(([word, participle]) => ({ noun: word, participle }))
      .filter((occasion) => noun(occasion.noun) && allowed(occasion.participle)),
    adjectives: cut(ADJECTIVES).filter(allowed),
    givenNames: cut(GIVEN_NAMES),
    surnames: cut(SURNAMES),
    placeNames: cut(PLACES),
  };
}

function cut(text: string): string[] {
  return text.trim().split(/\s+/).map(spaced);
}

function lines(text: string): string[] {
  return text.trim().split("\n");
}

function spaced(word: string): string {
  return word.replaceAll("_", " ");
}

function isCount(word: string): boolean {
  return /[^su]s$/.test(word);
}

function spokenQuantity(line: string): SpokenQuantity {
  const [head = "", superlatives = "", comparatives = "", unit = "", sum] = line.split("|").map((part) => part.trim());
  const [noun = "", low, high, decimals] = head.split(" ");
  return {
    noun: spaced(noun),
    low: Number(low),
    high: Number(high),
    decimals: Number(decimals),
    superlatives: superlatives.split(", ") as [string, string],
    comparatives: comparatives.split(", ") as [string, string],
    unit: unit || undefined,
    summable: sum === "+",
  };
}

// Repeated entries are more likely: simple sounds give many words with few tokens.
const ONSETS = `b c d f g h j k l m n p r s t v w y z b d f g k l m n p r s t v b d g k l m n p r s t v
   br bl ch cl cr dr fl fr gl gr kl kr pl pr sh sk sl sm sn sp st th tr tw qu str`.split(/\s+/);
const NUCLEI = "a e i o u a e i o u a e i o u a e i o ai ea ee oa oo ou".split(" ");
const CODAS = "n r l s t m k d x p n r l s t m k d nd nt rn rk lt st ng ck th mp".split(" ");
const LINKS = "n r l s m".split(" ");

// Function words that syllables could form and that would make a question unreadable.
const LITTLE = new Set(
  "all and any are but for from has have her his how min max not sum than that the their them this was who".split(" "),
);

/**
 * Invents a word: from syllables, such as "brondel", or from the start of one real word and the end of another, such as
 * "lantory".
 */
export function inventWord(r: Random): string {
  for (;;) {
    const word = r.chance(0.4) ? spliced(r) : syllables(r);
    if (word.length > 2 && !LITTLE.has(word) && /[aeiou]/.test(word) && !/[^aeiou]{5}/.test(word)) return word;
  }
}

let real: readonly string[] | undefined;

function spliced(r: Random): string {
  real ??= [THING_NOUNS, PERSON_NOUNS, PLACE_NOUNS, ATTRIBUTES, ADJECTIVES, GIVEN_NAMES, SURNAMES, PLACES]
    .flatMap(cut)
    .map((word) => word.toLowerCase())
    .filter((word) => /^[a-z]{4,}$/.test(word));
  const [head, tail] = [r.pick(real), r.pick(real)];
  return head.slice(0, r.int(2, head.length - 1)) + tail.slice(-r.int(2, Math.min(5, tail.length - 1)));
}

function syllables(r: Random): string {
  const count = r.pickWeighted([
    [1, 1],
    [2, 7],
    [3, 4],
    [4, 0.4],
  ] as const);
  let word = r.chance(0.12) ? "" : r.pick(ONSETS);
  for (let i = 1; i < count; i++) {
    word += r.pick(NUCLEI) + (r.chance(0.25) ? r.pick(LINKS) : "") + r.pick(ONSETS);
  }
  word += r.pick(NUCLEI);
  return count === 1 || r.chance(0.6) ? word + r.pick(CODAS) : word;
}

/** Capitalizes the first letter, or that of each word. */
export function capitalized(text: string): string {
  return text.replace(/(^| )(\p{Ll})/gu, (_, space: string, letter: string) => space + letter.toUpperCase());
}
