// Questions about groups of a certain size (HAVING) and set operations.
import type { Random } from "../../../random.ts";
import { quoteName } from "../../sql/index.ts";
import { idOf, type World } from "../build.ts";
import { plural } from "../english.ts";
import {
  categoriesOf,
  cells,
  columnSql,
  isFull,
  joinSql,
  labelledTables,
  labelOf,
  maybePick,
  numbersOf,
  severalValues,
  verbLinksOf,
} from "../inspect-world.ts";
import { countedBy, type Restriction, rowsOf, verbOf, withUnit } from "../phrases.ts";
import { isValue, threshold } from "../restrictions.ts";
import type { TableSpec } from "../spec.ts";
import { draft, type Form, type Make } from "./form.ts";
import { isAlone } from "./rank.ts";

/** A row count that some groups reach and others do not. */
function reachable(counts: readonly number[], r: Random): number | undefined {
  const sorted = [...new Set(counts)].sort((a, b) => a - b).slice(1);
  return maybePick(
    r,
    sorted.filter((count) => count > 1),
  );
}

/** "more than 3 loans" or "at least 4 loans", and the same condition in SQL. */
function atLeastRows(table: TableSpec, least: number, r: Random): { amount: string; rows: string; having: string } {
  const more = r.chance(0.5);
  const amount = more ? `more than ${least - 1}` : `at least ${least}`;
  const noun = more && least === 2 ? table.one : table.many;
  return { amount, rows: `${amount} ${noun}`, having: `HAVING COUNT(*) ${more ? `> ${least - 1}` : `>= ${least}`}` };
}

function tally<T>(values: readonly T[]): number[] {
  const counts = new Map<T, number>();
  for (const value of values) if (value !== null) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts.values()];
}

const bigGroups: Make = (world, r) => {
  const table = r.pick(world.spec.tables);
  const group = maybePick(
    r,
    categoriesOf(table).filter((column) => isFull(world, table, column)),
  );
  const least = group && reachable(tally(cells(world, table, group)), r);
  if (!group || least === undefined) return null;
  const { amount, rows, having } = atLeastRows(table, least, r);
  return draft(
    r,
    [
      `Which ${group.plural} have ${rows}?`,
      `List the ${group.plural} with ${rows}.`,
      least > 2 && `Which ${group.plural} occur ${amount} times among the ${table.many}?`,
    ],
    `SELECT ${columnSql(group)} FROM ${quoteName(table.name)} GROUP BY ${columnSql(group)} ${having}`,
  );
};

const groupsBeyond: Make = (world, r) => {
  const table = r.pick(world.spec.tables);
  const group = maybePick(
    r,
    categoriesOf(table).filter((column) => isFull(world, table, column)),
  );
  const column = maybePick(
    r,
    numbersOf(table).filter((number) => !number.year && isFull(world, table, number)),
  );
  const value = column && threshold(world, table, column, r, 0.35, 0.65);
  if (!group || !column || value === undefined) return null;
  const above = r.chance(0.6);
  const amount = countedBy(column) ? value : withUnit(value, column);
  const words = `an average ${column.phrase} ${above ? "above" : "below"} ${amount}`;
  return draft(
    r,
    [
      `For which ${group.plural} do the ${table.many} have ${words}?`,
      `Which ${group.plural} have ${table.many} with ${words}?`,
      `List the ${group.plural} whose ${table.many} have ${words}.`,
    ],
    `SELECT ${columnSql(group)} FROM ${quoteName(table.name)} GROUP BY ${columnSql(group)} HAVING AVG(${columnSql(column)}) ${above ? ">" : "<"} ${value}`,
  );
};

function parentsWithMany(counted: boolean): Make {
  return (world, r) => {
    const link = maybePick(r, verbLinksOf(world));
    const least = link && reachable(tally(cells(world, link.child, link.ref)), r);
    if (!link || least === undefined) return null;
    const { child, ref, parent } = link;
    const label = labelOf(parent)!;
    const { many } = verbOf(ref);
    const { rows, having } = atLeastRows(child, least, r);
    const who = parent.person ? "who" : "that";
    return counted
      ? draft(
          r,
          [
            `How many ${parent.many} ${many} ${rows}?`,
            `What is the number of ${parent.many} ${who} ${many} ${rows}?`,
            `Count the ${parent.many} ${who} ${many} ${rows}.`,
          ],
          `SELECT COUNT(*) FROM (SELECT ${columnSql(ref)} FROM ${quoteName(child.name)}${isFull(world, child, ref) ? "" : ` WHERE ${columnSql(ref)} IS NOT NULL`} GROUP BY ${columnSql(ref)} ${having})`,
        )
      : draft(
          r,
          [
            `Which ${parent.many} ${many} ${rows}?`,
            `List the ${plural(label.phrase)} of the ${parent.many} ${who} ${many} ${rows}.`,
            `What are the ${plural(label.phrase)} of all ${parent.many} ${who} ${many} ${rows}?`,
          ],
          `SELECT ${columnSql(label, parent)} FROM ${joinSql(link)} GROUP BY ${columnSql(idOf(parent), parent)} ${having}`,
        );
  };
}

