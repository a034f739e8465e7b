// Questions with a subquery: "above the average", "the same as", "never".
import { quoteName, quoteText } from "../../sql/index.ts";
import { idOf, type World } from "../build.ts";
import { an, plural } from "../english.ts";
import {
  categoriesOf,
  columnSql,
  isFull,
  type Link,
  labelledTables,
  labelOf,
  maybePick,
  numbersOf,
  soleLinksOf,
  uniqueLabels,
  verbLinksOf,
} from "../inspect-world.ts";
import { called, comparativeOf, countedBy, extremesOf, predicate, rowOf, rowsOf, verbOf } from "../phrases.ts";
import { someCategory, someNumber } from "../restrictions.ts";
import { draft, type Form, type Make } from "./form.ts";

/** Lists or counts rows above or below the average of all rows. */
function beyondAverage(howMany: boolean): Make {
  return (world, r) => {
    const { table, label } = r.pick(labelledTables(world));
    const column = maybePick(
      r,
      numbersOf(table).filter(({ year }) => !year),
    );
    if (!column) return null;
    const above = r.chance(0.6);
    const [side, word] = above ? [">", "above"] : ["<", "below"];
    const [from, number] = [quoteName(table.name), columnSql(column)];
    const than = column.comparatives?.[above ? 0 : 1];
    const spoken = than && /^(?!with )\w.*than$/.test(than) ? predicate(`${than} the average`) : undefined;
    const counted = countedBy(column);
    const has = `have ${an(`${word}-average ${column.phrase}`)}`;
    const beside = counted
      ? `with ${above ? "more" : "fewer"} ${counted} than the average ${table.one}`
      : `with ${an(column.phrase)} ${word} the average of all ${table.many}`;
    const where = `WHERE ${number} ${side} (SELECT AVG(${number}) FROM ${from})`;
    return howMany
      ? draft(
          r,
          [
            spoken && `How many ${table.many} ${spoken}?`,
            `How many ${table.many} ${has}?`,
            `How many ${table.many} ${predicate(beside)}?`,
            `Count the ${table.many} ${beside}.`,
          ],
          `SELECT COUNT(*) FROM ${from} ${where}`,
        )
      : draft(
          r,
          [
            spoken && `Which ${table.many} ${spoken}?`,
            `Which ${table.many} ${has}?`,
            `Which ${table.many} ${predicate(beside)}?`,
            `List the ${plural(label.phrase)} of the ${table.many} ${beside}.`,
            `What are the ${plural(label.phrase)} of the ${table.many} ${table.person ? "who" : "that"} ${has}?`,
          ],
          `SELECT ${columnSql(label)} FROM ${from} ${where}`,
        );
  };
}

/** Lists rows with a larger or smaller value than one named row. */
const beyondRow: Make = (world, r) => {
  const { table, label } = r.pick(labelledTables(world));
  const column = maybePick(r, numbersOf(table));
  const value = maybePick(r, uniqueLabels(world, { table, label }));
  if (!column || value === undefined) return null;
  const above = r.chance(0.6);
  const x = called(table, value);
  const than = column.comparatives?.[above ? 0 : 1];
  const spoken = than && /^(?!with )\w.*(?:than|after|before)$/.test(than) ? predicate(`${than} ${x}`) : undefined;
  const counted = countedBy(column);
  const has = counted
    ? `${above ? "more" : "fewer"} ${counted} than ${x}`
    : `${an(`${comparativeOf(extremesOf(column)[above ? 0 : 1])} ${column.phrase}`)} than ${x}`;
  const [from, number] = [quoteName(table.name), columnSql(column)];
  return draft(
    r,
    [
      spoken && `Which ${table.many} ${spoken}?`,
      spoken && `Which ${table.many} ${spoken}?`,
      `Which ${table.many} have ${has}?`,
      `List the ${plural(label.phrase)} of all ${table.many} with ${has}.`,
    ],
    `SELECT ${columnSql(label)} FROM ${from} WHERE ${number} ${above ? ">" : "<"} (SELECT ${number} FROM ${from} WHERE ${columnSql(label)} = ${quoteText(value)})`,
  );
};

const sameAs: Make = (world, r) => {
  const { table, label } = r.pick(labelledTables(world));
  const column = maybePick(r, categoriesOf(table));
  const value = maybePick(r, uniqueLabels(world, { table, label }));
  if (!column || value === undefined) return null;
  const x = called(table, value);
  const [from, name] = [quoteName(table.name), columnSql(label)];
  return draft(
    r,
    [
      `Which other ${table.many} have the same ${column.phrase} as ${x}?`,
      `List the ${plural(label.phrase)} of the other ${table.many} ${table.person ? "who" : "that"} share the ${column.phrase} of ${x}.`,
      `Find the other ${table.many} with the same ${column.phrase} as ${x}.`,
    ],
    `SELECT ${name} FROM ${from} WHERE ${columnSql(column)} = (SELECT ${columnSql(column)} FROM ${from} WHERE ${name} = ${quoteText(value)}) AND ${name} <> ${quoteText(value)}`,
  );
};

/** Lists all rows that share the largest or smallest value, if there are several. */
const tied: Make = (world, r) => {
  const { table, label } = r.pick(labelledTables(world));
  const column = maybePick(r, numbersOf(table));
  if (!column) return null;
  const highest = r.chance(0.5);
  const [from, number] = [quoteName(table.name), columnSql(column)];
  const extreme = `${extremesOf(column)[highest ? 0 : 1]} ${column.phrase}`;
  return draft(
    r,
    [
      `Which ${table.many} share the ${extreme}?`,
      `List the ${plural(label.phrase)} of all ${table.many} ${table.person ? "who" : "that"} have the ${extreme}.`,
      `Several ${table.many} have the ${extreme}. Which ones?`,
    ],
    `SELECT ${columnSql(label)} FROM ${from} WHERE ${number} = (SELECT ${highest ? "MAX" : "MIN"}(${number}) FROM ${from})`,
  );
};

