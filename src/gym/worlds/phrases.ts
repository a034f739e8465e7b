// English phrases for the rows and values of a world.
import type { Cell } from "../sql/index.ts";
import { an, fill, plural, third } from "./english.ts";
import type { Link } from "./inspect-world.ts";
import type { CategoryColumn, ColumnSpec, DateColumn, NumberColumn, TableSpec } from "./spec.ts";

/** A condition on a table's rows, in SQL and in words around the noun: "Italian" restaurants "in Rome". */
export interface Restriction {
  readonly column: string;
  readonly sql: string;
  readonly before?: string;
  readonly after?: string;
}

/** Names one row: "flight AB 12". */
export function called(table: TableSpec, value: Cell): string {
  return fill(table.called ?? "{v}", { v: String(value) });
}

/** Noun phrase for several rows: "Italian restaurants in Rome". */
export function rowsOf(table: TableSpec, ...restrictions: readonly Restriction[]): string {
  return around(table.many, restrictions);
}

/** Noun phrase for one row: "Italian restaurant in Rome". */
export function rowOf(table: TableSpec, ...restrictions: readonly Restriction[]): string {
  return around(
    table.one,
    restrictions.map((one) => (one.after ? { ...one, after: ofOne(one.after) } : one)),
  );
}

const SINGULAR: Readonly<Record<string, string>> = { are: "is", were: "was", have: "has", do: "does" };

/** "that are organic" of one row: "that is organic". */
function ofOne(after: string): string {
  return after.replace(
    /^(that|who) (are|were|have|do)\b/,
    (_, who: string, verb: string) => `${who} ${SINGULAR[verb]}`,
  );
}

function around(noun: string, restrictions: readonly Restriction[]): string {
  const before = restrictions.flatMap((restriction) => restriction.before ?? []);
  const [first, ...rest] = restrictions.flatMap((restriction) => restriction.after ?? []);
  if (first === undefined) return [...before, noun].join(" ");
  // Prepositional phrases are not joined by "and": "flights from Rome to Oslo", but "patients insured with Aegis and
  // older than 60".
  const later = rest.map((words) => (PREPOSITION.test(first) || PREPOSITION.test(words) ? words : `and ${words}`));
  return [...before, noun, first, ...later].join(" ");
}

const PREPOSITION = /^(?:from|in|at|by|of|for|to|on|under)\b/;

const PARTICIPLE =
  /^(?:\w+ly )?(?:\w+ed|born|built|sold|held|made|written|bought|sent|taken|flown|won|set|given|paid|shot|drawn|sung|begun)\b/;

/** Participles that describe a state, not an event. */
const LASTING =
  /^(?:rated|insured|represented|based|taught|looked|run|associated|made from|closed|located|paid (?:more|less))\b/;

/**
 * Turns what follows a noun into a verb phrase: "with a pool" → "have a pool", "hired in 2019" → "were hired in 2019";
 * undefined if there is no natural phrase.
 */
export function predicate(after: string | undefined): string | undefined {
  if (after === undefined) return undefined;
  if (after.startsWith("with ")) return `have ${after.slice(5)}`;
  if (/^(?:that|who) /.test(after)) return after.replace(/^\w+ /, "");
  if (/^(?:whose|which|of|for|by|\w+ing)\b/.test(after)) return undefined;
  return `${PARTICIPLE.test(after) && !LASTING.test(after) ? "were" : "are"} ${after}`;
}

/**
 * Negates a verb phrase: "have a pool" → "do not have a pool", "are in Rome" → "are not in Rome"; undefined for other verbs.
 */
export function denied(verbPhrase: string | undefined): string | undefined {
  if (verbPhrase?.startsWith("have ")) return `do not ${verbPhrase}`;
  const [, verb, rest] = /^(are|were) (.*)$/.exec(verbPhrase ?? "") ?? [];
  return verb ? `${verb} not ${rest}` : undefined;
}

/** Verb forms for a link's subject: "have", "wrote", "write". */
export function verbOf({ verb = "have", past }: { readonly verb?: string; readonly past?: readonly [string, string] }) {
  return {
    /** As in: authors "wrote". */
    many: past?.[0] ?? verb,
    /** As in: an author "writes". */
    one: past?.[0] ?? third(verb),
    /** As in: "does each author write". */
    ask: (subject: string, isPlural = false) =>
      !past && verb.startsWith("are ")
        ? `${isPlural ? "are" : "is"} ${subject} ${verb.slice(4)}`
        : `${past ? "did" : isPlural ? "do" : "does"} ${subject} ${verb}`,
    /** As in: authors "have never written a book". */
    never: (object: { readonly one: string; readonly many: string }) =>
      past
        ? `have never ${past[1]} ${an(object.one)}`
        : verb === "have"
          ? `have no ${object.many}`
          : `do not ${verb} any ${object.many}`,
  };
}

