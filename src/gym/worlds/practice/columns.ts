// The columns of practice worlds: a noun, a name in the world's style, and the English phrases for it.
import type { Random } from "../../../random.ts";
import { plural } from "../english.ts";
import { inventWord, type SpokenQuantity, type Words } from "../lexicon/words.ts";
import type { CategoryColumn, DateColumn, NumberColumn } from "../spec.ts";
import { columnName, isHeldOut, type NameStyle } from "./names.ts";
import { categoryValues } from "./values.ts";

/** What drawing a column takes: the world's random numbers, vocabulary and naming style, and the kind of table. */
export interface Drawing {
  readonly r: Random;
  readonly words: Words;
  readonly style: NameStyle;
  readonly inventedShare: number;
  /** Whether the rows of the table are people. */
  readonly person: boolean;
}

/** Quantities that people have; ONLY_OF_PEOPLE: that nothing else has. */
const OF_PEOPLE = new Set(
  `age weight height stature salary wage pay income wealth strength speed score rating popularity fame courage wisdom
   experience wins goals votes accuracy efficiency reliability power`.split(/\s+/),
);
const ONLY_OF_PEOPLE = new Set("stature salary wage pay income wealth courage wisdom experience".split(" "));

/** Events that happen to people; ONLY_TO_PEOPLE: to nothing else. */
const TO_PEOPLE = new Set(
  `admitted appointed arrested born certified crowned discharged elected enrolled examined evaluated hired invited licensed
   named nominated promoted recruited registered rescued retired reviewed sighted suspended trained vaccinated visited`.split(
    /\s+/,
  ),
);
const ONLY_TO_PEOPLE = new Set(
  "appointed arrested born crowned elected enrolled hired invited recruited retired vaccinated graduated voted".split(
    " ",
  ),
);

/** Known attributes whose values precede the noun: "red lanterns". */
const BEFORE = new Set("color size nationality shape material metal fabric status mood tier".split(" "));
const BEFORE_PEOPLE = new Set("nationality status mood".split(" "));

/** Attributes of which one can say "in": "in the gold class". */
const GROUP_LIKE =
  /(?:class|group|category|division|department|sector|section|tier|league|grade|branch|family|party|zone|range)$/;

/** Column names that are SQL keywords, which occur in real databases and must always be quoted. */
const RESERVED_ATTRIBUTES = ["group", "set", "case", "order", "check", "default", "table", "union"];
const RESERVED_QUANTITIES = ["limit", "offset", "range", "current", "index", "window"];

/** Samples a quantity; undefined if the name is reserved for the held-out databases. */
export function drawNumber(drawing: Drawing): NumberColumn | undefined {
  const { r, words, inventedShare } = drawing;
  if (r.chance(0.02)) return plainNumber(drawing, r.pick(RESERVED_QUANTITIES), false);
  if (r.chance(inventedShare)) return inventedNumber(drawing);
  const draw = r.pickWeighted<() => NumberColumn | undefined>([
    [() => spokenNumber(drawing), 40],
    [() => countNumber(drawing, r.pick(words.counts)), 18],
    [() => plainNumber(drawing, modified(drawing, r.pick(words.amounts)), true), 12],
    [() => plainNumber(drawing, modified(drawing, r.pick(words.quantities)), false), 20],
    [() => yearNumber(drawing), 10],
  ]);
  return draw();
}

function inventedNumber(drawing: Drawing): NumberColumn | undefined {
  const { r } = drawing;
  const word = inventWord(r);
  return r.pickWeighted<() => NumberColumn | undefined>([
    [() => plainNumber(drawing, word, r.chance(0.4)), 5],
    [() => plainNumber(drawing, `${word} ${r.pick(["level", "score", "rate", "index", "rating", "value"])}`, false), 3],
    [() => plainNumber(drawing, modified(drawing, word), r.chance(0.4)), 1],
    [() => countNumber(drawing, plural(word)), 2],
  ])();
}

/** Sometimes puts a noun or adjective before the quantity: "harbor depth". */
function modified({ r, words, inventedShare }: Drawing, noun: string): string {
  if (noun.includes(" ") || !r.chance(0.28)) return noun;
  if (r.chance(inventedShare / 2)) return `${inventWord(r)} ${noun}`;
  const before = r.chance(0.4)
    ? r.pick(
        "average base current daily final first gross initial last lowest maximum mean minimum monthly net peak recent target total typical weekly yearly".split(
          " ",
        ),
      )
    : r.pick(r.chance(0.7) ? words.things : words.adjectives);
  return before.includes(" ") ? noun : `${before} ${noun}`;
}

