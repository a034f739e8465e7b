// Builds one simple query from the words of a question, matched with described tables and stored values. Query shapes
// are tried in order and the first match wins. No shape covers nesting, set operations or HAVING.
import { quoteName, quoteText } from "../../sql/index.ts";
import { type ParsedColumn, type ParsedDescription, parseResult } from "./parse-observation.ts";
import { mention, occursIn, stems, withHints } from "./stemming.ts";

interface Field {
  readonly table: ParsedDescription;
  readonly column: ParsedColumn;
}

/** A stored text that occurs in the question. */
export interface FoundValue extends Field {
  readonly text: string;
}

// Columns by use

const isNumber = ({ column }: Field) => /int|real|num|dec|doub|float/.test(column.type);
const isKey = ({ column }: Field) => column.primary_key || column.references !== null;
const isDate = ({ column }: Field) => /date|day|time/.test(`${column.type} ${stems(column.name).join(" ")}`);
const isMeasure = (field: Field) => isNumber(field) && !isKey(field);
const isWord = (field: Field) => !isNumber(field) && !isKey(field) && !isDate(field);

function fieldsOf(table: ParsedDescription): Field[] {
  return table.columns.map((column) => ({ table, column }));
}

/** The column that identifies a row for people: one called name, title or label, or the first text column. */
function labelOf(table: ParsedDescription): Field {
  const fields = fieldsOf(table);
  const words = fields.filter(isWord);
  const named = words.find(({ column }) => /name|title|label/.test(column.name.toLowerCase()));
  return named ?? words[0] ?? fields[0]!;
}

// Values

/** Builds one query that finds the stored texts that occur in the question, column by column. */
export function valueProbe(question: string, tables: readonly ParsedDescription[]): string | undefined {
  const parts = tables.flatMap(fieldsOf).flatMap((field, i) => {
    if (!isWord(field)) return [];
    const name = quoteName(field.column.name);
    const where = `length(${name}) > 1 AND instr(asked_, lower(${name})) > 0`;
    return [`SELECT ${i} AS field, ${name} AS value FROM ${quoteName(field.table.name)}, question_ WHERE ${where}`];
  });
  if (parts.length === 0) return undefined;
  return `WITH question_(asked_) AS (VALUES (${quoteText(question.toLowerCase())})) ${parts.join(" UNION ")}`;
}

/** Parses the probe's result; drops values that occur only inside a word or a longer value. */
export function readValues(result: string, question: string, tables: readonly ParsedDescription[]): FoundValue[] {
  const fields = tables.flatMap(fieldsOf);
  const found = parseResult(result).rows.flatMap(([index, ...cells]): FoundValue[] => {
    const field = fields[Number(index)];
    const text = cells.join(" | ");
    return field && occursIn(text, question) ? [{ ...field, text }] : [];
  });
  const isPart = (text: string) => found.some((other) => other.text.length > text.length && occursIn(text, other.text));
  return found.filter(({ text }, i) => !isPart(text) && found.findIndex((other) => other.text === text) === i);
}

// Drafts of a query

interface QueryDraft {
  readonly question: string;
  readonly words: readonly string[];
  readonly tables: readonly ParsedDescription[];
  readonly main: ParsedDescription;
  readonly conditions: readonly Condition[];
}

interface Condition {
  readonly field: Field;
  readonly sql: string;
}

interface Query {
  readonly select: readonly (Field | string)[];
  readonly uses?: readonly Field[];
  readonly distinct?: boolean;
  readonly group?: Field;
  readonly order?: string;
}

/** Builds queries to try in order: first with all conditions, then only with those on the main table. */
export function buildQueries(
  question: string,
  tables: readonly ParsedDescription[],
  values: readonly FoundValue[],
): string[] {
  const main = tables[0]!;
  const words = withHints(stems(question));
  const base = { question: question.toLowerCase(), words, tables, main };
  const conditions = [...valueConditions(base.question, values), ...numberConditions(base)];
  const drafts = [conditions, conditions.filter(({ field }) => field.table === main)];
  return [...new Set(drafts.map((kept) => compose({ ...base, conditions: kept })))];
}

/** Turns values into conditions: equality, or IN for several values of one column. */
function valueConditions(question: string, values: readonly FoundValue[]): Condition[] {
  const not = /\b(?:not|other than|except|anything but)\b/.test(question);
  return [...new Set(values.map(({ column }) => column))].map((column) => {
    const same = values.filter((value) => value.column === column);
    const texts = same.map(({ text }) => quoteText(text));
    const name = nameOf(same[0]!);
    const equal = not ? `${name} <> ${texts[0]}` : `${name} = ${texts[0]}`;
    return {
      field: same[0]!,
      sql: texts.length === 1 ? equal : `${name} ${not ? "NOT " : ""}IN (${texts.join(", ")})`,
    };
  });
}

