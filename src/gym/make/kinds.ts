// Infers what a column holds from its name and values: an id, a name, a category, a yes-or-no value, a date, a number.
import type { Cell } from "../sql/index.ts";
import { PERSONAL } from "../worlds/lexicon/personal.ts";
import { type FoundColumn, type FoundTable, isIdName, isKey } from "./schema.ts";
import { isCoded, wordsIn } from "./words.ts";

export type Kind =
  | "id"
  | "name" // could name a row
  | "category"
  | "flag" // yes or no
  | "date" // text such as 2019-04-30, with or without a time
  | "year"
  | "number"
  | "money"
  | "rank" // such as a place in a league: whether the first or the last is the highest is unclear
  | "text" // free text, and values that only look-ups use
  | "constant"
  | "unclear" // its name gives no phrase
  | "empty"
  | "mixed";

export interface Inferred {
  readonly kind: Kind;
  /** Whether numbers are stored as text, so that they are compared after a CAST. */
  readonly cast?: "INTEGER" | "REAL";
  /** Whether all numbers are whole. */
  readonly whole?: boolean;
  /** Whether a number column has few enough values to group by. */
  readonly few?: boolean;
  /** The values that mean yes and no. */
  readonly yes?: Cell;
  readonly no?: Cell;
  /** Set if the column looks like personal data: "email addresses". */
  readonly personal?: string;
}

const DATE =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?$/;

/** Pairs of values that mean yes and no. */
const YES_NO: readonly (readonly [string, string])[] = [
  ["1", "0"],
  ["t", "f"],
  ["y", "n"],
  ["yes", "no"],
  ["true", "false"],
];

const MONEY =
  /^(?:price|cost|amount|salary|wage|revenue|earnings|budget|fee|fees|fine|income|profit|payment|balance|turnover|sales|money|gnp|gdp|funding|bonus|rent|tax|debt|paid)$/i;
const RANK = /^(?:rank|ranking|position|finish|place|order|seed|grade|level|priority|sequence|stage|round|class)$/i;
const NAMES_A_ROW = /^(?:name|title|caption|label|headline)$/i;
const NUMBERED =
  /^(?:id|code|key|no|number|zip|zipcode|postcode|postal|phone|telephone|fax|ssn|isbn|issn|barcode|sku|uuid|guid|version|latitude|longitude)$/i;
const CATEGORICAL =
  /^(?:type|kind|category|status|state|class|genre|gender|sex|color|colour|language|country|nationality|city|region|continent|district|county|province|department|major|format|party|religion|level|group|brand|role|position|hometown|location|code)$/i;

/** Maximum distinct values of a category, and of a number to group by. */
const MAX_CATEGORIES = 300;
const MAX_FEW = 12;
const MAX_CATEGORY_LENGTH = 40;
const LONG_TEXT = 60;

/** Infers the kind of a column. */
export function inferKind(table: FoundTable, column: FoundColumn): Inferred {
  const values = table.rows.map((row) => row[column.index]!).filter((cell) => cell !== null);
  const words = wordsIn(column.name);
  const last = words.at(-1)?.toLowerCase() ?? "";
  const personal = personalData(words, values);
  const kind = kindOf(table, column, values, words, last);
  return { ...kind, ...(personal !== undefined && { personal }) };
}

function kindOf(
  table: FoundTable,
  column: FoundColumn,
  values: readonly NonNullable<Cell>[],
  words: readonly string[],
  last: string,
): Inferred {
  if (values.length === 0 || values.every((value) => value === "")) return { kind: "empty" };
  const yesNo = yesNoOf(values, words, column.type);
  if (yesNo) return { kind: "flag", ...yesNo };
  if (column.distinct === 1 && table.count > 1) return { kind: "constant" };
  const isNumber = values.every((value) => typeof value === "number");
  const isText = values.every((value) => typeof value === "string");
  if (!isNumber && !isText) return { kind: "mixed" };
  if (isText && values.some((value) => /^x'[0-9a-f]{8,}'$/.test(String(value)))) return { kind: "mixed" };
  if (isText && values.every((value) => DATE.test(String(value)))) return { kind: "date" };
  const isId = (column.primary_key && isKey(table, column)) || (isIdName(column.name) && isKey(table, column));
  if (isId && !(isText && NAMES_A_ROW.test(last))) return { kind: "id" };
  if (isNumber || values.every((value) => NUMERIC_TEXT.test(String(value)))) {
    return numberKind(table, column, values.map(Number), isNumber, words, last);
  }
  return textKind(table, column, values.map(String), last);
}