function spokenNumber(drawing: Drawing): NumberColumn | undefined {
  const { r, words, person } = drawing;
  const fits = ({ noun, superlatives: [top] }: SpokenQuantity) =>
    person ? OF_PEOPLE.has(noun) && top !== "tallest" : !ONLY_OF_PEOPLE.has(noun);
  const spoken = r.pick(words.spoken.filter(fits));
  const { noun, low, high, decimals, superlatives, comparatives, unit, summable } = spoken;
  const phrase = modified(drawing, noun);
  const ask = askFor(spoken);
  return named(drawing, withUnitName(drawing, phrase, noun, unit), {
    phrase: unit === noun ? `number of ${noun}` : phrase,
    ...scaled(r, low, high, decimals),
    summable,
    ...(r.chance(0.75) ? { superlatives } : unit === noun ? mostOf(noun) : {}),
    ...(r.chance(0.75) || unit === noun ? { comparatives } : {}),
    ...(unit && (r.chance(0.6) || unit === noun || /^with|^holding|^attended|^selling/.test(comparatives[0]))
      ? { unit }
      : {}),
    ...(ask && phrase === noun && r.chance(0.5) ? { ask } : {}),
  });
}

/** Sometimes names a column by its unit: "depth meters", "harbor meters" or "meters" for a harbor depth. */
function withUnitName({ r }: Drawing, phrase: string, noun: string, unit: string | undefined): string {
  if (unit === undefined || unit === noun || unit.includes(" ")) return phrase;
  const instead = phrase === noun ? unit : phrase.replace(noun, unit);
  return r.pickWeighted([
    [phrase, 7],
    [`${phrase} ${unit}`, 2],
    [instead, 1],
  ]);
}

const ASKS: Readonly<Record<string, string>> = {
  oldest: "How old is {x}?",
  heaviest: "How heavy is {x}?",
  tallest: "How tall is {x}?",
  highest: "How high is {x}?",
  longest: "How long is {x}?",
  widest: "How wide is {x}?",
  deepest: "How deep is {x}?",
  thickest: "How thick is {x}?",
  fastest: "How fast is {x}?",
  "most expensive": "How much does {x} cost?",
  costliest: "How much does {x} cost?",
  "most valuable": "How much is {x} worth?",
  "best-paid": "How much does {x} earn?",
  loudest: "How loud is {x}?",
  brightest: "How bright is {x}?",
  strongest: "How strong is {x}?",
  steepest: "How steep is {x}?",
  hottest: "How hot is {x}?",
  "most popular": "How popular is {x}?",
};

function askFor({ noun, unit, superlatives: [top] }: SpokenQuantity): string | undefined {
  return unit === noun ? `How many ${noun} does {x} have?` : ASKS[top];
}

function countNumber(drawing: Drawing, many: string): NumberColumn | undefined {
  const { r } = drawing;
  const one = many
    .replace(/ies$/, "y")
    .replace(/(?<=x|ch|sh|ss)es$/, "")
    .replace(/s$/, "");
  const words = r.pickWeighted([
    [many, 6],
    [`${one} count`, 2],
    [`num ${many}`, 1],
    [`no of ${many}`, 1],
    [`${many} total`, 0.5],
    [`n ${many}`, 0.5],
  ]);
  return named(drawing, words, {
    phrase: `number of ${many}`,
    ...scaled(r, r.pick([0, 0, 1, 2, 10]), r.pick([9, 20, 60, 100, 250, 1000, 5000, 40000]), 0),
    summable: true,
    ...(r.chance(0.7) ? mostOf(many) : {}),
    comparatives: ["with more than", "with fewer than"],
    between: `with between {a} and {b} ${many}`,
    unit: many,
    ...(r.chance(0.5) ? { ask: `How many ${many} does {x} have?` } : {}),
  });
}

function mostOf(many: string): Pick<NumberColumn, "superlatives"> {
  return { superlatives: [`with the most ${many}`, `with the fewest ${many}`] };
}

