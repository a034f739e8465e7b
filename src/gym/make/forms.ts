// Question forms for schemas that the forms of generated worlds do not cover: rows whose name is in another table, and
// counts over tables that only link two others.
import type { Random } from "../../random.ts";
import { quoteName, quoteText } from "../sql/index.ts";
import { idOf, type World } from "../worlds/build.ts";
import { plural } from "../worlds/english.ts";
import { draft, type Form, type Make } from "../worlds/forms/form.ts";
import { type Relation, relationsOf } from "../worlds/forms/join.ts";
import { AGGREGATES } from "../worlds/forms/measure.ts";
import { isAlone, orderSql, ranks } from "../worlds/forms/rank.ts";
import {
  columnSql,
  factsOf,
  joinSql,
  type Link,
  labelOf,
  linksOf,
  maybePick,
  numbersOf,
  uniqueLabels,
} from "../worlds/inspect-world.ts";
import { asksFor, called, type Restriction, rowOf, rowsOf, superlative, verbOf } from "../worlds/phrases.ts";
import { someCategory, someNumber, someReferred } from "../worlds/restrictions.ts";
import type { LabelColumn } from "../worlds/spec.ts";

interface Named extends Link {
  readonly label: LabelColumn;
}

/** Tables of people whose names are in another table of people: a table `player` whose names are in `people`. */
function namedElsewhere(world: World): Named[] {
  return linksOf(world).flatMap((link) => {
    const { child, ref, parent } = link;
    const label = labelOf(parent)!;
    const own = labelOf(child);
    const isName = (column: LabelColumn | undefined) =>
      column !== undefined && /(?:^| )(?:name|title)$/.test(column.phrase);
    const isSingle = ref.owned === false && !child.one.endsWith(" pair") && child.relation === undefined;
    const isOneThing = Boolean(child.person) && Boolean(parent.person);
    return isSingle && isOneThing && isName(label) && !isName(own) ? [{ ...link, label }] : [];
  });
}

const nameOfTop: Make = (world, r) => {
  const named = maybePick(r, namedElsewhere(world));
  const column = named && maybePick(r, ranks(world, named.child));
  const highest = r.chance(0.65);
  if (!named || !column || !isAlone(world, named.child, column, highest)) return null;
  const { one, verb } = superlative(named.child, column, highest);
  return draft(
    r,
    [
      `What is the ${named.label.phrase} of the ${one}?`,
      `Which ${named.child.one} ${verb}? Give the ${named.label.phrase}.`,
      `Find the ${named.label.phrase} of the ${one}.`,
    ],
    `SELECT ${columnSql(named.label, named.parent)} FROM ${joinSql(named)} ${orderSql(column, highest, 1, named.child)}`,
  );
};

/** A condition on the rows of `child`, or on the rows of `parent`, which have their names. */
function someOfEither(world: World, { child, parent }: Named, r: Random): Restriction | undefined {
  const table = r.chance(0.6) ? child : parent;
  return r.chance(0.5)
    ? someNumber(world, table, r, { qualified: true })
    : someCategory(world, table, r, { qualified: true });
}

const namesUnder: Make = (world, r) => {
  const named = maybePick(r, namedElsewhere(world));
  const of = named && someOfEither(world, named, r);
  if (!named || !of) return null;
  const [rows, names] = [rowsOf(named.child, of), plural(named.label.phrase)];
  return draft(
    r,
    [`What are the ${names} of the ${rows}?`, `List the ${names} of all ${rows}.`, `Show the ${names} of the ${rows}.`],
    `SELECT ${columnSql(named.label, named.parent)} FROM ${joinSql(named)} WHERE ${of.sql}`,
  );
};

const countUnder: Make = (world, r) => {
  const named = maybePick(r, namedElsewhere(world));
  const of =
    named &&
    (r.chance(0.5)
      ? someNumber(world, named.parent, r, { qualified: true })
      : someCategory(world, named.parent, r, { qualified: true }));
  if (!named || !of) return null;
  const rows = rowsOf(named.child, of);
  return draft(
    r,
    [`How many ${rows} are there?`, `What is the number of ${rows}?`, `Count the ${rows}.`],
    `SELECT COUNT(*) FROM ${joinSql(named)} WHERE ${of.sql}`,
  );
};

const averageUnder: Make = (world, r) => {
  const named = maybePick(r, namedElsewhere(world));
  const of = named && someCategory(world, named.parent, r, { qualified: true });
  const column = named && maybePick(r, numbersOf(named.child).filter(AGGREGATES.avg.fits));
  if (!named || !of || !column) return null;
  return draft(
    r,
    AGGREGATES.avg.phrasings(named.child, column, rowsOf(named.child, of), [of]),
    `SELECT AVG(${columnSql(column, named.child)}) FROM ${joinSql(named)} WHERE ${of.sql}`,
  );
};