const NUMERIC_TEXT = /^-?(?:0|[1-9]\d{0,14})(?:\.\d{1,10})?$/;

function numberKind(
  table: FoundTable,
  column: FoundColumn,
  values: readonly number[],
  isNumber: boolean,
  words: readonly string[],
  last: string,
): Inferred {
  const whole = values.every(Number.isInteger);
  const cast = isNumber ? {} : { cast: whole ? ("INTEGER" as const) : ("REAL" as const) };
  const few = whole && column.distinct <= MAX_FEW && column.distinct * 2 <= table.count && column.distinct > 1;
  if (words.some((word) => NUMBERED.test(word)) && !(/^number$/i.test(words[0]!) && words.length > 1)) {
    return few ? { kind: "category", whole, few, ...cast } : { kind: "text" };
  }
  const isCode = column.coded || isIdName(column.name) || (whole && isCoded(last));
  if (isCode) return few ? { kind: "category", whole, few, ...cast } : { kind: "text" };
  const isYear = values.every((value) => value >= 1000 && value <= 2100) && whole;
  if (
    isYear &&
    words.some((word) =>
      /^(?:year|founded|since|opened|built|start|started|from|established|begin|end|until)$/i.test(word),
    )
  )
    return { kind: "year", whole, few, ...cast };
  if (words.some((word) => RANK.test(word))) return { kind: "rank", whole, few, ...cast };
  if (words.some((word) => MONEY.test(word))) return { kind: "money", whole, ...cast };
  if (words.length === 0 || last === "") return { kind: "text" };
  return { kind: "number", whole, few, ...cast };
}

function textKind(table: FoundTable, column: FoundColumn, values: readonly string[], last: string): Inferred {
  const mean = values.reduce((sum, value) => sum + value.length, 0) / values.length;
  const isOdd = values.some((value) => value !== value.trim() || /[\n\r\t]/.test(value) || value === "");
  const isNumeric = values.filter((value) => /^-?[\d.,/:%$ -]+$/.test(value)).length > 0.7 * values.length;
  if (isOdd || isNumeric || mean > LONG_TEXT) return { kind: "text" };
  const isUnique = column.distinct >= 0.9 * (table.count - column.nulls);
  const repeats = column.distinct <= 0.75 * (table.count - column.nulls);
  const isShort = values.every((value) => value.length <= MAX_CATEGORY_LENGTH);
  if (NAMES_A_ROW.test(last) && isUnique) return { kind: "name" };
  if (repeats && isShort && column.distinct <= MAX_CATEGORIES) return { kind: "category" };
  if (CATEGORICAL.test(last) && isShort && !isUnique) return { kind: "category" };
  return isUnique && mean <= MAX_CATEGORY_LENGTH ? { kind: "name" } : { kind: "text" };
}

function yesNoOf(
  values: readonly NonNullable<Cell>[],
  words: readonly string[],
  type: string,
): { yes: Cell; no: Cell } | undefined {
  const different = [...new Set(values)];
  if (different.length !== 2) return undefined;
  const pair = YES_NO.find(([yes, no]) => {
    const texts = different.map((value) => String(value).toLowerCase());
    return texts.includes(yes) && texts.includes(no);
  });
  if (!pair) return undefined;
  const isFlagName =
    /^bool/i.test(type) ||
    words.some((word) => /^(?:is|has|was|if|can|yn|flag|paid|active|enabled|deleted)$/i.test(word));
  // 0 and 1 may also count something, and F may mean female.
  if (pair[0] === "1" && !isFlagName) return undefined;
  if (pair[0] === "t" && words.some((word) => /^(?:sex|gender)$/i.test(word))) return undefined;
  const [a, b] = different;
  return String(a).toLowerCase() === pair[0] ? { yes: a!, no: b! } : { yes: b!, no: a! };
}

/** What kind of personal data a column seems to hold; undefined if none. */
export function personalData(words: readonly string[], values: readonly NonNullable<Cell>[]): string | undefined {
  const name = words.join(" ");
  const texts = values.slice(0, 200).filter((value): value is string => typeof value === "string");
  return PERSONAL.find(
    ({ name: pattern, value }) =>
      pattern.test(name.toLowerCase()) ||
      (value && texts.length > 2 && texts.filter((text) => value.test(text)).length > 0.6 * texts.length),
  )?.what;
}
