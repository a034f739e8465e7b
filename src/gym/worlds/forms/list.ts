// Questions that look up or list rows of one table.
import type { Random } from "../../../random.ts";
import { quoteName, quoteText } from "../../sql/index.ts";
import type { World } from "../build.ts";
import { an, plural } from "../english.ts";
import {
  cells,
  columnSql,
  datesOf,
  factsOf,
  isFull,
  type Labelled,
  labelledTables,
  maybePick,
  numbersOf,
  uniqueLabels,
  valueSql,
} from "../inspect-world.ts";
import { asksFor, called, extremesOf, pluralOf, predicate, type Restriction, rowOf, rowsOf } from "../phrases.ts";
import { compared, either, range, sinceDay, someCategory, someNumber, someYear, without } from "../restrictions.ts";
import type { TableSpec } from "../spec.ts";
import { draft, type Form, type Make } from "./form.ts";

const lookUp: Make = (world, r) => {
  const { table, label } = r.pick(labelledTables(world));
  const column = maybePick(r, factsOf(table));
  const value = maybePick(r, uniqueLabels(world, { table, label }));
  if (!column || value === undefined) return null;
  return draft(
    r,
    asksFor(table, column, called(table, value)),
    `SELECT ${columnSql(column)} FROM ${quoteName(table.name)} WHERE ${columnSql(label)} = ${quoteText(value)}`,
  );
};

const lookUpTwo: Make = (world, r) => {
  const { table, label } = r.pick(labelledTables(world));
  const [a, b] = r.sample(
    factsOf(table).filter((column) => isFull(world, table, column)),
    2,
  );
  const value = maybePick(r, uniqueLabels(world, { table, label }));
  if (!a || !b || value === undefined) return null;
  const x = called(table, value);
  return draft(
    r,
    [
      `What are the ${a.phrase} and ${b.phrase} of ${x}?`,
      `Give the ${a.phrase} and the ${b.phrase} of ${x}.`,
      `Show me the ${a.phrase} and ${b.phrase} of ${x}.`,
      table.person && `What are ${x}'s ${a.phrase} and ${b.phrase}?`,
    ],
    `SELECT ${columnSql(a)}, ${columnSql(b)} FROM ${quoteName(table.name)} WHERE ${columnSql(label)} = ${quoteText(value)}`,
  );
};

/** Asks which row has a given value that only one row has. */
const lookUpLabel: Make = (world, r) => {
  const { table, label } = r.pick(labelledTables(world));
  const column = maybePick(
    r,
    table.columns.filter(({ kind, name }) => kind === "label" && name !== label.name),
  );
  const value = column && maybePick(r, cells(world, table, column));
  if (!column || value === null || value === undefined) return null;
  return draft(
    r,
    [
      `Which ${table.one} has the ${column.phrase} ${value}?`,
      `What is the ${label.phrase} of the ${table.one} with the ${column.phrase} ${value}?`,
      `Find the ${label.phrase} of the ${table.one} whose ${column.phrase} is ${value}.`,
    ],
    `SELECT ${columnSql(label)} FROM ${quoteName(table.name)} WHERE ${columnSql(column)} = ${valueSql(value)}`,
  );
};

/** Phrasings that ask for the labels of rows under the restrictions. */
export function listPhrasings(
  { table, label }: Labelled,
  ...restrictions: readonly Restriction[]
): (string | undefined | false)[] {
  const rows = rowsOf(table, ...restrictions);
  const labels = plural(label.phrase);
  const words = restrictions.length === 1 && !restrictions[0]!.before ? predicate(restrictions[0]!.after) : undefined;
  return [
    words && `Which ${table.many} ${words}?`,
    words && `Which ${table.many} ${words}?`,
    `What are the ${labels} of the ${rows}?`,
    `List the ${labels} of all ${rows}.`,
    `Show the ${labels} of the ${rows}.`,
    table.person ? `Who are the ${rows}?` : `Name the ${rows}.`,
  ];
}

/** Makes a form that lists labels under one restriction. */
function listing(restrict: (world: World, table: TableSpec, r: Random) => Restriction | undefined): Make {
  return (world, r) => {
    const { table, label } = r.pick(labelledTables(world));
    const restriction = restrict(world, table, r);
    if (!restriction) return null;
    return draft(
      r,
      listPhrasings({ table, label }, restriction),
      `SELECT ${columnSql(label)} FROM ${quoteName(table.name)} WHERE ${restriction.sql}`,
    );
  };
}

const listBoth: Make = (world, r) => {
  const { table, label } = r.pick(labelledTables(world));
  const first = someCategory(world, table, r);
  const second =
    first && (r.chance(0.6) ? someNumber(world, table, r) : someCategory(world, table, r, { except: first.column }));
  if (!first || !second) return null;
  return draft(
    r,
    listPhrasings({ table, label }, first, second),
    `SELECT ${columnSql(label)} FROM ${quoteName(table.name)} WHERE ${first.sql} AND ${second.sql}`,
  );
};