function plainNumber(drawing: Drawing, phrase: string, summable: boolean): NumberColumn | undefined {
  const { r } = drawing;
  const decimals = r.pickWeighted([
    [0, 6],
    [1, 2],
    [2, 3],
    [3, 0.5],
  ] as const);
  const high = r.pick([5, 10, 20, 50, 100, 100, 200, 500, 1000, 5000, 20_000, 100_000, 2_000_000]);
  const low = r.chance(0.05) ? -Math.min(high, 100) : r.pick([0, 1, Math.floor(high / 10), Math.floor(high / 4)]);
  const said =
    r.chance(0.1) && !phrase.includes(" ") ? `${phrase} ${r.pick(["level", "value", "figure", "amount"])}` : phrase;
  return named(drawing, phrase, { phrase: said, ...scaled(r, low, high, decimals), summable });
}

function yearNumber(drawing: Drawing): NumberColumn | undefined {
  const { r } = drawing;
  const { noun, participle } = drawOccasion(drawing);
  const words = r.pickWeighted([
    [`${noun} year`, 5],
    [`year ${participle}`, 2],
    [participle, 2],
    [`${participle} in`, 1],
    [`year of ${noun}`, 1],
  ]);
  const from = r.int(1820, 2005);
  return named(drawing, words, {
    phrase: `${noun} year`,
    kind: "integer",
    low: from,
    high: Math.min(2024, from + r.int(8, 120)),
    year: true,
    summable: false,
    superlatives: latest(drawing, participle),
    comparatives: [`${participle} after`, `${participle} before`],
    between: `${participle} between {a} and {b}`,
    ...(r.chance(0.5) ? { ask: `In which year was {x} ${participle}?` } : {}),
  });
}

type Range = Pick<NumberColumn, "kind" | "low" | "high" | "decimals" | "skew" | "step">;

function scaled(r: Random, low: number, high: number, decimals: number): Range {
  const skew = r.chance(0.5) ? { skew: 1 + r.int(1, 8) / 5 } : {};
  if (decimals === 0) {
    const step = high - low > 200 && r.chance(0.3) ? { step: r.pick([5, 10, 25, 50]) } : {};
    return { kind: "integer", low, high, ...skew, ...step };
  }
  return { kind: "real", low, high, decimals, ...skew };
}

/** Samples a category; undefined if the name is reserved for the held-out databases. */
export function drawCategory(drawing: Drawing): CategoryColumn | undefined {
  const { r, words, inventedShare, person } = drawing;
  if (r.chance(0.02)) return category(drawing, r.pick(RESERVED_ATTRIBUTES));
  if (r.chance(inventedShare)) {
    const word = inventWord(r);
    const noun = r.chance(0.75) ? word : `${word} ${r.pick(["type", "class", "kind", "group"])}`;
    return category(drawing, noun, undefined, r.chance(0.12) ? { before: "{v}" } : {});
  }
  if (r.chance(0.4)) {
    const { noun, values } = r.pick(words.known);
    const shuffled = r.shuffle(values).slice(0, r.int(Math.min(3, values.length), values.length));
    const before = (person ? BEFORE_PEOPLE : BEFORE).has(noun) && r.chance(0.6) ? { before: "{v}" } : {};
    return category(drawing, noun, shuffled, before);
  }
  if (r.chance(0.3)) {
    const noun = r.pick(r.chance(0.7) ? words.things : words.attributes);
    if (!noun.includes(" "))
      return category(drawing, `${noun} ${r.pick("type class kind group style grade code".split(" "))}`);
  }
  const attribute = r.pick(words.attributes);
  const said =
    r.chance(0.85) || attribute.includes(" ")
      ? attribute
      : r.chance(0.5)
        ? `${r.pick(words.adjectives)} ${attribute}`
        : `${attribute} ${r.pick(["choice", "kind", "value", "setting"])}`;
  return category(drawing, said, undefined, r.chance(0.12) ? { before: "{v}" } : {});
}

/** Phrases for rows with a value that do not name the column; the rows show which column it is. */
const UNNAMED =
  `in from of for by on at under with around near behind,listed under,kept in,based in,marked as,made of,bound for,
   named after,closed on,paid by,run by,speaking,represented by,insured with,classified as,known for,used for,given to,set in,
   written in,playing as,ordered from,shared with,counted as,led by,sent to,trained in,that belong to`
    .split(/,\s*/)
    .flatMap((words, i) => (i === 0 ? words.split(" ") : words))
    .map((words) => `${words} {v}`);

