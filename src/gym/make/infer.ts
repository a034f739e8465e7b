// Describes a database that nobody has described: a world spec whose tables, columns and words are inferred, so that
// the question forms of generated worlds fit it.

import type { Cell } from "../sql/index.ts";
import type { World } from "../worlds/build.ts";
import type { ColumnSpec, TableSpec } from "../worlds/spec.ts";
import { categoryWords, dateWords, flagWords, numberPhrase, numberWords } from "./column-words.ts";
import { type Inferred, inferKind, type Kind } from "./kinds.ts";
import {
  columnPhrase,
  distinctPhrases,
  type Names,
  type Noun,
  referencePhrase,
  schemaWords,
  tableNouns,
  unclearPhrase,
  wordFor,
} from "./phrases.ts";
import type { FoundColumn, FoundSchema, FoundTable, Note, Reference } from "./schema.ts";
import { isPerson, singular, wordsIn } from "./words.ts";

/** Number of variants of a world, which differ in the phrasing of conditions. */
export const VARIANTS = 3;

/** What was inferred about a column, for the report. */
export interface ColumnReport {
  readonly table: string;
  readonly column: string;
  readonly kind: Kind | "reference";
  readonly phrase: string;
  readonly personal?: string;
}

export interface InferredWorlds {
  /** Worlds with the same tables and rows, but different words. */
  readonly variants: readonly World[];
  readonly columns: readonly ColumnReport[];
  readonly notes: readonly Note[];
}

interface Context {
  readonly schema: FoundSchema;
  readonly nouns: ReadonlyMap<string, Noun>;
  readonly words: ReadonlySet<string>;
  readonly kinds: ReadonlyMap<FoundColumn, Inferred>;
  /** Key columns that references use, by table. */
  readonly keys: ReadonlyMap<string, string>;
  readonly references: readonly Reference[];
  readonly phrases: ReadonlyMap<FoundColumn, string>;
}

/** Infers words and kinds, and makes the variants. */
export function inferWorlds(name: string, schema: FoundSchema, names: Names = {}): InferredWorlds {
  const { tables } = schema;
  const notes: Note[] = [];
  const keys = referencedKeys(schema, notes);
  const references = schema.references.filter(({ to, key }) => keys.get(to) === key);
  const kinds = new Map(tables.flatMap((table) => table.columns.map((column) => [column, inferKind(table, column)])));
  const nouns = withPairNouns(tableNouns(tables, names), schema, references, names);
  const words = schemaWords(tables);
  const phrases = new Map<FoundColumn, string>();
  const context: Context = { schema, nouns, words, kinds, keys, references, phrases };
  const columns: ColumnReport[] = [];
  for (const table of tables) {
    for (const column of table.columns) {
      const isReference = references.some((one) => one.table === table.name && one.column === column.name);
      const given = wordFor(names, `${table.name}.${column.name}`);
      const phrase = given ?? numberPhrase(columnPhrase(column, nouns.get(table.name)!, words), kinds.get(column)!);
      phrases.set(column, phrase);
      const isKey = keys.get(table.name) === column.name;
      const unclear =
        given === undefined && !isReference && !isKey
          ? unclearPhrase(phrase, kinds.get(column)!.kind === "date")
          : undefined;
      if (unclear !== undefined && !(kinds.get(column)!.kind in LEFT_OUT)) {
        kinds.set(column, { ...kinds.get(column)!, kind: "unclear" });
        notes.push({ name: `${table.name}.${column.name}`, reason: `its name is not understood: ${unclear}` });
      }
      const { kind, personal } = kinds.get(column)!;
      columns.push({
        table: table.name,
        column: column.name,
        kind: isReference ? "reference" : kind,
        phrase,
        ...(personal !== undefined && { personal }),
      });
      const reason = isReference ? undefined : LEFT_OUT[kind];
      if (reason && kind !== "unclear") notes.push({ name: `${table.name}.${column.name}`, reason });
    }
  }
  const variants = Array.from({ length: VARIANTS }, (_, variant) => {
    const made = tables.map((table) => tableSpec(table, context, variant));
    const spec = { name, topic: "", tables: made.map(({ spec }) => spec) };
    return { spec, rows: new Map(made.map(({ spec, rows }) => [spec.name, rows])) };
  });
  return { variants, columns, notes };
}

/** Kinds of columns that no question uses. */
const LEFT_OUT: Partial<Record<Kind, string>> = {
  empty: "it has no values",
  constant: "it has the same value everywhere",
  mixed: "it has values of several types, or binary data",
  unclear: "its name is not understood",
};

/** The key by which a table is referred to; references to its other keys are not used. */
function referencedKeys({ tables, references }: FoundSchema, notes: Note[]): Map<string, string> {
  const keys = new Map<string, string>();
  for (const { name, columns, count } of tables) {
    const used = references.filter(({ to }) => to === name).map(({ key }) => key);
    const most = [...new Set(used)].sort(
      (a, b) => used.filter((key) => key === b).length - used.filter((key) => key === a).length,
    )[0];
    const own = columns.find((column) => column.primary_key && column.nulls === 0 && column.distinct === count);
    const key = most ?? own?.name;
    if (key !== undefined) keys.set(name, key);
    for (const { table, column, key: other } of references.filter(({ to }) => to === name)) {
      if (other !== key)
        notes.push({
          name: `${table}.${column}`,
          reason: `its reference to ${name}.${other} is not used: others refer to ${name}.${key}`,
        });
    }
  }
  return keys;
}

