// Questions about the distinct values of a column, and about groups of rows that share a value.
import type { Random } from "../../../random.ts";
import { quoteName } from "../../sql/index.ts";
import type { World } from "../build.ts";
import {
  categoriesOf,
  cells,
  columnSql,
  datesOf,
  isFull,
  maybePick,
  numbersOf,
  severalValues,
} from "../inspect-world.ts";
import { extremesOf, pluralOf, predicate, rowsOf } from "../phrases.ts";
import { someCategory, someNumber } from "../restrictions.ts";
import type { DateColumn, TableSpec } from "../spec.ts";
import { draft, type Form, type Make } from "./form.ts";
import { AGGREGATES } from "./measure.ts";

function different(restricted: boolean): Make {
  return (world, r) => {
    const table = r.pick(world.spec.tables);
    const column = maybePick(
      r,
      categoriesOf(table).filter((candidate) => isFull(world, table, candidate)),
    );
    const restriction =
      restricted && column
        ? r.chance(0.5)
          ? someNumber(world, table, r)
          : someCategory(world, table, r, { except: column.name })
        : undefined;
    if (!column || (restricted && !restriction)) return null;
    const rows = rowsOf(table, ...(restriction ? [restriction] : []));
    return draft(
      r,
      [
        `What are the different ${column.plural} of the ${rows}?`,
        `Which different ${column.plural} do the ${rows} have?`,
        `List the distinct ${column.plural} of the ${rows}.`,
        `Which ${column.plural} occur among the ${rows}?`,
      ],
      `SELECT DISTINCT ${columnSql(column)} FROM ${quoteName(table.name)}${restriction ? ` WHERE ${restriction.sql}` : ""}`,
    );
  };
}

function countDifferent(restricted: boolean): Make {
  return (world, r) => {
    const table = r.pick(world.spec.tables);
    const column = maybePick(r, categoriesOf(table));
    const restriction =
      restricted && column
        ? r.chance(0.5)
          ? someNumber(world, table, r)
          : someCategory(world, table, r, { except: column.name })
        : undefined;
    if (!column || (restricted && !restriction)) return null;
    const rows = rowsOf(table, ...(restriction ? [restriction] : []));
    return draft(
      r,
      [
        `How many different ${column.plural} are there among the ${rows}?`,
        `How many different ${column.plural} do the ${rows} have?`,
        `Count the distinct ${column.plural} of the ${rows}.`,
        `What is the number of different ${column.plural} among the ${rows}?`,
      ],
      `SELECT COUNT(DISTINCT ${columnSql(column)}) FROM ${quoteName(table.name)}${restriction ? ` WHERE ${restriction.sql}` : ""}`,
    );
  };
}

/** A category to group by: it is known for every row and has several values. */
export function someGroups(world: World, table: TableSpec, r: Random) {
  return maybePick(
    r,
    categoriesOf(table).filter(
      (column) => isFull(world, table, column) && severalValues(world, table, column).length > 1,
    ),
  );
}

const countPerGroup: Make = (world, r) => {
  const table = r.pick(world.spec.tables);
  const group = someGroups(world, table, r);
  if (!group) return null;
  return draft(
    r,
    [
      `How many ${table.many} are there for each ${group.phrase}?`,
      `Show each ${group.phrase} and the number of ${table.many} it has.`,
      `List every ${group.phrase} together with its number of ${table.many}.`,
      `For each ${group.phrase}, how many ${table.many} are there?`,
      `Count the ${table.many} for each ${group.phrase}.`,
    ],
    `SELECT ${columnSql(group)}, COUNT(*) FROM ${quoteName(table.name)} GROUP BY ${columnSql(group)}`,
  );
};

/** Asks for the average, total, highest or lowest value of each group. */
function valuePerGroup(kind: keyof typeof AGGREGATES): Make {
  const { call, fits } = AGGREGATES[kind];
  return (world, r) => {
    const table = r.pick(world.spec.tables);
    const group = someGroups(world, table, r);
    const column = maybePick(
      r,
      numbersOf(table).filter((number) => fits(number) && isFull(world, table, number)),
    );
    if (!group || !column) return null;
    const word = { max: extremesOf(column)[0], min: extremesOf(column)[1], avg: "average", sum: "total" }[kind];
    return draft(
      r,
      [
        `What is the ${word} ${column.phrase} of ${table.many} for each ${group.phrase}?`,
        `Show each ${group.phrase} and the ${word} ${column.phrase} of its ${table.many}.`,
        `For each ${group.phrase}, what is the ${word} ${column.phrase} of the ${table.many}?`,
        `Give every ${group.phrase} with the ${word} ${column.phrase} of its ${table.many}.`,
      ],
      `SELECT ${columnSql(group)}, ${call}(${columnSql(column)}) FROM ${quoteName(table.name)} GROUP BY ${columnSql(group)}`,
    );
  };
}

function commonest(most: boolean): Make {
  return (world, r) => {
    const table = r.pick(world.spec.tables);
    const group = someGroups(world, table, r);
    if (!group) return null;
    const counts = [...countValues(cells(world, table, group)).values()].sort((a, b) => (most ? b - a : a - b));
    if (counts[0] === counts[1]) return null;
    return draft(
      r,
      [
        `What is the ${most ? "most" : "least"} common ${group.phrase} among the ${table.many}?`,
        `Which ${group.phrase} has the ${most ? "most" : "fewest"} ${table.many}?`,
        `Which ${group.phrase} occurs ${most ? "most" : "least"} often among the ${table.many}?`,
        `Find the ${group.phrase} with the ${most ? "largest" : "smallest"} number of ${table.many}.`,
      ],
      `SELECT ${columnSql(group)} FROM ${quoteName(table.name)} GROUP BY ${columnSql(group)} ORDER BY COUNT(*)${most ? " DESC" : ""} LIMIT 1`,
    );
  };
}

