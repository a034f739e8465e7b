// Describes a database that nobody has described: a world spec whose tables, columns and words are inferred, so that
// the question forms of generated worlds fit it.

import type { Cell } from "../sql/index.ts";
import type { World } from "../worlds/build.ts";
import { an, plural } from "../worlds/english.ts";
import { SPOKEN_QUANTITIES } from "../worlds/lexicon/columns.ts";
import { type Words, wordPools } from "../worlds/lexicon/words.ts";
import type { ColumnSpec, TableSpec } from "../worlds/spec.ts";
import { type Inferred, inferKind, type Kind } from "./kinds.ts";
import { columnPhrase, distinctPhrases, type Noun, referencePhrase, schemaWords, tableNouns } from "./phrases.ts";
import type { FoundColumn, FoundSchema, FoundTable, Note, Reference } from "./schema.ts";
import { isPerson, isPlace, isPlural, singular, wordsIn } from "./words.ts";

/** Phrasings of conditions differ between variants of a world. */
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
  /** The same tables and rows, with different words. */
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
}

/** Infers words and kinds, and makes the variants. */
export function inferWorlds(name: string, schema: FoundSchema): InferredWorlds {
  const { tables } = schema;
  const notes: Note[] = [];
  const keys = referencedKeys(schema, notes);
  const references = schema.references.filter(({ to, key }) => keys.get(to) === key);
  const kinds = new Map(tables.flatMap((table) => table.columns.map((column) => [column, inferKind(table, column)])));
  const nouns = withPairNouns(tableNouns(tables), schema, references);
  const context: Context = { schema, nouns, words: schemaWords(tables), kinds, keys, references };
  const columns: ColumnReport[] = [];
  for (const table of tables) {
    for (const column of table.columns) {
      const inferred = kinds.get(column)!;
      const isReference = references.some((one) => one.table === table.name && one.column === column.name);
      const { kind, personal } = inferred;
      const phrase = columnPhrase(column, nouns.get(table.name)!, context.words);
      columns.push({
        table: table.name,
        column: column.name,
        kind: isReference ? "reference" : kind,
        phrase,
        ...(personal !== undefined && { personal }),
      });
      const reason = isReference ? undefined : LEFT_OUT[kind];
      if (reason) notes.push({ name: `${table.name}.${column.name}`, reason });
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
): Map<string, Noun> {
  for (const table of tables) {
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

/** The two tables that a table links, if it does nothing else. */
function parentsOfPair(table: FoundTable, references: readonly Reference[]): [string, string] | undefined {
  const own = references.filter((one) => one.table === table.name);
  const [a, b] = own;
  return own.length === 2 && a!.to !== b!.to && table.columns.length <= 6 ? [a!.to, b!.to] : undefined;
}

function tableSpec(table: FoundTable, context: Context, variant: number): { spec: TableSpec; rows: Cell[][] } {
  const { nouns, references, keys, kinds, words, schema } = context;
  const noun = nouns.get(table.name)!;
  const person = isPerson(noun.one);
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
  );
  const phrases = distinctPhrases(
    usable.map((column) => {
      const phrase = columnPhrase(column, noun, words);
      const isName = column === label && (phrase === noun.one || singular(phrase) === noun.one);
      return { name: column.name, phrase: isName ? "name" : phrase };
    }),
  );
  const specs: { readonly column: FoundColumn; readonly spec: ColumnSpec }[] = usable.flatMap((column, i) => {
    const inferred = kinds.get(column)!;
    const reference = references.find((one) => one.table === table.name && one.column === column.name);
    const specs = reference
      ? referenceSpecs(table, column, reference, phrases[i]!)
      : columnSpecs(table, column, inferred, phrases[i]!, column === label);
    return specs.map((spec) => ({ column, spec }));
  });

  function base(column: FoundColumn, phrase: string) {
    return { name: column.name, phrase, ...(column.nulls > 0 && { nulls: column.nulls / table.count }) };
  }

  function referenceSpecs(table: FoundTable, column: FoundColumn, { to }: Reference, full: string): ColumnSpec[] {
    const phrase = referencePhrase(column, nouns.get(to)!, words);
    const parent = schema.tables.find(({ name }) => name === to)!;
    const isPair = parentsOfPair(table, references) !== undefined;
    const isSingle = column.distinct === table.count - column.nulls;
    const spec: ColumnSpec = {
      ...base(column, phrase),
      kind: "ref",
      table: to,
      where: variant === 1 ? `with the ${phrase} {v}` : `whose ${phrase} is {v}`,
      through: `whose ${phrase} is one of the {v}`,
      owned: !isSingle && !(isPair && noun.one.endsWith(" pair")),
    };
    const texts = table.rows.map((row) => row[column.index]).filter((cell) => cell !== null);
    const isCode = texts.every((cell) => typeof cell === "string" && /^\S{1,20}$/.test(cell)) && !isSingle;
    const hasName = labelColumn(parent, parent.columns, kinds, nouns.get(to)!) !== undefined;
    if (!isCode || (hasName && full === phrase)) return [spec];
    return [spec, { ...base(column, full), ...categoryOf(full, false) }];
  }

  function columnSpecs(
    table: FoundTable,
    column: FoundColumn,
    inferred: Inferred,
    phrase: string,
    isLabel: boolean,
  ): ColumnSpec[] {
    const own = base(column, phrase);
    const { kind, cast, whole, few } = inferred;
    const fact: ColumnSpec = { ...own, kind: "label", values: [], repeats: column.distinct < table.count };
    if (isLabel) return [fact];
    if (keys.get(table.name) === column.name) return [{ ...own, kind: "id" }, fact];
    switch (kind) {
      case "id":
      case "name":
      case "text":
        return [fact];
      case "category":
        return [{ ...own, ...categoryOf(phrase, whole !== undefined && cast === undefined) }];
      case "flag":
        return [{ ...own, ...flagOf(column, phrase, inferred) }];
      case "date":
        return [dateOf(column, own)];
      case "rank":
        return few ? [{ ...own, ...categoryOf(phrase, cast === undefined) }] : [fact];
      case "year":
      case "number":
      case "money": {
        const number: ColumnSpec = {
          ...own,
          kind: whole ? "integer" : "real",
          low: 0,
          high: 0,
          ...numberWords(phrase, kind, person),
          ...(cast && { cast }),
        };
        if (cast) return [fact, number];
        return few ? [number, { ...own, ...categoryOf(phrase, true) }] : [number];
      }
      default:
        return [];
    }
  }

  function categoryOf(phrase: string, numeric: boolean) {
    const counted = phrase.startsWith("number of ") ? phrase.slice("number of ".length) : undefined;
    const one = counted?.split(" ").map((word, i, all) => (i === all.length - 1 ? singular(word) : word));
    const place = /(?:^| )(?:country|city|state|hometown|home town|region|continent|county|district|province)$/.test(
      phrase,
    );
    const where = counted
      ? `with {v} ${counted}`
      : variant === 0
        ? `whose ${phrase} is {v}`
        : place && phrase.split(" ").length === 1 && (person || isPlace(noun.one)) && variant === 2
          ? `${person ? "from" : "in"} {v}`
          : `with the ${phrase} {v}`;
    return {
      kind: "category" as const,
      values: [],
      plural: pluralPhrase(phrase),
      where,
      ...(one && { words: { "1": `with 1 ${one.join(" ")}` } }),
      ...(numeric && { numeric }),
    };
  }

  function flagOf(column: FoundColumn, phrase: string, { yes, no }: Inferred) {
    const parts = wordsIn(column.name, words).filter((word) => word !== "yn");
    const who = person ? "who" : "that";
    const [first, ...rest] = parts;
    const own = rest.length > 0 && first === noun.one ? rest : parts;
    const said = own.join(" ").toLowerCase();
    const [y, n] = [String(yes), String(no)];
    const states =
      first === "is" || first === "was"
        ? [`${who} are ${rest.join(" ")}`, `${who} are not ${rest.join(" ")}`]
        : first === "has" || first === "have"
          ? [`${who} have ${rest.join(" ")}`, `${who} do not have ${rest.join(" ")}`]
          : own.length === 1 && /(?:ed|ive|able)$/.test(said)
            ? [`${who} are ${said}`, `${who} are not ${said}`]
            : undefined;
    const spoken = /^(?:is|has|was|have|if|can)$/.test(first ?? "") ? `"${said}" value` : phrase.replace(/ yn$/, "");
    return {
      kind: "category" as const,
      values: [],
      phrase: spoken,
      plural: pluralPhrase(spoken),
      where: variant === 1 ? `with the ${spoken} {v}` : `whose ${spoken} is {v}`,
      ...(states && { words: { [y]: states[0]!, [n]: states[1]! } }),
      ...(typeof yes === "number" && { numeric: true }),
    };
  }

  function dateOf(column: FoundColumn, own: { readonly name: string; readonly phrase: string }): ColumnSpec {
    const parts = wordsIn(column.name, words).map((word) => word.toLowerCase());
    const participle =
      parts.length === 2 &&
      parts.find((word) => /^(?!need|speed)\w{3,}ed$|^(?:born|built|sold|sent|held|paid)$/.test(word));
    const other = parts.find((word) => word !== participle);
    if (participle && /^(?:date|at|on|time|day)$/.test(other ?? "")) {
      const by = person && participle === "born" ? "born" : participle;
      return {
        ...own,
        phrase: `date ${by}`,
        kind: "date",
        from: "",
        to: "",
        where: `${by} in {v}`,
        ask: `When was {x} ${by}?`,
      };
    }
    const birth = person && /^(?:date of birth|birth date|birthday|birthdate)$/.test(own.phrase);
    return {
      ...own,
      kind: "date",
      from: "",
      to: "",
      where: birth ? "born in {v}" : `with ${an(own.phrase)} in {v}`,
      ...(birth && { superlatives: ["youngest", "oldest"] as const }),
    };
  }

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
      ...(label && { label: label.name }),
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
): FoundColumn | undefined {
  const scored = columns.flatMap((column) => {
    const { kind } = kinds.get(column)!;
    if (kind !== "name" || column.nulls > 0 || column.distinct < 0.9 * table.count) return [];
    const all = wordsIn(column.name).map((word) => word.toLowerCase());
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

const POOLS: Words = wordPools();
const SUMMABLE = new Set([...POOLS.amounts, ...POOLS.counts]);

/** Quantities whose adjectives are understood without a unit and about anything. */
const SPEAKABLE = new Set(["age", "weight", "height", "length", "width", "depth", "speed", "price", "duration"]);

function numberWords(phrase: string, kind: Kind, person: boolean) {
  if (kind === "year") {
    return {
      year: true,
      summable: false,
      comparatives: [`with ${an(phrase)} after`, `with ${an(phrase)} before`] as const,
    };
  }
  const last = phrase.split(" ").at(-1)!;
  const isLevel =
    /\b(?:average|mean|rate|ratio|percentage|percent|age|year|score|rating|share|maximum|minimum|per)\b/.test(phrase);
  const summable =
    !isLevel &&
    (phrase.startsWith("number of ") ||
      SUMMABLE.has(phrase) ||
      SUMMABLE.has(last) ||
      SUMMABLE.has(plural(last)) ||
      (kind === "money" && !/price|salary|wage|gdp|gnp/i.test(phrase)) ||
      isPlural(last));
  const line = SPOKEN_QUANTITIES.trim()
    .split("\n")
    .find((one) => one.startsWith(`${phrase} `));
  if (!line || !SPEAKABLE.has(phrase)) return { summable };
  const [, superlatives = "", comparatives = ""] = line.split("|").map((part) => part.trim());
  const isDear = phrase === "price";
  if (isDear && person) return { summable };
  return {
    summable: summable && !["age", "height", "width", "depth", "speed", "price"].includes(phrase),
    superlatives: superlatives.split(", ") as [string, string],
    comparatives: comparatives.split(", ") as [string, string],
    ...(phrase === "age" && person && { ask: "How old is {x}?" }),
  };
}

function pluralPhrase(phrase: string): string {
  return isPlural(phrase.split(" ").at(-1)!) ? phrase : plural(phrase);
}