/** Tables that only link two others are called pairs: "student-pet pair". */
function withPairNouns(
  nouns: Map<string, Noun>,
  { tables }: FoundSchema,
  references: readonly Reference[],
  names: Names,
): Map<string, Noun> {
  for (const table of tables) {
    if (wordFor(names, table.name) !== undefined) continue;
    const parents = parentsOfPair(table, references);
    if (!parents) continue;
    const [a, b] = parents.map((parent) => nouns.get(parent)!.one);
    const own = nouns.get(table.name)!.one;
    const isBare = table.columns.length <= 3 && !/(?:ing|ment|tion|ance|ship|al)$/.test(own);
    if (isBare || /^(?:has|have|is|in)\b| in /.test(own) || (own.includes(a!) && own.includes(b!)))
      nouns.set(table.name, { one: `${a}-${b} pair`, many: `${a}-${b} pairs` });
  }
  return nouns;
}

/** The two tables that a table links; undefined if it has other columns or links another number of tables. */
function parentsOfPair(table: FoundTable, references: readonly Reference[]): [string, string] | undefined {
  const own = references.filter((one) => one.table === table.name);
  const [a, b] = own;
  return own.length === 2 && a!.to !== b!.to && table.columns.length <= 6 ? [a!.to, b!.to] : undefined;
}

function tableSpec(table: FoundTable, context: Context, variant: number): { spec: TableSpec; rows: Cell[][] } {
  const { nouns, references, keys, kinds, words, schema } = context;
  const noun = nouns.get(table.name)!;
  const person = isPerson(noun.one);
  const rowWords = { one: noun.one, person };
  const usable = table.columns.filter((column) => {
    const { kind } = kinds.get(column)!;
    return isRef(column) || keys.get(table.name) === column.name || !(kind in LEFT_OUT);
  });
  function isRef(column: FoundColumn) {
    return references.some((one) => one.table === table.name && one.column === column.name);
  }
  const label = labelColumn(
    table,
    usable.filter((column) => !isRef(column)),
    kinds,
    noun,
    words,
  );
  const phrases = distinctPhrases(
    usable.map((column) => {
      const phrase = context.phrases.get(column)!;
      const isName = column === label && (phrase === noun.one || singular(phrase) === noun.one);
      return { name: column.name, phrase: isName ? "name" : phrase };
    }),
  );
  const specs: { readonly column: FoundColumn; readonly spec: ColumnSpec }[] = usable.flatMap((column, i) => {
    const inferred = kinds.get(column)!;
    const reference = references.find((one) => one.table === table.name && one.column === column.name);
    const isKey = keys.get(table.name) === column.name;
    const specs = [
      ...(reference ? referenceSpecs(column, reference, phrases[i]!) : []),
      ...(!reference || isKey ? columnSpecs(column, inferred, phrases[i]!) : []),
    ];
    return specs.map((spec) => ({ column, spec }));
  });

  function base(column: FoundColumn, phrase: string) {
    return { name: column.name, phrase, ...(column.nulls > 0 && { nulls: column.nulls / table.count }) };
  }

  function referenceSpecs(column: FoundColumn, { to }: Reference, full: string): ColumnSpec[] {
    const parent = nouns.get(to)!;
    const phrase = referencePhrase(column, parent, words);
    const isPair = noun.one.endsWith(" pair");
    const isSingle = column.distinct === table.count - column.nulls;
    const spec: ColumnSpec = {
      ...base(column, phrase),
      kind: "ref",
      table: to,
      where: variant === 1 ? `with the ${phrase} {v}` : `whose ${phrase} is {v}`,
      ...(!isSingle &&
        !isPair && {
          through: variant > 0 && phrase === parent.one ? "of {v}" : `whose ${phrase} is one of the {v}`,
        }),
      owned: !isSingle && !isPair,
    };
    // Questions may also use a code such as "EUR" itself, not only the row that it refers to.
    const values = table.rows.map((row) => row[column.index]!).filter((cell) => cell !== null);
    const isCode = values.every(
      (cell) => typeof cell === "string" && cell.length <= 20 && /^\S*[^\s\d]\S*$/.test(cell),
    );
    if (!isCode || isSingle || full === phrase) return [spec];
    return [spec, { ...base(column, full), ...categoryWords(full, false, variant, rowWords) } as ColumnSpec];
  }

  function columnSpecs(column: FoundColumn, inferred: Inferred, phrase: string): ColumnSpec[] {
    const own = base(column, phrase);
    const { kind, cast, whole, few } = inferred;
    const fact: ColumnSpec = { ...own, kind: "label", values: [], repeats: column.distinct < table.count };
    if (keys.get(table.name) === column.name) return [{ ...own, kind: "id" }, fact];
    if (column === label) return [fact];
    const category = (numeric: boolean): ColumnSpec => ({
      ...own,
      ...categoryWords(phrase, numeric, variant, rowWords),
    });
    switch (kind) {
      case "category":
        return [category(whole === true && cast === undefined)];
      case "flag":
        return [{ ...own, ...flagWords(wordsIn(column.name, words), inferred, rowWords) }];
      case "date":
        return [{ ...own, ...dateWords(phrase, wordsIn(column.name, words), rowWords) }];
      case "rank":
        return few ? [category(cast === undefined)] : [fact];
      case "year":
      case "number":
      case "money": {
        const number: ColumnSpec = {
          ...own,
          kind: whole ? "integer" : "real",
          low: 0,
          high: 0,
          ...numberWords(phrase, kind, rowWords),
          ...(cast && { cast }),
        };
        if (cast) return [fact, number];
        return few ? [number, category(true)] : [number];
      }
      default:
        return [fact];
    }
  }

  // Rows without a name are identified by their key.
  const rowName = label?.name ?? (noun.one.endsWith(" pair") ? undefined : keys.get(table.name));
  const relation = relationOf(table, context, variant);
  const rows = table.rows.map((row) =>
    specs.map(({ column, spec }) => {
      const cell = row[column.index]!;
      if (cell === null) return null;
      if (spec.kind === "ref") return keyCells(spec.table).get(String(cell)) ?? cell;
      return spec.cast ? Number(cell) : cell;
    }),
  );
  function keyCells(to: string): ReadonlyMap<string, Cell> {
    return parentKeys(schema, to, keys.get(to)!);
  }
  return {
    spec: {
      name: table.name,
      ...noun,
      rows: table.count,
      ...(rowName !== undefined && { label: rowName }),
      ...(person && { person }),
      called: person ? "{v}" : `the ${noun.one} {v}`,
      columns: specs.map(({ spec }) => spec),
      ...(relation && { relation }),
    },
    rows,
  };
}