const factOfNamed: Make = (world, r) => {
  const named = maybePick(r, namedElsewhere(world));
  const fact = named && maybePick(r, factsOf(named.child));
  const value = named && maybePick(r, uniqueLabels(world, { table: named.parent, label: named.label }));
  if (!named || !fact || value === undefined) return null;
  return draft(
    r,
    asksFor(named.child, fact, named.child.person ? value : `the ${rowOf(named.child)} ${value}`),
    `SELECT ${columnSql(fact, named.child)} FROM ${joinSql(named)} WHERE ${columnSql(named.label, named.parent)} = ${quoteText(value)}`,
  );
};

/** Counts the different rows of the other table that a row is linked to. */
function countedSql({ object }: Relation): string {
  return `COUNT(DISTINCT ${columnSql(object.ref, object.child)})`;
}

const countLinked: Make = (world, r) => {
  const relation = maybePick(r, relationsOf(world));
  const value = relation && someReferred(world, relation.subject, r);
  if (!relation || value === undefined) return null;
  const { subject, object, words } = relation;
  return draft(
    r,
    [
      `How many ${object.parent.many} ${verbOf(words).ask(called(subject.parent, value))}?`,
      `How many different ${object.parent.many} ${verbOf(words).ask(called(subject.parent, value))}?`,
    ],
    `SELECT ${countedSql(relation)} FROM ${joinSql(subject)} WHERE ${columnSql(labelOf(subject.parent)!, subject.parent)} = ${quoteText(value)}`,
  );
};

const mostLinked: Make = (world, r) => {
  const relation = maybePick(r, relationsOf(world));
  if (!relation) return null;
  const { subject, object, words } = relation;
  const [table, label] = [subject.parent, labelOf(subject.parent)!];
  const { one } = verbOf(words);
  const verb = one.startsWith("is linked to") ? "is linked to" : one;
  const who = table.person ? "who" : "that";
  return draft(
    r,
    [
      `Which ${table.one} ${verb} the most ${object.parent.many}?`,
      `What is the ${label.phrase} of the ${table.one} ${who} ${verb} the most ${object.parent.many}?`,
      `Find the ${table.one} ${who} ${verb} the most ${object.parent.many}.`,
    ],
    `SELECT ${columnSql(label, table)} FROM ${joinSql(subject)} GROUP BY ${columnSql(idOf(table), table)} ORDER BY ${countedSql(relation)} DESC LIMIT 1`,
  );
};

/** How many rows each row is linked to, such as the number of pets of each student. */
const countEachLinked: Make = (world, r) => {
  const relation = maybePick(r, relationsOf(world));
  if (!relation) return null;
  const { subject, object, words } = relation;
  const [table, label] = [subject.parent, labelOf(subject.parent)!];
  const { many } = verbOf(words);
  const of = `${table.many} ${table.person ? "who" : "that"} ${many} at least one ${object.parent.one}`;
  return draft(
    r,
    [
      `For each of the ${of}, give the ${label.phrase} and the number of ${object.parent.many}.`,
      `Of the ${of}, show the ${plural(label.phrase)} and how many ${object.parent.many} it is for each.`,
    ],
    `SELECT ${columnSql(label, table)}, ${countedSql(relation)} FROM ${joinSql(subject)} GROUP BY ${columnSql(idOf(table), table)}`,
  );
};

const neverLinked: Make = (world, r) => {
  const relation = maybePick(r, relationsOf(world));
  if (!relation) return null;
  const { subject, object, words } = relation;
  const [table, label] = [subject.parent, labelOf(subject.parent)!];
  const not = words.verb.startsWith("are ")
    ? `are not ${words.verb.slice(4)} any ${object.parent.one}`
    : verbOf(words).never(object.parent);
  const who = table.person ? "who" : "that";
  return draft(
    r,
    [
      `Which ${table.many} ${not}?`,
      `List the ${plural(label.phrase)} of the ${table.many} ${who} ${not}.`,
      `Find all ${table.many} ${who} ${not}.`,
    ],
    `SELECT ${columnSql(label)} FROM ${quoteName(table.name)} WHERE ${columnSql(idOf(table))} NOT IN (SELECT ${columnSql(subject.ref)} FROM ${quoteName(subject.child.name)}${subject.ref.nulls ? ` WHERE ${columnSql(subject.ref)} IS NOT NULL` : ""})`,
  );
};

/** The forms in this file. */
export const OWN_FORMS: readonly Form[] = [
  { name: "name_of_top", difficulty: "medium", make: nameOfTop },
  { name: "names_under", difficulty: "medium", several: true, make: namesUnder },
  { name: "count_named_under", difficulty: "medium", make: countUnder },
  { name: "average_named_under", difficulty: "medium", make: averageUnder },
  { name: "fact_of_named", difficulty: "medium", make: factOfNamed },
  { name: "count_linked", difficulty: "medium", make: countLinked },
  { name: "most_linked", difficulty: "hard", make: mostLinked },
  { name: "count_each_linked", difficulty: "medium", several: true, make: countEachLinked },
  { name: "never_linked", difficulty: "hard", several: true, make: neverLinked },
];