function countValues<T>(values: readonly T[]): Map<T, number> {
  const counts = new Map<T, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

function bestGroup(kind: "avg" | "sum"): Make {
  const { call, fits } = AGGREGATES[kind];
  return (world, r) => {
    const table = r.pick(world.spec.tables);
    const group = someGroups(world, table, r);
    const column = maybePick(
      r,
      numbersOf(table).filter((number) => fits(number) && isFull(world, table, number)),
    );
    if (!group || !column) return null;
    const highest = r.chance(0.65);
    const word = `${extremesOf(column)[highest ? 0 : 1]} ${kind === "avg" ? "average" : "total"} ${column.phrase}`;
    return draft(
      r,
      [
        `Which ${group.phrase} has the ${word}?`,
        `Among the ${table.many}, which ${group.phrase} has the ${word}?`,
        `For which ${group.phrase} is the ${kind === "avg" ? "average" : "total"} ${column.phrase} of the ${table.many} the ${extremesOf(column)[highest ? 0 : 1]}?`,
        `Find the ${group.phrase} whose ${table.many} have the ${word}.`,
      ],
      `SELECT ${columnSql(group)} FROM ${quoteName(table.name)} GROUP BY ${columnSql(group)} ORDER BY ${call}(${columnSql(column)})${highest ? " DESC" : ""} LIMIT 1`,
    );
  };
}

/**
 * The event of a date column, without the date: "were hired", "joined"; undefined if the template does not state it.
 */
function happened({ where }: DateColumn): string | undefined {
  const words = / in \{v\}$/.test(where) ? where.replace(/ in \{v\}$/, "") : undefined;
  const verb = predicate(words);
  return verb?.startsWith("were ") || /^(?:that|who) /.test(where) ? verb : undefined;
}

const busiestYear: Make = (world, r) => {
  const table = r.pick(world.spec.tables);
  const column = maybePick(
    r,
    datesOf(table).filter((date) => isFull(world, table, date)),
  );
  if (!column) return null;
  const years = cells(world, table, column).map((day) => String(day).slice(0, 4));
  const counts = [...countValues(years).values()].sort((a, b) => b - a);
  if (counts.length < 2 || counts[0] === counts[1]) return null;
  const year = `strftime('%Y', ${columnSql(column)})`;
  const verb = happened(column);
  const most = `the most ${table.many}`;
  return draft(
    r,
    verb
      ? [
          verb.startsWith("were ") && `In which year were ${most} ${verb.slice(5)}?`,
          verb.startsWith("were ") && `What is the year in which ${most} ${verb}?`,
          `Find the year in which ${most} ${verb}.`,
          !verb.startsWith("were ") && `In what year was it that ${most} ${verb}?`,
        ]
      : [
          `By ${column.phrase}, which year has ${most}?`,
          `Which year occurs most often in the ${pluralOf(column)} of the ${table.many}?`,
        ],
    `SELECT ${year} FROM ${quoteName(table.name)} GROUP BY ${year} ORDER BY COUNT(*) DESC LIMIT 1`,
  );
};

const countPerYear: Make = (world, r) => {
  const table = r.pick(world.spec.tables);
  const column = maybePick(
    r,
    datesOf(table).filter((date) => isFull(world, table, date)),
  );
  if (!column) return null;
  const year = `strftime('%Y', ${columnSql(column)})`;
  const verb = happened(column);
  return draft(
    r,
    verb
      ? [
          `How many ${table.many} ${verb} in each year?`,
          `For each year, how many ${table.many} ${verb}?`,
          `Show each year and how many ${table.many} ${verb} in it.`,
        ]
      : [
          `By ${column.phrase}, how many ${table.many} are there in each year?`,
          `Count the ${table.many} for each year of the ${column.phrase}.`,
        ],
    `SELECT ${year}, COUNT(*) FROM ${quoteName(table.name)} GROUP BY ${year}`,
  );
};

/** The forms in this file. */
export const GROUP_FORMS: readonly Form[] = [
  { name: "different", difficulty: "medium", several: true, make: different(false) },
  { name: "different_some", difficulty: "medium", several: true, make: different(true) },
  { name: "count_different", difficulty: "medium", make: countDifferent(false) },
  { name: "count_different_some", difficulty: "medium", make: countDifferent(true) },
  { name: "count_per_group", difficulty: "medium", several: true, make: countPerGroup },
  { name: "average_per_group", difficulty: "medium", several: true, make: valuePerGroup("avg") },
  { name: "highest_per_group", difficulty: "medium", several: true, make: valuePerGroup("max") },
  { name: "total_per_group", difficulty: "medium", several: true, make: valuePerGroup("sum") },
  { name: "commonest", difficulty: "medium", make: commonest(true) },
  { name: "rarest", difficulty: "medium", make: commonest(false) },
  { name: "best_average_group", difficulty: "medium", make: bestGroup("avg") },
  { name: "best_total_group", difficulty: "medium", make: bestGroup("sum") },
  { name: "busiest_year", difficulty: "medium", make: busiestYear },
  { name: "count_per_year", difficulty: "medium", several: true, make: countPerYear },
];
