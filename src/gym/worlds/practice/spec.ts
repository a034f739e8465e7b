// Generates a random spec from a seed: a schema with its own names, and the phrases to ask about it.
import { SqlEnvError } from "../../../errors.ts";
import { type Random, random } from "../../../random.ts";
import { plural } from "../english.ts";
import { inventWord, type Words, wordPools } from "../lexicon/words.ts";
import type { ColumnSpec, LabelColumn, TableSpec, WorldSpec } from "../spec.ts";
import { type Drawing, drawCategory, drawDate, drawNumber } from "./columns.ts";
import { drawRefs, linkNoun, relationOf } from "./links.ts";
import { columnName, drawStyle, isHeldOut, type NameStyle, tableName } from "./names.ts";
import { addressMaker, codeMaker, type LabelKind, labels } from "./values.ts";

export interface PracticeWorldOptions {
  /** Share of names and values that are invented words. @default 0.35 */
  readonly inventedShare?: number;
}

/** A table's noun and the kind of its rows. */
export interface Noun {
  readonly one: string;
  readonly many: string;
  readonly nature: "person" | "place" | "thing";
}

/** The state from which the tables of a world are sampled. */
export interface Sketch {
  readonly r: Random;
  readonly words: Words;
  readonly style: NameStyle;
  readonly inventedShare: number;
  readonly tables: TableSpec[];
  readonly nouns: Map<TableSpec, Noun>;
}

let pools: Words | undefined;

/** The words that practice worlds may use as names: all except names in the unseen databases. */
export function practiceWords(): Words {
  pools ??= wordPools((name) => !isHeldOut(name));
  return pools;
}

/** Generates the schema of the world for a seed. */
export function practiceWorld(seed: number | string, { inventedShare = 0.35 }: PracticeWorldOptions = {}): WorldSpec {
  for (let attempt = 0; ; attempt++) {
    try {
      return drawWorld(seed, attempt, inventedShare);
    } catch (error) {
      if (!(error instanceof NoName) || attempt === 9) throw error;
    }
  }
}

function drawWorld(seed: number | string, attempt: number, inventedShare: number): WorldSpec {
  // 7 and "7" are the same seed, because the seed becomes part of names.
  const r = attempt === 0 ? random("practice", String(seed)) : random("practice", String(seed), attempt);
  const sketch: Sketch = {
    r,
    words: practiceWords(),
    style: drawStyle(r),
    inventedShare,
    tables: [],
    nouns: new Map(),
  };
  const count = r.pickWeighted([
    [1, 6],
    [2, 20],
    [3, 26],
    [4, 22],
    [5, 14],
    [6, 8],
    [7, 4],
  ] as const);
  for (let i = 0; i < count; i++) drawTable(sketch);
  const { tables } = sketch;
  return {
    name: databaseName(sketch, seed),
    topic: tables.length === 1 ? tables[0]!.many : `${tables[0]!.many} and ${tables[1]!.many}`,
    tables,
  };
}

/** All names in a world: its own, and those of its tables and columns. */
export function namesOf(spec: WorldSpec): string[] {
  return [spec.name, ...spec.tables.flatMap((table) => [table.name, ...table.columns.map((column) => column.name)])];
}

function databaseName({ r, words, inventedShare, tables }: Sketch, seed: number | string): string {
  const noun = until(() => {
    const word = r.chance(inventedShare) ? inventWord(r) : r.chance(0.5) ? tables[0]!.one : r.pick(words.things);
    const ending = r.chance(0.4)
      ? ` ${r.pick("registry records db archive data log house world book survey".split(" "))}`
      : "";
    const name = `${word}${ending}`.replaceAll(" ", "_");
    return isHeldOut(name) ? undefined : name;
  });
  const tail = String(seed).replace(/[^A-Za-z0-9]+/g, "_");
  return `${noun}_${tail}`;
}

/** Retries until there is a result. Attempts rarely fail; the limit only prevents an endless loop. */
function until<T>(draw: () => T | undefined): T {
  for (let attempt = 0; attempt < 1000; attempt++) {
    const drawn = draw();
    if (drawn !== undefined) return drawn;
  }
  throw new NoName();
}

/**
 * Thrown if a world cannot be completed, for example if two table names abbreviate to the same; happens once in tens of
 * thousands of worlds.
 */
class NoName extends SqlEnvError {
  constructor() {
    super("practice_world", { what: "no acceptable name was drawn", remedy: "report the seed" });
  }
}

