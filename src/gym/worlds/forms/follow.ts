// Questions that follow one reference (one join).
import type { Random } from "../../../random.ts";
import { quoteText } from "../../sql/index.ts";
import type { World } from "../build.ts";
import { fill, plural } from "../english.ts";
import {
  columnSql,
  factsOf,
  isFull,
  joinSql,
  type Link,
  labelOf,
  linksOf,
  maybePick,
  numbersOf,
  uniqueLabels,
  verbLinksOf,
} from "../inspect-world.ts";
import { asksFor, called, type Restriction, referredOf, rowOf, rowsOf, superlative, verbOf } from "../phrases.ts";
import { listTemplate, refersTo, someCategory, someNumber, someReferred, someYear } from "../restrictions.ts";
import type { TableSpec } from "../spec.ts";
import { countPhrasings } from "./count.ts";
import { draft, type Form, type Make } from "./form.ts";
import { listPhrasings } from "./list.ts";
import { AGGREGATES } from "./measure.ts";
import { isAlone, orderSql, ranks, topPhrasings } from "./rank.ts";

/** A random child row with a unique name, and its link. */
function someChild(world: World, r: Random): { link: Link; value: string } | undefined {
  const link = maybePick(
    r,
    linksOf(world).filter(({ child }) => child.label),
  );
  if (!link) return undefined;
  const value = maybePick(r, uniqueLabels(world, { table: link.child, label: labelOf(link.child)! }));
  return value === undefined ? undefined : { link, value };
}

/** "Who is the author of …?", "Which airport is the origin of …?"; false if the noun would be repeated. */
function whichIs(table: TableSpec, words: string): string | false {
  if (table.person) return `Who is ${words}?`;
  return !words.startsWith(`the ${table.one} `) && `Which ${table.one} is ${words}?`;
}

const referred: Make = (world, r) => {
  const some = someChild(world, r);
  if (!some) return null;
  const { link, value } = some;
  const { child, ref, parent } = link;
  const label = labelOf(parent)!;
  const x = called(child, value);
  const own = ref.ask && fill(ref.ask, { x });
  return draft(
    r,
    [own, own, whichIs(parent, referredOf(link, value)), `What is the ${label.phrase} of ${referredOf(link, value)}?`],
    `SELECT ${columnSql(label, parent)} FROM ${joinSql(link)} WHERE ${columnSql(labelOf(child)!, child)} = ${quoteText(value)}`,
  );
};

const factOfReferred: Make = (world, r) => {
  const some = someChild(world, r);
  const fact = some && maybePick(r, factsOf(some.link.parent));
  if (!some || !fact) return null;
  const { link, value } = some;
  const { child, parent } = link;
  return draft(
    r,
    asksFor(parent, fact, referredOf(link, value)),
    `SELECT ${columnSql(fact, parent)} FROM ${joinSql(link)} WHERE ${columnSql(labelOf(child)!, child)} = ${quoteText(value)}`,
  );
};

/** Asks how many, or which, rows a named row has, using the link's verb: "How many books did Ana Ruiz write?" */
function verbPhrasing(world: World, link: Link, value: string, asks: string): string | undefined {
  if (!verbLinksOf(world).some(({ ref, child }) => ref === link.ref && child === link.child)) return undefined;
  return `${asks} ${verbOf(link.ref).ask(called(link.parent, value))}?`;
}

const countOf: Make = (world, r) => {
  const link = maybePick(r, linksOf(world));
  const value = link && someReferred(world, link, r);
  if (!link || value === undefined) return null;
  const { child } = link;
  const restriction = refersTo(link, value);
  const own = verbPhrasing(world, link, value, `How many ${child.many}`);
  return draft(
    r,
    [own, own, ...countPhrasings(child, restriction)],
    `SELECT COUNT(*) FROM ${joinSql(link)} WHERE ${restriction.sql}`,
  );
};