const UP = "more|greater|higher|larger|bigger|older|longer|taller|heavier|later|over|above|after|exceeding|since";
const DOWN = "less|fewer|lower|smaller|younger|shorter|lighter|cheaper|earlier|under|below|before";
const AMOUNT = "[^\\d.]{0,24}?(\\d[\\d,]*(?:\\.\\d+)?)";

/** Parses conditions such as "more than 20", "between 3 and 5", "in 2019". */
function numberConditions(draft: Omit<QueryDraft, "conditions">): Condition[] {
  const { question } = draft;
  const field = bestField(draft, isMeasure, 0) ?? bestField(draft, isDate, 0);
  const on = (build: (name: string) => string): Condition[] => (field ? [{ field, sql: build(nameOf(field)) }] : []);
  const plain = (text: string) => text.replaceAll(",", "");
  const between = /between \D{0,3}([\d,.]*\d) and \D{0,3}([\d,.]*\d)/.exec(question);
  if (between) return on((name) => `${name} BETWEEN ${plain(between[1]!)} AND ${plain(between[2]!)}`);
  const bound = new RegExp(`\\b(?:(at least|or more)|(at most|or less)|(${UP})|(${DOWN}))\\b${AMOUNT}`).exec(question);
  if (bound) {
    const operator = bound[1] ? ">=" : bound[2] ? "<=" : bound[3] ? ">" : "<";
    return on((name) => `${name} ${operator} ${plain(bound[5]!)}`);
  }
  const year = /\b(?:in|during|of|from) ((?:18|19|20)\d\d)\b/.exec(question);
  const dated = year && (bestField(draft, isDate, 0) ?? bestField(draft, ({ column }) => /year/i.test(column.name), 0));
  if (!dated) return [];
  return [
    { field: dated, sql: isNumber(dated) ? `${nameOf(dated)} = ${year[1]}` : `${nameOf(dated)} LIKE '${year[1]}%'` },
  ];
}

/** The field that best matches the question, preferring the main table; with `least` 0 it need not be mentioned. */
function bestField(
  { tables, words }: Pick<QueryDraft, "tables" | "words">,
  fits: (field: Field) => boolean,
  least = 0.01,
) {
  const scored = tables.flatMap((table, index) =>
    fieldsOf(table)
      .filter(fits)
      .map((field) => ({ field, score: scoreField(field, words) - index / 1000 })),
  );
  const best = scored.reduce<(typeof scored)[number] | undefined>(
    (top, next) => (top && top.score >= next.score ? top : next),
    undefined,
  );
  return best && best.score >= least - tables.length / 1000 ? best.field : undefined;
}

/**
 * How well the question mentions a column, ignoring the words of its table: artist_name in artists counts as "name".
 */
function scoreField({ table, column }: Field, words: readonly string[]): number {
  const own = stems(table.name);
  const rest = stems(column.name).filter((part) => !own.includes(part));
  return mention(rest.length > 0 ? rest.join(" ") : column.name, words).score;
}

// Shapes

type Shape = (draft: QueryDraft) => Query | undefined;

const isFree = ({ conditions }: QueryDraft, field: Field) => conditions.every((c) => c.field.column !== field.column);

const findGroup: (draft: QueryDraft) => Field | undefined = (draft) => {
  const each = /\b(?:each|per|every)\s+(.*)$/.exec(draft.question);
  if (!each) return undefined;
  const words = stems(each[1]!);
  const byColumn = bestField({ ...draft, words }, (field) => isWord(field) && isFree(draft, field));
  const byTable = draft.tables.find(({ name }) => mention(name, words).score > 0);
  return byColumn ?? (byTable ? labelOf(byTable) : undefined);
};

const isCount = (question: string) => /\bhow many\b|\bnumber of\b|^count\b/.test(question);

const countByGroup: Shape = (draft) => {
  const group = isCount(draft.question) ? findGroup(draft) : undefined;
  return group && { select: [group, "count(*)"], group };
};

const countDifferent: Shape = (draft) => {
  if (!isCount(draft.question) || !/\b(?:different|distinct|unique)\b/.test(draft.question)) return undefined;
  const field = bestField(draft, (candidate) => !isKey(candidate) && isFree(draft, candidate));
  return field && { select: [`count(DISTINCT ${nameOf(field)})`], uses: [field] };
};

/** Matches "How many pages does Emma have?", which asks for a stored number. */
const quantity: Shape = (draft) => {
  const noun = /\bhow many (\w+)/.exec(draft.question)?.[1];
  if (!noun || draft.conditions.length === 0) return undefined;
  const field = bestField(
    { ...draft, words: stems(noun) },
    (candidate) => isMeasure(candidate) && isFree(draft, candidate),
  );
  return field && { select: [field] };
};

const count: Shape = ({ question }) => (isCount(question) ? { select: ["count(*)"] } : undefined);

/** Matches questions for avg or sum, overall or by group. */
const aggregate: Shape = (draft) => {
  const call = /\b(?:average|mean)\b/.test(draft.question)
    ? "avg"
    : /\b(?:total|sum|combined)\b/.test(draft.question)
      ? "sum"
      : "";
  const field = call && bestField(draft, (candidate) => isMeasure(candidate), 0);
  if (!field) return undefined;
  const group = findGroup(draft);
  const value = `${call}(${nameOf(field)})`;
  return group ? { select: [group, value], uses: [field], group } : { select: [value], uses: [field] };
};