function drawNoun({ r, words, inventedShare, tables }: Sketch): Noun {
  return until(() => {
    const nature = r.pickWeighted<Noun["nature"]>([
      ["person", 25],
      ["place", 22],
      ["thing", 53],
    ]);
    const pool = { person: words.people, place: words.places, thing: words.things }[nature];
    const one = r.chance(inventedShare) ? inventedNoun(r, pool) : realNoun(r, words, pool);
    const many = plural(one);
    const isTaken = tables.some((table) => table.one === one || table.many === many || table.one === many);
    return isTaken || isHeldOut(one) || isHeldOut(many) ? undefined : { one, many, nature };
  });
}

function inventedNoun(r: Random, pool: readonly string[]): string {
  if (r.chance(0.8)) return inventWord(r);
  return `${inventWord(r)} ${r.pick(pool)}`;
}

function realNoun(r: Random, words: Words, pool: readonly string[]): string {
  const noun = r.pick(pool);
  if (noun.includes(" ") || r.chance(0.78)) return noun;
  const before = r.pick(r.chance(0.65) ? words.things : words.adjectives);
  return before.includes(" ") || before === noun ? noun : `${before} ${noun}`;
}

function drawTable(sketch: Sketch): void {
  const { r, style, tables, nouns, words, inventedShare } = sketch;
  const drawn = drawNoun(sketch);
  const refs = drawRefs(sketch, drawn);
  const isLink = refs.length > 1 && r.chance(0.4);
  const noun = (isLink && linkNoun(sketch, refs)) || drawn;
  const person = noun.nature === "person" && !isLink;
  const name = until(() => {
    const spelled = tableName(r, style, noun.one, noun.many);
    const isTaken = tables.some((table) => same(table.name, spelled));
    return isTaken || isHeldOut(spelled) || spelled.length < 2 ? undefined : spelled;
  });
  const rows = 4 + Math.floor(36 * r.next() ** 1.6);
  const drawing: Drawing = { r, words, style, inventedShare, person };

  const columns: ColumnSpec[] = [];
  const add = (column: ColumnSpec | undefined) => {
    if (column && !columns.some((other) => clashes(other, column))) columns.push(column);
  };
  // Nothing references link tables, so some of them have no key.
  const hasId = !isLink || r.chance(0.5);
  if (hasId) add(idColumn(sketch, noun));
  const label = isLink ? undefined : drawLabel(sketch, noun, rows, columns);
  add(label);
  const refsFirst = r.chance(0.4);
  if (refsFirst) refs.forEach(add);
  for (const draw of drawKinds(r, isLink)) add(draw(drawing));
  if (!isLink && columns.length < 3) add(until(() => drawNumber(drawing)));
  if (!isLink && r.chance(0.12)) add(codeColumn(sketch, rows));
  if (!refsFirst) refs.forEach(add);

  const table: TableSpec = {
    name,
    one: noun.one,
    many: noun.many,
    ...(label ? { label: label.name } : {}),
    rows: isLink ? Math.max(rows, 8) : rows,
    columns: columns.map((column) => withNulls(r, column, label)),
    ...(person ? { person } : {}),
    ...(label && !person ? calledBy(r, noun) : {}),
    ...(isLink ? relationOf(sketch, refs) : {}),
  };
  tables.push(table);
  nouns.set(table, noun);
}

/** Chooses the columns of a table besides key, label and references, in random order. */
function drawKinds(r: Random, isLink: boolean) {
  const numbers = isLink
    ? r.int(0, 1)
    : r.pickWeighted([
        [0, 1],
        [1, 5],
        [2, 5],
        [3, 2],
      ] as const);
  const categories = isLink
    ? r.int(0, 1)
    : r.pickWeighted([
        [0, 2],
        [1, 6],
        [2, 4],
        [3, 1],
      ] as const);
  const dates = r.chance(isLink ? 0.15 : 0.3) ? 1 : 0;
  return r.shuffle([
    ...Array.from({ length: numbers }, () => drawNumber),
    ...Array.from({ length: categories }, () => drawCategory),
    ...Array.from({ length: dates }, () => drawDate),
  ] as ((drawing: Drawing) => ColumnSpec | undefined)[]);
}

/** Whether two columns of a table could be confused, by name or in a question. */
function clashes(a: ColumnSpec, b: ColumnSpec): boolean {
  if (same(a.name, b.name) || same(a.phrase, b.phrase)) return true;
  const [saidA, saidB] = [sayings(a), sayings(b)];
  return saidA.some((saying) => saidB.includes(saying));
}