const keyMaps = new WeakMap<FoundTable, Map<string, Map<string, Cell>>>();

/** A table's keys by their text, since a reference may store the number 1 as the text "1". */
function parentKeys({ tables }: FoundSchema, to: string, key: string): ReadonlyMap<string, Cell> {
  const table = tables.find(({ name }) => name === to)!;
  const known = keyMaps.get(table) ?? new Map<string, Map<string, Cell>>();
  keyMaps.set(table, known);
  let map = known.get(key);
  if (!map) {
    const { index } = table.columns.find(({ name }) => name === key)!;
    map = new Map(table.rows.map((row) => [String(row[index]), row[index]!]));
    known.set(key, map);
  }
  return map;
}

/** The verb of a table that links two others. */
function relationOf(table: FoundTable, { references }: Context, variant: number): TableSpec["relation"] {
  if (!parentsOfPair(table, references)) return undefined;
  const [a, b] = references.filter((one) => one.table === table.name).map(({ column }) => column);
  const verb = /^has(?![a-z])/i.test(table.name) ? "have" : "are linked to";
  return verb === "have" || variant !== 1 ? { subject: a!, verb, object: b! } : { subject: b!, verb, object: a! };
}

/** The column that names a row, if there is one. */
function labelColumn(
  table: FoundTable,
  columns: readonly FoundColumn[],
  kinds: ReadonlyMap<FoundColumn, Inferred>,
  noun: Noun,
  words: ReadonlySet<string>,
): FoundColumn | undefined {
  const scored = columns.flatMap((column) => {
    const { kind } = kinds.get(column)!;
    if (kind !== "name" || column.nulls > 0 || column.distinct < 0.9 * table.count) return [];
    const all = wordsIn(column.name, words).map((word) => word.toLowerCase());
    const last = all.at(-1)!;
    const own = noun.one.split(" ").at(-1);
    const isContact =
      /\b(?:email|phone|telephone|fax|url|website|address|street|password|login|picture|image|file)\b/.test(
        all.join(" "),
      );
    if (isContact || !table.rows.some((row) => /\p{L}{2}/u.test(String(row[column.index])))) return [];
    const score =
      (/^(?:name|title)$/.test(last) ? 10 : 0) +
      (last === "name" && all.length === 1 ? 5 : 0) +
      (last === "name" && /^(?:first|middle|given|nick|user|file)$/.test(all.at(-2) ?? "") ? -7 : 0) +
      (last === "name" && /^(?:last|family)$/.test(all.at(-2) ?? "") ? -5 : 0) +
      (singular(last) === own || singular(all.join(" ")) === noun.one ? 8 : 0) +
      (/^(?:description|label|caption|model|make|theme|party)$/.test(last) ? 4 : 0) +
      (/^(?:code|abbreviation|id|key)$/.test(last) ? -3 : 0) +
      (all.length > 1 && last === "name" && all.some((word) => word === own) ? 4 : 0) +
      (column.distinct === table.count ? 1 : 0) -
      0.1 * column.index;
    return [{ column, score }];
  });
  const [best] = scored.sort((a, b) => b.score - a.score);
  return best && best.score > 2 ? best.column : undefined;
}