const LOW = "least|lowest|smallest|minimum|shortest|youngest|earliest|cheapest|lightest|fewest|slowest|first|worst";
const HIGH = "most|maximum|top|last|best|\\w{3,}est";
const SMALL_NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

/** Matches questions for the row with the highest value, or for that value. */
const extreme: Shape = (draft) => {
  const { words, main } = draft;
  const question = draft.question.replace(/\bat (?:least|most)\b/g, "");
  const low = new RegExp(`\\b(?:${LOW})\\b`).test(question);
  if (!low && !new RegExp(`\\b(?:${HIGH})\\b`).test(question)) return undefined;
  const common = /\bmost (?:common|frequent|popular|often)\b/.test(question) && bestField(draft, isWord);
  if (common) return { select: [common], group: common, order: "count(*) DESC LIMIT 1" };
  const by = bestField(draft, isMeasure) ?? bestField(draft, isDate) ?? bestField(draft, isMeasure, 0);
  if (!by) return undefined;
  const asksValue = new RegExp(`^what(?:'s| is| was) the (?:${LOW}|${HIGH})\\b`).test(question);
  if (asksValue && scoreField(by, words) === 1)
    return { select: [`${low ? "min" : "max"}(${nameOf(by)})`], uses: [by] };
  const order = `${nameOf(by)} ${low ? "ASC" : "DESC"} LIMIT ${rowsAsked(question)}`;
  return { select: [labelOf(main)], order, uses: [by] };
};

/** Number of rows asked for, as in "the three oldest" or "the top 5". */
function rowsAsked(question: string): number {
  const number = `(\\d{1,2}|${SMALL_NUMBERS.slice(1).join("|")})`;
  const extremes = `(?:${LOW}|${HIGH})`;
  const match = new RegExp(`\\b${number} (?:\\w+ )?${extremes}\\b|\\b${extremes} ${number}\\b`).exec(question);
  const written = match?.[1] ?? match?.[2] ?? "1";
  return SMALL_NUMBERS.includes(written) ? SMALL_NUMBERS.indexOf(written) + 1 : Number(written);
}

/** Matches questions for columns of the rows that satisfy the conditions. */
const lookUp: Shape = (draft) => {
  const { question, tables, words, main } = draft;
  const isNamed = (field: Field) => !isKey(field) && isFree(draft, field) && scoreField(field, words) === 1;
  const named = [main, ...tables].map((table) => fieldsOf(table).filter(isNamed)).find((fields) => fields.length > 0);
  const select = named?.slice(0, 2) ?? [labelOf(main)];
  return { select, distinct: /\b(?:different|distinct|unique)\b/.test(question) };
};

const SHAPES: readonly Shape[] = [countByGroup, countDifferent, quantity, count, aggregate, extreme, lookUp];

// SQL

function compose(draft: QueryDraft): string {
  const { select, uses = [], distinct, group, order } = SHAPES.map((shape) => shape(draft)).find((query) => query)!;
  const fields = [
    ...select.filter((item) => typeof item !== "string"),
    ...uses,
    ...draft.conditions.map((c) => c.field),
  ];
  return [
    `SELECT ${distinct ? "DISTINCT " : ""}${select.map((item) => (typeof item === "string" ? item : nameOf(item))).join(", ")}`,
    `FROM ${joined(draft.main, fields)}`,
    draft.conditions.length > 0 && `WHERE ${draft.conditions.map(({ sql }) => sql).join(" AND ")}`,
    group && `GROUP BY ${nameOf(group)}`,
    order && `ORDER BY ${order}`,
  ]
    .filter(Boolean)
    .join(" ");
}

/** The FROM clause: the main table and the others, each joined by a foreign key to an earlier one. */
function joined(main: ParsedDescription, fields: readonly Field[]): string {
  const from = [main];
  const parts = [quoteName(main.name)];
  for (const table of new Set(fields.map((field) => field.table))) {
    if (from.includes(table)) continue;
    const link = from.flatMap((other) => linksBetween(other, table))[0];
    from.push(table);
    parts.push(`JOIN ${quoteName(table.name)}${link ? ` ON ${link}` : ""}`);
  }
  return parts.join(" ");
}

function linksBetween(a: ParsedDescription, b: ParsedDescription): string[] {
  const from = (child: ParsedDescription, parent: ParsedDescription) =>
    fieldsOf(child).flatMap(({ column }) =>
      column.references?.table === parent.name
        ? [`${nameOf({ table: child, column })} = ${quoteName(parent.name)}.${quoteName(column.references.column)}`]
        : [],
    );
  return [...from(a, b), ...from(b, a)];
}

function nameOf({ table, column }: Field): string {
  return `${quoteName(table.name)}.${quoteName(column.name)}`;
}