/** Asks for the percentage of rows that satisfy a restriction. */
const percentage: Make = (world, r) => {
  const table = r.pick(world.spec.tables);
  const restriction = r.chance(0.6) ? someCategory(world, table, r) : someNumber(world, table, r);
  if (!restriction) return null;
  const from = quoteName(table.name);
  const words = restriction.before ? undefined : predicate(restriction.after);
  if (!words && !restriction.before) return null;
  return draft(
    r,
    words
      ? [
          `What percentage of the ${table.many} ${words}?`,
          `What percentage of all ${table.many} ${words}?`,
          `As a percentage, what share of the ${table.many} ${words}?`,
        ]
      : [
          `What percentage of all ${table.many} are ${rowsOf(table, restriction)}?`,
          `As a percentage of all ${table.many}, how many are ${rowsOf(table, restriction)}?`,
        ],
    `SELECT 100.0 * COUNT(*) / (SELECT COUNT(*) FROM ${from}) FROM ${from} WHERE ${restriction.sql}`,
  );
};

/** Builds `SELECT ref FROM child` for NOT IN, without NULLs, which would make NOT IN match nothing. */
function refsSql(world: World, { child, ref }: Link, where?: string): string {
  const conditions = [where, isFull(world, child, ref) ? undefined : `${columnSql(ref)} IS NOT NULL`].filter(Boolean);
  return `SELECT ${columnSql(ref)} FROM ${quoteName(child.name)}${conditions.length ? ` WHERE ${conditions.join(" AND ")}` : ""}`;
}

function never(counted: boolean): Make {
  return (world, r) => {
    const link = maybePick(r, verbLinksOf(world));
    if (!link) return null;
    const { child, ref, parent } = link;
    const label = labelOf(parent)!;
    const words = verbOf(ref).never(child);
    const who = parent.person ? "who" : "that";
    const where = `FROM ${quoteName(parent.name)} WHERE ${columnSql(idOf(parent))} NOT IN (${refsSql(world, link)})`;
    return counted
      ? draft(
          r,
          [
            `How many ${parent.many} ${words}?`,
            `How many of the ${parent.many} ${words}?`,
            `Count the ${parent.many} ${who} ${words}.`,
          ],
          `SELECT COUNT(*) ${where}`,
        )
      : draft(
          r,
          [
            `Which ${parent.many} ${words}?`,
            `List the ${plural(label.phrase)} of the ${parent.many} ${who} ${words}.`,
            `Find all ${parent.many} ${who} ${words}.`,
          ],
          `SELECT ${columnSql(label)} ${where}`,
        );
  };
}

const withoutKind: Make = (world, r) => {
  const link = maybePick(r, verbLinksOf(world));
  const of = link && (r.chance(0.6) ? someCategory(world, link.child, r) : someNumber(world, link.child, r));
  if (!link || !of) return null;
  const { child, ref, parent } = link;
  const label = labelOf(parent)!;
  const words = verbOf(ref).never({ one: rowOf(child, of), many: rowsOf(child, of) });
  return draft(
    r,
    [
      `Which ${parent.many} ${words}?`,
      `List the ${plural(label.phrase)} of the ${parent.many} ${parent.person ? "who" : "that"} ${words}.`,
      `Find the ${parent.many} ${parent.person ? "who" : "that"} ${words}.`,
    ],
    `SELECT ${columnSql(label)} FROM ${quoteName(parent.name)} WHERE ${columnSql(idOf(parent))} NOT IN (${refsSql(world, link, of.sql)})`,
  );
};

const averageCount: Make = (world, r) => {
  const link = maybePick(r, soleLinksOf(world));
  if (!link) return null;
  const { child, ref, parent } = link;
  return draft(
    r,
    [
      `Among ${parent.many} with at least one ${child.one}, what is the average number of ${child.many} per ${parent.one}?`,
      `On average, how many ${child.many} does ${an(parent.one)} have, leaving out ${parent.many} with none?`,
      `What is the average number of ${child.many} per ${parent.one}, ignoring ${parent.many} with none?`,
    ],
    `SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM ${quoteName(child.name)}${isFull(world, child, ref) ? "" : ` WHERE ${columnSql(ref)} IS NOT NULL`} GROUP BY ${columnSql(ref)})`,
  );
};

/** The forms in this file. */
export const NEST_FORMS: readonly Form[] = [
  { name: "beyond_average", difficulty: "hard", several: true, make: beyondAverage(false) },
  { name: "count_beyond_average", difficulty: "hard", make: beyondAverage(true) },
  { name: "beyond_row", difficulty: "hard", several: true, make: beyondRow },
  { name: "same_as", difficulty: "hard", several: true, make: sameAs },
  { name: "tied", difficulty: "hard", several: true, make: tied },
  { name: "percentage", difficulty: "hard", make: percentage },
  { name: "never", difficulty: "hard", several: true, make: never(false) },
  { name: "count_never", difficulty: "hard", make: never(true) },
  { name: "without_kind", difficulty: "hard", several: true, make: withoutKind },
  { name: "average_count", difficulty: "hard", make: averageCount },
];