/**
 * The first or last row in an order, as a noun phrase without article ("oldest Swedish author") and as a verb phrase
 * ("is the oldest").
 */
export function superlative(
  table: TableSpec,
  column: NumberColumn | DateColumn,
  top: boolean,
  ...restrictions: readonly Restriction[]
): {
  readonly one: string;
  readonly many: string;
  readonly verb: string;
  readonly verbMany: string;
  readonly first: string;
} {
  const counted = countedBy(column);
  const plain = counted
    ? `with the ${top ? "most" : "fewest"} ${counted}`
    : `with the ${extremesOf(column)[top ? 0 : 1]} ${column.phrase}`;
  const words = column.superlatives?.[top ? 0 : 1] ?? plain;
  if (/^(?:with|that|who) /.test(words)) {
    // After other restrictions, "with" would read as one more, so it becomes "… in Rome that has the most tables".
    const who = restrictions.some(({ after }) => after) ? (table.person ? "who " : "that ") : undefined;
    const tail = (has: string) => (who ? words.replace(/^with /, `${who}${has} `) : words);
    return {
      one: `${rowOf(table, ...restrictions)} ${tail("has")}`,
      many: `${rowsOf(table, ...restrictions)} ${tail("have")}`,
      verb: words.replace(/^with /, "has ").replace(/^(?:that|who) /, ""),
      verbMany: words.replace(/^with /, "have ").replace(/^(?:that|who) /, ""),
      first: words.replace(/^(?:with|that|who) (?:the )?/, ""),
    };
  }
  return {
    one: `${words} ${rowOf(table, ...restrictions)}`,
    many: `${words} ${rowsOf(table, ...restrictions)}`,
    verb: `is the ${words}`,
    verbMany: `are the ${words}`,
    first: words,
  };
}

/** What a column counts, such as "pages" in "number of pages". */
export function countedBy({ phrase }: ColumnSpec): string | undefined {
  return phrase.startsWith("number of ") ? phrase.slice("number of ".length) : undefined;
}

/** Words for the largest and smallest value of a column. */
export function extremesOf(column: NumberColumn | DateColumn): readonly [string, string] {
  if (column.kind === "date") return ["latest", "earliest"];
  return column.extremes ?? (column.year ? ["latest", "earliest"] : ["highest", "lowest"]);
}

/** Converts a superlative: "highest" → "higher". */
export function comparativeOf(extreme: string): string {
  if (extreme === "most" || extreme === "best") return extreme === "most" ? "more" : "better";
  return extreme.replace(/est$/, "er");
}

/** "40 euros", or just the number if there is no unit. */
export function withUnit(value: number | string, { unit }: NumberColumn): string {
  return unit ? `${value} ${unit}` : String(value);
}

/** The plural of a column's phrase. */
export function pluralOf(column: ColumnSpec): string {
  return column.kind === "category" ? column.plural : plural(column.phrase);
}

/** The words of a category restriction; `value` may list several values, such as "Rome or Milan". */
export function categoryWords(column: CategoryColumn, value: string): Pick<Restriction, "before" | "after"> {
  const own = column.words && Object.hasOwn(column.words, value) ? column.words[value] : undefined;
  if (own !== undefined) return { after: own };
  if (column.before) return { before: fill(column.before, { v: value }) };
  return { after: fill(column.where ?? "whose {phrase} is {v}", { v: value, av: an(value), phrase: column.phrase }) };
}

/** Describes the row that a row references: "the author of Silent River". */
export function referredOf({ child, ref }: Link, value: Cell): string {
  return fill(ref.of ?? `the ${ref.phrase} of {x}`, { x: called(child, value) });
}

/** Questions for one column of one row, starting with the column's own. */
export function asksFor(table: TableSpec, column: ColumnSpec, x: string): string[] {
  const counted = countedBy(column);
  const general = [
    counted ? `How many ${counted} does ${x} have?` : `What is the ${column.phrase} of ${x}?`,
    `What is the ${column.phrase} of ${x}?`,
    `Find the ${column.phrase} of ${x}.`,
    `Tell me the ${column.phrase} of ${x}.`,
  ];
  if (table.person && /^[A-ZÀ-Þ]/.test(x)) general.push(`What is ${x}'s ${column.phrase}?`);
  if (!column.ask) return general;
  const own = fill(column.ask, { x });
  return [own, own, own, ...general];
}