const countOfBoth: Make = (world, r) => {
  const link = maybePick(r, linksOf(world));
  const value = link && someReferred(world, link, r);
  const extra =
    link &&
    (r.chance(0.5)
      ? someCategory(world, link.child, r, { qualified: true })
      : r.chance(0.5)
        ? someNumber(world, link.child, r, { qualified: true })
        : someYear(world, link.child, r, true));
  if (!link || value === undefined || !extra) return null;
  const { child } = link;
  const restriction = refersTo(link, value);
  const own = verbPhrasing(world, link, value, `How many ${rowsOf(child, extra)}`);
  return draft(
    r,
    [own, ...countPhrasings(child, restriction, extra)],
    `SELECT COUNT(*) FROM ${joinSql(link)} WHERE ${restriction.sql} AND ${extra.sql}`,
  );
};

const listOf: Make = (world, r) => {
  const link = maybePick(
    r,
    linksOf(world).filter(({ child }) => child.label),
  );
  const value = link && someReferred(world, link, r);
  if (!link || value === undefined) return null;
  const { child } = link;
  const label = labelOf(child)!;
  const restriction = refersTo(link, value);
  const own = verbPhrasing(world, link, value, `Which ${child.many}`);
  return draft(
    r,
    [own, own, ...listPhrasings({ table: child, label }, restriction)],
    `SELECT ${columnSql(label, child)} FROM ${joinSql(link)} WHERE ${restriction.sql}`,
  );
};

/** Restricts child rows to those whose parent satisfies a restriction: "books by authors from Sweden". */
function throughParent(
  world: World,
  r: Random,
  needsLabel: boolean,
): { link: Link; restriction: Restriction } | undefined {
  const link = maybePick(
    r,
    linksOf(world).filter((one) => listTemplate(one) && (!needsLabel || one.child.label)),
  );
  const of =
    link &&
    (r.chance(0.75)
      ? someCategory(world, link.parent, r, { qualified: true })
      : someNumber(world, link.parent, r, { qualified: true }));
  if (!link || !of) return undefined;
  const after = fill(listTemplate(link)!, { v: rowsOf(link.parent, of) });
  return { link, restriction: { column: link.ref.name, sql: of.sql, after } };
}

const listThrough: Make = (world, r) => {
  const some = throughParent(world, r, true);
  if (!some) return null;
  const { link, restriction } = some;
  const label = labelOf(link.child)!;
  return draft(
    r,
    listPhrasings({ table: link.child, label }, restriction),
    `SELECT ${columnSql(label, link.child)} FROM ${joinSql(link)} WHERE ${restriction.sql}`,
  );
};

const countThrough: Make = (world, r) => {
  const some = throughParent(world, r, false);
  if (!some) return null;
  const { link, restriction } = some;
  return draft(
    r,
    countPhrasings(link.child, restriction),
    `SELECT COUNT(*) FROM ${joinSql(link)} WHERE ${restriction.sql}`,
  );
};

/** Restricts child rows to those of one named parent: "books by Ana Ruiz". */
function ofParent(world: World, r: Random): { link: Link; restriction: Restriction } | undefined {
  const link = maybePick(r, linksOf(world));
  const value = link && someReferred(world, link, r);
  return link && value !== undefined ? { link, restriction: refersTo(link, value) } : undefined;
}

/** Aggregates the child rows of a named row, or of rows that satisfy a restriction. */
function measureOf(kind: keyof typeof AGGREGATES, through: boolean): Make {
  const { call, fits, phrasings } = AGGREGATES[kind];
  return (world, r) => {
    const some = through ? throughParent(world, r, false) : ofParent(world, r);
    const column = some && maybePick(r, numbersOf(some.link.child).filter(fits));
    if (!some || !column) return null;
    const { link, restriction } = some;
    return draft(
      r,
      phrasings(link.child, column, rowsOf(link.child, restriction), [restriction]),
      `SELECT ${call}(${columnSql(column, link.child)}) FROM ${joinSql(link)} WHERE ${restriction.sql}`,
    );
  };
}

