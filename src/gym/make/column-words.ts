// The words of columns: how conditions, superlatives and dates of a column are said. Variants differ in phrasing.
import { an, plural } from "../worlds/english.ts";
import { SPOKEN_QUANTITIES } from "../worlds/lexicon/columns.ts";
import { EVENT_NOUNS } from "../worlds/lexicon/schema-words.ts";
import type { CategoryColumn, DateColumn, NumberColumn } from "../worlds/spec.ts";
import type { Inferred, Kind } from "./kinds.ts";
import { isPlace, isPlural, isSummable, singular } from "./words.ts";

/** What the words of a column depend on in its table: what a row is called. */
export interface Rows {
  readonly one: string;
  readonly person: boolean;
}

type Words<T> = Omit<T, "name" | "phrase" | "nulls"> & { readonly phrase?: string };

/** The phrase of a number: "cylinders" is a "number of cylinders", "start from" a "start year". */
export function numberPhrase(phrase: string, { kind, whole }: Inferred): string {
  if (kind === "year" && !/\byear\b/.test(phrase)) return `${phrase.replace(/ (?:from|since|in|until)$/, "")} year`;
  if (kind !== "number" || !whole) return phrase;
  if (/^years? of /.test(phrase)) return phrase.replace(/^years? of /, "number of years of ");
  if (/^(?:killed|injured|wounded|missing|sold|won|lost|drawn|played)$/.test(lastWord(phrase)))
    return `number of ${phrase}`;
  return isPlural(lastWord(phrase)) && !/\b(?:of|in|per)\b/.test(phrase) ? `number of ${phrase}` : phrase;
}

/** Whether a phrase is in the plural, so that it has no article: "earnings", "ratings in millions". */
export function isPluralPhrase(phrase: string): boolean {
  return isPlural(lastWord(phrase.replace(/ (?:of|in|per|at|on) .*$/, "")));
}

function lastWord(phrase: string): string {
  return phrase.split(" ").at(-1)!;
}

/** The plural of a phrase that may be in the plural already. */
function severalOf(phrase: string): string {
  return isPluralPhrase(phrase) ? phrase : plural(phrase);
}

const WHERE = /^(?:country|city|state|hometown|home town|region|continent|county|district|province)$/;

/** A category: "whose type is dog", "with the type dog", "from France". */
export function categoryWords(phrase: string, numeric: boolean, variant: number, rows: Rows): Words<CategoryColumn> {
  const counted = phrase.startsWith("number of ") ? phrase.slice("number of ".length) : undefined;
  const isPlaceName = WHERE.test(phrase) && (rows.person || isPlace(rows.one));
  const where = counted
    ? `with {v} ${counted}`
    : variant === 2 && isPlaceName
      ? `${rows.person ? "from" : "in"} {v}`
      : variant === 1
        ? `with the ${phrase} {v}`
        : `whose ${phrase} ${isPluralPhrase(phrase) ? "are" : "is"} {v}`;
  const one = counted
    ?.split(" ")
    .map((word, i, all) => (i === all.length - 1 ? singular(word) : word))
    .join(" ");
  return {
    kind: "category",
    values: [],
    plural: counted ? `numbers of ${counted}` : severalOf(phrase),
    where,
    ...(one !== undefined && { words: { "1": `with 1 ${one}` } }),
    ...(numeric && { numeric }),
  };
}

/** A column of yes and no: "that are not organic". `parts` are the words of its name. */
export function flagWords(parts: readonly string[], { yes, no }: Inferred, rows: Rows): Words<CategoryColumn> {
  const who = rows.person ? "who" : "that";
  const own = parts.filter((word) => !/^(?:yn|flag|indicator)$/.test(word));
  const [first = "", ...rest] = own[0] === rows.one && own.length > 1 ? own.slice(1) : own;
  const said = [first, ...rest].join(" ").toLowerCase();
  const short = rest.join(" ").toLowerCase();
  const states =
    /^(?:is|was)$/.test(first) && rest.length > 0
      ? [`${who} are ${short}`, `${who} are not ${short}`]
      : /^(?:has|have)$/.test(first) && rest.length > 0
        ? [`${who} have ${short}`, `${who} do not have ${short}`]
        : /(?:ed|ive|able)$/.test(said) && rest.length === 0
          ? [`${who} are ${said}`, `${who} are not ${said}`]
          : undefined;
  const name = /^(?:is|was|has|have|if|can)$/.test(first) && rest.length > 0 ? short : said;
  return {
    kind: "category",
    values: [],
    // By these quotation marks `isOdd` recognizes questions that would read oddly.
    phrase: `"${said}" value`,
    plural: `"${said}" values`,
    where: `whose ${name} is {v}`,
    ...(states && { words: { [String(yes)]: states[0]!, [String(no)]: states[1]! } }),
    ...(typeof yes === "number" && { numeric: true }),
  };
}

