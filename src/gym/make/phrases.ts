// Nouns for tables and phrases for columns, as a person would say them.
import { plural } from "../worlds/english.ts";
import { AGENTS, EVENT_NOUNS } from "../worlds/lexicon/schema-words.ts";
import type { FoundColumn, FoundTable } from "./schema.ts";
import { isAbbreviation, isPlural, singular, wordsIn } from "./words.ts";

/** A noun in both numbers. */
export interface Noun {
  readonly one: string;
  readonly many: string;
}

/** Words that a person gives: a noun in the singular for a table, a phrase for `table.column`. */
export type Names = Readonly<Record<string, string>>;

/** The word given for a name, if there is one. */
export function wordFor(names: Names, name: string): string | undefined {
  return Object.hasOwn(names, name) ? names[name] : undefined;
}

/** Words before and after a table's noun that only say that it is a table. */
const BEFORE = new Set(["ref", "tbl", "tb", "dim", "fact", "vw", "lkp", "lookup", "mst", "t"]);
const AFTER = new Set(["data", "info", "information", "details", "table", "tbl", "list", "master", "names"]);

/** Words that stay in the plural before a noun: "sales order". */
const ALWAYS_PLURAL = new Set([
  "sales",
  "goods",
  "sports",
  "savings",
  "operations",
  "communications",
  "economics",
  "news",
]);

/** Nouns that have no plural: a row of them is a record. */
const MASS = new Set(
  "staff data information equipment music inventory stock weather attendance history metadata research news payroll feedback traffic content software budget population climate personnel access".split(
    " ",
  ),
);

/** The words of all tables' names in the singular, at which column names without separators are split. */
export function schemaWords(tables: readonly Pick<FoundTable, "name">[]): Set<string> {
  return new Set(
    tables
      .flatMap(({ name }) => wordsIn(name))
      .map((word) => singular(word.toLowerCase()))
      .filter((word) => word.length > 2),
  );
}

/** Nouns for all tables, no two alike. */
export function tableNouns(tables: readonly Pick<FoundTable, "name">[], names: Names = {}): Map<string, Noun> {
  const words = schemaWords(tables);
  const full = new Map(tables.map(({ name }) => [name, spoken(wordsIn(name, words))]));
  const short = new Map([...full].map(([name, parts]) => [name, withoutMarks(parts)]));
  const nouns = new Map<string, Noun>();
  const used = new Set<string>();
  // Tables whose name is already the shortest go first, so that `model` keeps its noun beside `model_list`.
  for (const name of [...full.keys()].sort((a, b) => full.get(a)!.length - full.get(b)!.length)) {
    const parts = [short.get(name)!, full.get(name)!].find((words) => !used.has(nounOf(words).one)) ?? [name];
    const given = wordFor(names, name);
    const noun = given === undefined ? nounOf(parts) : { one: given, many: plural(given) };
    used.add(noun.one);
    nouns.set(name, noun);
  }
  return nouns;
}

function spoken(words: readonly string[]): string[] {
  return words.length > 0 ? [...words] : ["table"];
}

function withoutMarks(words: readonly string[]): readonly string[] {
  let rest = words;
  while (rest.length > 1 && BEFORE.has(rest[0]!)) rest = rest.slice(1);
  while (rest.length > 1 && AFTER.has(rest.at(-1)!)) rest = rest.slice(0, -1);
  return rest;
}

function nounOf(words: readonly string[]): Noun {
  const head = words.findIndex((word, i) => i > 0 && /^(?:of|in|per|at|on|for|by)$/.test(word));
  const at = (head < 0 ? words.length : head) - 1;
  const one = words.map((word, i) => (i <= at && !ALWAYS_PLURAL.has(word) ? singular(word) : word)).join(" ");
  const last = words[at]!;
  if (last === "staff" && at === words.length - 1) return { one: `${one} member`, many: `${one} members` };
  if (/^(?:data|info|information|details)$/.test(last) && words.length > 1) {
    const about = [...words.slice(0, -2), singular(words.at(-2)!), last].join(" ");
    return { one: `${about} record`, many: `${about} records` };
  }
  if (MASS.has(last)) return { one: `${one} record`, many: `${one} records` };
  return { one, many: plural(one) };
}