function category(
  drawing: Drawing,
  phrase: string,
  values = categoryValues(drawing.r, drawing.words, drawing.inventedShare),
  language: Pick<CategoryColumn, "before"> = {},
): CategoryColumn | undefined {
  const { r } = drawing;
  const where = r.pickWeighted<string | undefined>([
    [undefined, 6],
    [`with {v} as ${phrase}`, 2],
    [`with ${phrase} {v}`, 3],
    [`of ${phrase} {v}`, 2],
    [`in the {v} ${phrase}`, GROUP_LIKE.test(phrase) ? 6 : 0.3],
    [`with the ${phrase} {v}`, 2],
    [`with the ${phrase} of {v}`, 1],
    [`${r.pick(["on", "at", "from", "of"])} the {v} ${phrase}`, GROUP_LIKE.test(phrase) ? 2 : 0.5],
    [r.pick(UNNAMED), 6],
  ]);
  const words = columnWords(drawing, phrase);
  return named(drawing, words, {
    kind: "category",
    phrase,
    plural: plural(phrase),
    values,
    ...(where && !language.before ? { where } : {}),
    ...language,
  });
}

/** Samples a date; undefined if the name is reserved for the held-out databases. */
export function drawDate(drawing: Drawing): DateColumn | undefined {
  const { r, inventedShare } = drawing;
  const from = r.int(1950, 2020);
  const to = Math.min(2024, from + r.int(2, 12));
  const range = { kind: "date" as const, from: `${from}-01-01`, to: `${to}-12-28` };
  if (r.chance(inventedShare / 2)) {
    const phrase = `${inventWord(r)} ${r.pick(["date", "date", "day"])}`;
    return named(drawing, phrase, {
      ...range,
      phrase,
      where: `with ${/^[aeiou]/.test(phrase) ? "an" : "a"} ${phrase} in {v}`,
    });
  }
  const { noun, participle } = drawOccasion(drawing);
  const words = r.pickWeighted([
    [`${noun} date`, 6],
    [`${participle} on`, 2],
    [`date ${participle}`, 2],
    [participle, 2],
    [`date of ${noun}`, 1],
    [`${noun} day`, 1],
  ]);
  return named(drawing, words, {
    ...range,
    phrase: words.endsWith("day") ? `${noun} day` : r.chance(0.2) ? `date of ${noun}` : `${noun} date`,
    where: `${participle} in {v}`,
    ...(r.chance(0.75) ? { superlatives: latest(drawing, participle) } : {}),
    ...(r.chance(0.4) ? { ask: `When was {x} ${participle}?` } : {}),
  });
}

/** Superlatives for the latest and earliest event. */
function latest({ r, person }: Drawing, participle: string): readonly [string, string] {
  return r.pickWeighted<readonly [string, string]>([
    [[`most recently ${participle}`, `least recently ${participle}`], 4],
    [["newest", "oldest"], person ? 0.5 : 3],
    [["youngest", "oldest"], participle === "born" ? 6 : 0.3],
    [["newest", "longest-standing"], 1],
    [[`most recently ${participle}`, person ? "longest-serving" : "oldest"], 1],
    [["latest", "earliest"], 1],
    [["most recent", "earliest"], 1],
  ]);
}

function drawOccasion({ r, words, person }: Drawing) {
  const fits = ({ participle }: { readonly participle: string }) =>
    person ? TO_PEOPLE.has(participle) : !ONLY_TO_PEOPLE.has(participle);
  return r.pick(words.occasions.filter(fits));
}

/** Chooses the words of a column's name, which are not always the whole phrase. */
function columnWords({ r }: Drawing, phrase: string): string {
  if (phrase.includes(" ")) return r.chance(0.15) ? r.pick(phrase.split(" ")) : phrase;
  if (!r.chance(0.07)) return phrase;
  return r.pick([`${phrase} name`, `${phrase} code`, `the ${phrase}`, `${phrase} 1`, `main ${phrase}`]);
}

function named<T extends { readonly phrase: string }>(
  { r, style }: Drawing,
  words: string,
  rest: T,
): (T & { name: string }) | undefined {
  const name = columnName(r, style, words);
  return [name, words, rest.phrase].some(isHeldOut) ? undefined : { name, ...rest };
}