/** Two groups of rows in one table that differ in one category. */
function twoKinds(world: World, table: TableSpec, r: Random): [Restriction, Restriction] | undefined {
  const column = maybePick(r, categoriesOf(table));
  const [a, b] = column ? r.sample(severalValues(world, table, column), 2) : [];
  return column && a !== undefined && b !== undefined ? [isValue(column, a), isValue(column, b)] : undefined;
}

function groupsOfKinds(operation: "INTERSECT" | "EXCEPT"): Make {
  return (world, r) => {
    const table = r.pick(world.spec.tables);
    const kinds = twoKinds(world, table, r);
    const group =
      kinds &&
      maybePick(
        r,
        categoriesOf(table).filter((column) => column.name !== kinds[0].column && isFull(world, table, column)),
      );
    if (!kinds || !group) return null;
    const [a, b] = [rowsOf(table, kinds[0]), rowsOf(table, kinds[1])];
    const select = (kind: Restriction) => `SELECT ${columnSql(group)} FROM ${quoteName(table.name)} WHERE ${kind.sql}`;
    return draft(
      r,
      operation === "INTERSECT"
        ? [
            `Which ${group.plural} have both ${a} and ${b}?`,
            `Which ${group.plural} occur among both ${a} and ${b}?`,
            `List the ${group.plural} shared by ${a} and ${b}.`,
          ]
        : [
            `Which ${group.plural} have ${a} but no ${b}?`,
            `Which ${group.plural} occur among ${a} but not among ${b}?`,
            `List the ${group.plural} that have ${a} but no ${b}.`,
          ],
      `${select(kinds[0])} ${operation} ${select(kinds[1])}`,
    );
  };
}

function parentsOfKinds(operation: "INTERSECT" | "EXCEPT"): Make {
  return (world, r) => {
    const link = maybePick(r, verbLinksOf(world));
    const column = link && maybePick(r, categoriesOf(link.child));
    const [a, b] = column ? r.sample(severalValues(world, link.child, column), 2) : [];
    if (!link || !column || a === undefined || b === undefined) return null;
    const { child, ref, parent } = link;
    const label = labelOf(parent)!;
    if (label.repeats) return null; // the set operation would merge rows that share a name
    const [first, then] = [isValue(column, a, child), isValue(column, b, child)];
    const { many } = verbOf(ref);
    const select = (kind: Restriction) => `SELECT ${columnSql(label, parent)} FROM ${joinSql(link)} WHERE ${kind.sql}`;
    const who = parent.person ? "who" : "that";
    const words =
      operation === "INTERSECT"
        ? `${many} both ${rowsOf(child, first)} and ${rowsOf(child, then)}`
        : `${many} ${rowsOf(child, first)} but no ${rowsOf(child, then)}`;
    return draft(
      r,
      [
        `Which ${parent.many} ${words}?`,
        `List the ${plural(label.phrase)} of the ${parent.many} ${who} ${words}.`,
        `Find the ${parent.many} ${who} ${words}.`,
      ],
      `${select(first)} ${operation} ${select(then)}`,
    );
  };
}

const bothEnds: Make = (world, r) => {
  const { table, label } = r.pick(labelledTables(world));
  const column = maybePick(
    r,
    numbersOf(table).filter((number) => number.superlatives && !/^(?:with|that|who) /.test(number.superlatives[0])),
  );
  if (!column?.superlatives) return null;
  if (!isAlone(world, table, column, true) || !isAlone(world, table, column, false)) return null;
  const [from, number] = [quoteName(table.name), columnSql(column)];
  const [a, b] = column.superlatives;
  const select = (call: string) =>
    `SELECT ${columnSql(label)} FROM ${from} WHERE ${number} = (SELECT ${call}(${number}) FROM ${from})`;
  return draft(
    r,
    [
      table.person
        ? `Who are the ${a} and the ${b} ${table.one}?`
        : `What are the ${plural(label.phrase)} of the ${a} and the ${b} ${table.one}?`,
      `Name the ${a} and the ${b} ${table.one}.`,
      `Give the ${plural(label.phrase)} of both the ${a} and the ${b} ${table.one}.`,
    ],
    `${select("MAX")} UNION ${select("MIN")}`,
  );
};

/** The forms in this file. */
export const SET_FORMS: readonly Form[] = [
  { name: "big_groups", difficulty: "hard", several: true, make: bigGroups },
  { name: "groups_beyond", difficulty: "hard", several: true, make: groupsBeyond },
  { name: "parents_with_many", difficulty: "hard", several: true, make: parentsWithMany(false) },
  { name: "count_parents_with_many", difficulty: "hard", make: parentsWithMany(true) },
  { name: "groups_of_both", difficulty: "hard", several: true, make: groupsOfKinds("INTERSECT") },
  { name: "groups_of_one", difficulty: "hard", several: true, make: groupsOfKinds("EXCEPT") },
  { name: "parents_of_both", difficulty: "hard", several: true, make: parentsOfKinds("INTERSECT") },
  { name: "parents_of_one", difficulty: "hard", several: true, make: parentsOfKinds("EXCEPT") },
  { name: "both_ends", difficulty: "hard", several: true, make: bothEnds },
];