/** Words for a column, without those of its table: `stadium_name` of stadiums is a "name". */
export function columnPhrase(column: Pick<FoundColumn, "name">, noun: Noun, words: ReadonlySet<string>): string {
  const all = wordsIn(column.name, words);
  const own = noun.one.split(" ");
  let parts = all;
  for (let cut = own.length; cut > 0; cut--) {
    const head = own.slice(-cut);
    if (all.length > cut && head.every((word, i) => singular(all[i]!.toLowerCase()) === word.toLowerCase())) {
      parts = all.slice(cut);
      break;
    }
  }
  if (/^(?:of|in|by|at|from|to|for|no|and|on)$/.test(parts[0] ?? "")) parts = all;
  const tail = parts.lastIndexOf("of");
  if (
    tail > 0 &&
    parts
      .slice(tail + 1)
      .map(singular)
      .join(" ") === noun.one
  )
    parts = parts.slice(0, tail);
  return idiomatic(countPhrase(parts)).join(" ") || column.name;
}

/** "directed by" as "director", "year of founded" as "founding year", "GNP old" as "old GNP". */
function idiomatic(parts: readonly string[]): readonly string[] {
  const [first, second, third] = parts;
  const last = parts.at(-1)!;
  const agent = AGENTS.get(first!);
  if (parts.length === 2 && last === "by" && agent !== undefined) return [agent];
  const event = EVENT_NOUNS.get(third ?? "");
  if (parts.length === 3 && first === "year" && second === "of" && event !== undefined) return [event, first];
  if (parts.length > 1 && UNIT.test(last) && parts.at(-2) !== "in") return [...parts.slice(0, -1), "in", last];
  if (parts.length > 1 && /^(?:old|new|current|previous)$/.test(last)) return [last, ...parts.slice(0, -1)];
  return parts;
}

const UNIT = /^(?:millions|thousands|billions|usd|eur|gbp|dollars|euros|km|kg|cm|mm|mb|gb|kb|sqft|mph|kmh)$/i;

/** Why a column's words are not good enough to ask about it; undefined if they are. */
export function unclearPhrase(phrase: string, isDate: boolean): string | undefined {
  const parts = phrase.toLowerCase().split(" ");
  const last = parts.at(-1)!;
  if (BARE.test(phrase)) return `"${phrase}" does not say of what`;
  if (parts.some((part) => /^\p{L}$/u.test(part))) return `"${phrase}" has a letter that is no word`;
  const short = parts.find(isAbbreviation);
  if (short !== undefined) return `"${short}" looks like an abbreviation`;
  if (/^(?:by|of|in|at|for|with|on|and|or|the|is|if)$/.test(last)) return `"${phrase}" is no noun`;
  // "effective to" of a date is said as "effective to date".
  if (!isDate && /^(?:to|from)$/.test(last)) return `"${phrase}" is no noun`;
  return undefined;
}

/** Phrases that need a noun after them. */
const BARE =
  /^(?:highest|lowest|average|mean|maximum|minimum|total|first|last|best|worst|current|other|value|values)$/i;

/** "number products" and "products count" as "number of products". */
function countPhrase(parts: readonly string[]): readonly string[] {
  const [first, ...rest] = parts;
  const last = parts.at(-1)!;
  if (rest.length === 0) return parts;
  const of = (words: readonly string[]) => {
    const noun = words.at(-1)!;
    return ["number", "of", ...words.slice(0, -1), MASS.has(noun) ? noun : plural(singular(noun))];
  };
  if (/^(?:number|count)$/.test(first!) && rest[0] === "of" && rest.length > 1) return of(rest.slice(1));
  if (/^(?:number|no|count)$/.test(first!) && isPlural(last)) return of(rest);
  return last === "count" ? of(parts.slice(0, -1)) : parts;
}

/** The phrase of a reference: `home_club_id` is a "home club". */
export function referencePhrase(column: Pick<FoundColumn, "name">, parent: Noun, words: ReadonlySet<string>): string {
  const all = wordsIn(column.name, words);
  while (all.length > 0 && /^(?:id|code|key|no|number|uuid|fk|ref)$/i.test(all.at(-1)!)) all.pop();
  const text = all.map((word, i) => (i === all.length - 1 ? singular(word) : word)).join(" ");
  return text.length < 2 || text.endsWith(` by ${parent.one}`) ? parent.one : text;
}

/** Gives phrases that occur twice the words of the whole name, and the name itself if that does not help. */
export function distinctPhrases(phrases: readonly { readonly phrase: string; readonly name: string }[]): string[] {
  const count = (list: readonly string[], phrase: string) =>
    list.filter((other) => other.toLowerCase() === phrase.toLowerCase()).length;
  const first = phrases.map(({ phrase }) => phrase);
  const second = phrases.map(({ phrase, name }) => (count(first, phrase) > 1 ? wordsIn(name).join(" ") : phrase));
  return phrases.map(({ name }, i) => (count(second, second[i]!) > 1 ? `${second[i]} (${name})` : second[i]!));
}