const PARTICIPLE = /^(?!need|speed|seed|feed|breed|weed)\w{3,}ed$|^(?:born|built|sold|sent|held|paid|made|left|begun)$/;
/** Participles of verbs without an object: a train "arrived", it was not "arrived". */
const ACTIVE =
  /^(?:arrived|departed|joined|left|started|ended|died|retired|expired|occurred|finished|graduated|enrolled)$/;

/** A date: "hired in 2019", "with a release date in 2019". `parts` are the words of its name. */
export function dateWords(phrase: string, parts: readonly string[], rows: Rows): Words<DateColumn> {
  const low = parts.map((word) => word.toLowerCase());
  const own = low.length > 1 && low[0] === rows.one ? low.slice(1) : low;
  const event = own.find((word) => PARTICIPLE.test(word));
  const other = own.filter((word) => word !== event).join(" ");
  if (event !== undefined && /^(?:date|at|on|time|day|datetime|)$/.test(other)) {
    const active = ACTIVE.test(event);
    return {
      kind: "date",
      phrase: `${EVENT_NOUNS.get(event) ?? event} date`,
      from: "",
      to: "",
      where: active ? `${rows.person ? "who" : "that"} ${event} in {v}` : `${event} in {v}`,
      ...(!active && { ask: `When was {x} ${event}?` }),
    };
  }
  const [first, ...rest] = phrase.split(" ");
  const named = first === "date" && rest.length > 0 && rest[0] !== "of" ? `${rest.join(" ")} date` : phrase;
  const birth = rows.person && /^(?:date of birth|birth date|birthday|birthdate)$/.test(named);
  return {
    kind: "date",
    ...(named !== phrase && { phrase: named }),
    from: "",
    to: "",
    where: birth ? "born in {v}" : `with ${an(named)} in {v}`,
    ...(birth && { superlatives: ["youngest", "oldest"] as const }),
  };
}

/** Quantities with adjectives that need no unit and fit anything: "older than 40". */
const SPEAKABLE = new Set(["age", "weight", "height", "length", "width", "depth", "speed", "price", "duration"]);
const NEVER_SUMMED = new Set(["age", "height", "width", "depth", "speed", "price"]);
const LEVEL =
  /\b(?:average|mean|rate|ratio|percentage|percent|age|year|score|rating|ratings|share|maximum|minimum|per)\b/;

/** A quantity. */
export function numberWords(
  phrase: string,
  kind: Kind,
  rows: Rows,
): Pick<NumberColumn, "summable" | "year" | "comparatives" | "superlatives" | "between" | "ask"> {
  if (kind === "year") {
    const a = an(phrase);
    return { year: true, summable: false, comparatives: [`with ${a} after`, `with ${a} before`] };
  }
  const isDear = kind === "money" && /price|salary|wage|GDP|GNP|balance/i.test(phrase);
  const isMany = isPluralPhrase(phrase);
  const summable =
    !LEVEL.test(phrase) &&
    !NEVER_SUMMED.has(phrase) &&
    !isDear &&
    (kind === "money" || isMany || phrase.startsWith("number of ") || isSummable(lastWord(phrase)));
  const line = SPOKEN_QUANTITIES.trim()
    .split("\n")
    .find((one) => one.startsWith(`${phrase} `));
  if (line && SPEAKABLE.has(phrase) && !(phrase === "price" && rows.person)) {
    const [, superlatives = "", comparatives = ""] = line.split("|").map((part) => part.trim());
    return {
      summable,
      superlatives: superlatives.split(", ") as [string, string],
      comparatives: comparatives.split(", ") as [string, string],
      ...(phrase === "age" && rows.person && { ask: "How old is {x}?" }),
    };
  }
  return {
    summable,
    ...(isMany &&
      !phrase.startsWith("number of ") && {
        comparatives: [`with ${phrase} above`, `with ${phrase} below`],
        between: `with ${phrase} between {a} and {b}`,
      }),
  };
}