/** Lists labels and one more column under a restriction. */
const listTwo: Make = (world, r) => {
  const { table, label } = r.pick(labelledTables(world));
  const restriction = r.chance(0.7) ? someCategory(world, table, r) : someNumber(world, table, r);
  const column = maybePick(
    r,
    factsOf(table).filter((fact) => fact.name !== restriction?.column && isFull(world, table, fact)),
  );
  if (!column || !restriction) return null;
  const [rows, labels, values] = [rowsOf(table, restriction), plural(label.phrase), pluralOf(column)];
  return draft(
    r,
    [
      `What are the ${labels} and ${values} of the ${rows}?`,
      `List the ${labels} and ${values} of all ${rows}.`,
      `Show the ${label.phrase} and ${column.phrase} of each ${rowOf(table, restriction)}.`,
      `Give me the ${label.phrase} and the ${column.phrase} of every ${rowOf(table, restriction)}.`,
    ],
    `SELECT ${columnSql(label)}, ${columnSql(column)} FROM ${quoteName(table.name)} WHERE ${restriction.sql}`,
  );
};

/** Lists labels ordered by a number, under a restriction. */
const listOrdered: Make = (world, r) => {
  const { table, label } = r.pick(labelledTables(world));
  const restriction = r.chance(0.7) ? someCategory(world, table, r) : someNumber(world, table, r);
  const columns = [...numbersOf(table), ...datesOf(table)].filter(({ name }) => name !== restriction?.column);
  const column = maybePick(
    r,
    columns.filter((candidate) => isFull(world, table, candidate)),
  );
  if (!column || !restriction) return null;
  const down = r.chance(0.6);
  const [first, last] = down ? [0, 1] : [1, 0];
  const named =
    column.superlatives && !/^(?:with|that|who) |-/.test(column.superlatives.join(" "))
      ? column.superlatives
      : undefined;
  const order = named
    ? `from ${named[first]} to ${named[last]}`
    : `by ${column.phrase}, ${extremesOf(column)[first]} first`;
  const rows = rowsOf(table, restriction);
  const labels = plural(label.phrase);
  return draft(
    r,
    [
      `List the ${labels} of the ${rows}, ordered ${order}.`,
      `What are the ${labels} of the ${rows}, sorted ${order}?`,
      `Show the ${labels} of all ${rows}, ordered ${order}.`,
      `Name the ${rows}, sorted ${order}.`,
    ],
    `SELECT ${columnSql(label)} FROM ${quoteName(table.name)} WHERE ${restriction.sql} ORDER BY ${columnSql(column)}${down ? " DESC" : ""}`,
  );
};

/** Lists labels that start with a given letter. */
const listStarting: Make = (world, r) => {
  const { table, label } = r.pick(labelledTables(world));
  const value = r.pick(cells(world, table, label));
  if (typeof value !== "string" || !/^[A-Z]/.test(value)) return null;
  const [letter, { many }] = [value[0]!, table];
  return draft(
    r,
    [
      `Which ${many} have ${an(label.phrase)} starting with ${letter}?`,
      `List all ${many} whose ${label.phrase} starts with ${letter}.`,
      `Which ${many} have ${an(label.phrase)} that begins with the letter ${letter}?`,
    ],
    `SELECT ${columnSql(label)} FROM ${quoteName(table.name)} WHERE ${columnSql(label)} LIKE '${letter}%'`,
  );
};

/** Lists labels that contain a word, if none contains it as part of a longer word. */
const listWord: Make = (world, r) => {
  const { table, label } = r.pick(labelledTables(world));
  const labels = cells(world, table, label).map(String);
  const wordsOf = (text: string) => text.split(/[^\p{L}]+/u).filter((word) => word.length > 3);
  const word = maybePick(r, wordsOf(r.pick(labels)));
  if (!word || table.person) return null;
  const asPart = labels.filter((text) => text.toLowerCase().includes(word.toLowerCase()));
  if (!asPart.every((text) => wordsOf(text).includes(word))) return null;
  return draft(
    r,
    [
      `Which ${table.many} have the word ${word} in their ${label.phrase}?`,
      `List all ${table.many} with the word ${word} in the ${label.phrase}.`,
      `Find the ${table.many} whose ${label.phrase} contains the word ${word}.`,
    ],
    `SELECT ${columnSql(label)} FROM ${quoteName(table.name)} WHERE ${columnSql(label)} LIKE '%${word}%'`,
  );
};

const oneOf = (world: World, table: TableSpec, r: Random) =>
  either(world, table, r, (c, a, b) => `${c} IN (${a}, ${b})`);

/** The forms in this file. */
export const LIST_FORMS: readonly Form[] = [
  { name: "look_up", difficulty: "easy", make: lookUp },
  { name: "look_up_two", difficulty: "easy", make: lookUpTwo },
  { name: "look_up_label", difficulty: "easy", make: lookUpLabel },
  { name: "list_category", difficulty: "easy", several: true, make: listing(someCategory) },
  { name: "list_above", difficulty: "easy", several: true, make: listing(compared(true)) },
  { name: "list_below", difficulty: "easy", several: true, make: listing(compared(false)) },
  { name: "list_range", difficulty: "easy", several: true, make: listing(range) },
  { name: "list_both", difficulty: "easy", several: true, make: listBoth },
  { name: "list_either", difficulty: "easy", several: true, make: listing(oneOf) },
  {
    name: "list_missing",
    difficulty: "easy",
    several: true,
    make: listing((world, table, r) => maybePick(r, without(world, table))),
  },
  { name: "list_year", difficulty: "easy", several: true, make: listing(someYear) },
  { name: "list_since", difficulty: "easy", several: true, make: listing(sinceDay) },
  { name: "list_starting", difficulty: "easy", several: true, make: listStarting },
  { name: "list_word", difficulty: "easy", several: true, make: listWord },
  { name: "list_two", difficulty: "easy", several: true, make: listTwo },
  { name: "list_ordered", difficulty: "easy", several: true, make: listOrdered },
];