const topOf: Make = (world, r) => {
  const link = maybePick(
    r,
    linksOf(world).filter(({ child }) => child.label),
  );
  const value = link && someReferred(world, link, r);
  const column = link && maybePick(r, ranks(world, link.child));
  if (!link || !column || value === undefined) return null;
  const highest = r.chance(0.65);
  const restriction = refersTo(link, value);
  return draft(
    r,
    topPhrasings(link.child, column, highest, restriction),
    `SELECT ${columnSql(labelOf(link.child)!, link.child)} FROM ${joinSql(link)} WHERE ${restriction.sql} ${orderSql(column, highest, 1, link.child)}`,
  );
};

/** Asks for the parent of the first or last child row in an order: "Who wrote the longest book?" */
const referredByTop: Make = (world, r) => {
  const link = maybePick(
    r,
    linksOf(world).filter(({ child, ref }) => child.label && isFull(world, child, ref)),
  );
  const column = link && maybePick(r, ranks(world, link.child));
  const highest = r.chance(0.65);
  if (!link || !column || !isAlone(world, link.child, column, highest)) return null;
  const { child, ref, parent } = link;
  const x = `the ${superlative(child, column, highest).one}`;
  const of = fill(ref.of ?? `the ${ref.phrase} of {x}`, { x });
  const own = ref.ask && fill(ref.ask, { x });
  return draft(
    r,
    [own, own, whichIs(parent, of), `What is the ${labelOf(parent)!.phrase} of ${of}?`],
    `SELECT ${columnSql(labelOf(parent)!, parent)} FROM ${joinSql(link)} ${orderSql(column, highest, 1, child)}`,
  );
};

/** Lists every child row under a restriction together with its parent. */
const pairs: Make = (world, r) => {
  const link = maybePick(
    r,
    linksOf(world).filter(({ child, ref }) => child.label && isFull(world, child, ref)),
  );
  const of =
    link &&
    (r.chance(0.6)
      ? someCategory(world, link.child, r, { qualified: true })
      : someNumber(world, link.child, r, { qualified: true }));
  if (!link || !of) return null;
  const { child, ref, parent } = link;
  const [a, b] = [labelOf(child)!, labelOf(parent)!];
  return draft(
    r,
    [
      `List the ${plural(a.phrase)} of the ${rowsOf(child, of)} and the ${plural(b.phrase)} of their ${plural(ref.phrase)}.`,
      `What are the ${plural(a.phrase)} of the ${rowsOf(child, of)}, and what are the ${plural(b.phrase)} of their ${plural(ref.phrase)}?`,
      `Show the ${a.phrase} of each ${rowOf(child, of)} together with the ${b.phrase} of ${child.person ? "their" : "its"} ${ref.phrase}.`,
    ],
    `SELECT ${columnSql(a, child)}, ${columnSql(b, parent)} FROM ${joinSql(link)} WHERE ${of.sql}`,
  );
};

/** The forms in this file. */
export const FOLLOW_FORMS: readonly Form[] = [
  { name: "referred", difficulty: "medium", make: referred },
  { name: "fact_of_referred", difficulty: "medium", make: factOfReferred },
  { name: "count_of", difficulty: "medium", make: countOf },
  { name: "count_of_both", difficulty: "medium", make: countOfBoth },
  { name: "list_of", difficulty: "medium", several: true, make: listOf },
  { name: "list_through", difficulty: "medium", several: true, make: listThrough },
  { name: "count_through", difficulty: "medium", make: countThrough },
  { name: "average_of", difficulty: "medium", make: measureOf("avg", false) },
  { name: "highest_of", difficulty: "medium", make: measureOf("max", false) },
  { name: "total_of", difficulty: "medium", make: measureOf("sum", false) },
  { name: "average_through", difficulty: "medium", make: measureOf("avg", true) },
  { name: "top_of", difficulty: "medium", make: topOf },
  { name: "referred_by_top", difficulty: "medium", make: referredByTop },
  { name: "pairs", difficulty: "medium", several: true, make: pairs },
];