/** Phrases about a row that use a column without naming it. */
function sayings(column: ColumnSpec): string[] {
  if (column.kind === "integer" || column.kind === "real") {
    return [
      ...(column.superlatives ?? []),
      ...(column.comparatives ?? []).map((words) => `${words} ${column.unit ?? ""}`),
    ];
  }
  if (column.kind === "date") return [column.where, ...(column.superlatives ?? [])];
  if (column.kind === "category") return column.before ? column.values.slice() : [];
  return [];
}

function same(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

function withNulls(r: Random, column: ColumnSpec, label: LabelColumn | undefined): ColumnSpec {
  if (column.kind === "id" || column.kind === "ref" || column.name === label?.name) return column;
  return r.chance(0.1) ? { ...column, nulls: r.int(8, 25) / 100 } : column;
}

function idColumn({ r, style }: Sketch, { one }: Noun): ColumnSpec {
  const name = columnName(r, style, style.id.replace("{one}", one));
  if (isHeldOut(name)) return { kind: "id", name: columnName(r, style, "id"), phrase: "id" };
  return { kind: "id", name, phrase: /no$|nr$|number$/.test(style.id) ? `${one} number` : "id" };
}

const LABEL_WORDS: Readonly<Record<Noun["nature"], readonly (readonly [string, number])[]>> = {
  person: [
    ["name", 10],
    ["full name", 4],
    ["{one} name", 3],
    ["{one}", 4],
    ["nickname", 1],
    ["surname", 1],
    ["alias", 1],
    ["signature", 0.5],
  ],
  place: [
    ["name", 10],
    ["{one} name", 5],
    ["{one}", 4],
    ["title", 1],
    ["label", 1],
    ["designation", 0.5],
    ["short name", 1],
    ["sign", 0.5],
  ],
  thing: [
    ["name", 10],
    ["title", 6],
    ["{one} name", 5],
    ["{one}", 4],
    ["label", 2],
    ["heading", 1],
    ["{one} title", 2],
    ["designation", 1],
    ["caption", 1],
    ["model name", 1],
    ["description", 1],
    ["tag", 0.5],
    ["inscription", 0.5],
  ],
};

function drawLabel(sketch: Sketch, noun: Noun, rows: number, columns: readonly ColumnSpec[]): LabelColumn {
  const { r, words, style, inventedShare } = sketch;
  const kind = r.pickWeighted<LabelKind>(
    noun.nature === "person"
      ? [
          ["person", 9],
          ["invented", 1],
        ]
      : noun.nature === "place"
        ? [
            ["place", 8],
            ["invented", 2],
            ["person", 0.3],
            ["code", 0.5],
          ]
        : [
            ["title", 7],
            ["invented", 2],
            ["code", 1.5],
            ["place", 0.5],
          ],
  );
  const [name, phrase] = until(() => {
    const template =
      kind === "code"
        ? r.pick(["code", "{one} code", "serial number", "reference", "tag"])
        : r.pickWeighted(LABEL_WORDS[noun.nature]);
    const wording = r.chance(inventedShare / 6) ? inventWord(r) : template;
    const drawn = columnName(r, style, wording.replace("{one}", noun.one));
    const isFree = !isHeldOut(drawn) && !columns.some((column) => same(column.name, drawn));
    return isFree ? [drawn, wording === "{one}" ? "name" : wording.replace("{one} ", "")] : undefined;
  });
  return { kind: "label", name, phrase, values: labels(r, words, kind, rows, inventedShare) };
}

function codeColumn({ r, style }: Sketch, rows: number): LabelColumn | undefined {
  const isAddress = r.chance(0.25);
  const phrase = isAddress
    ? r.pick(["email", "email address", "contact address"])
    : r.pick(["code", "serial number", "badge number", "registration number", "barcode", "license plate"]);
  const name = columnName(r, style, phrase);
  if (isHeldOut(name)) return undefined;
  const [draw, values] = [isAddress ? addressMaker(r) : codeMaker(r), new Set<string>()];
  while (values.size < rows) values.add(draw());
  return { kind: "label", name, phrase, values: [...values] };
}

function calledBy(r: Random, { one }: Noun): Pick<TableSpec, "called"> {
  return r.pickWeighted<Pick<TableSpec, "called">>([
    [{}, 5],
    [{ called: `the ${one} {v}` }, 4],
    [{ called: `${one} {v}` }, 1],
  ]);
}
