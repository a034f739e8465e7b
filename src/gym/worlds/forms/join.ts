// Questions that join several tables.
import type { Random } from "../../../random.ts";
import { quoteName } from "../../sql/index.ts";
import { idOf, type World } from "../build.ts";
import { fill, plural } from "../english.ts";
import {
  cells,
  columnSql,
  isFull,
  joinSql,
  type Link,
  labelOf,
  linksOf,
  maybePick,
  numbersOf,
  onSql,
} from "../inspect-world.ts";
import { called, type Restriction, rowsOf, superlative, verbOf } from "../phrases.ts";
import { listTemplate, refersTo, someCategory, someReferred } from "../restrictions.ts";
import { countPhrasings } from "./count.ts";
import { draft, type Form, type Make } from "./form.ts";
import { listPhrasings } from "./list.ts";
import { AGGREGATES } from "./measure.ts";

export interface Relation {
  readonly subject: Link;
  readonly object: Link;
  readonly words: { readonly verb: string; readonly past?: readonly [string, string] };
}

/** Link tables that state who does what. */
export function relationsOf(world: World): Relation[] {
  const links = linksOf(world);
  return world.spec.tables.flatMap(({ name, relation }) => {
    const subject = links.find(({ child, ref }) => child.name === name && ref.name === relation?.subject);
    const object = links.find(({ child, ref }) => child.name === name && ref.name === relation?.object);
    return relation && subject && object ? [{ subject, object, words: relation }] : [];
  });
}

/** The SQL `subject JOIN link JOIN object`. */
function relationSql({ subject, object }: Relation): string {
  const { child, ref, parent } = subject;
  return `${quoteName(parent.name)} JOIN ${quoteName(child.name)} ON ${columnSql(ref, child)} = ${columnSql(idOf(parent), parent)} JOIN ${onSql(object)}`;
}

/** Asks who does something to a named object: "Which students take Algebra?" */
function subjectsOf(what: "list" | "count" | "average"): Make {
  return (world, r) => {
    const relation = maybePick(r, relationsOf(world));
    const value = relation && someReferred(world, relation.object, r);
    if (!relation || value === undefined) return null;
    const [table, label] = [relation.subject.parent, labelOf(relation.subject.parent)!];
    const { many } = verbOf(relation.words);
    const x = called(relation.object.parent, value);
    const who = table.person ? "who" : "that";
    const from = `FROM ${relationSql(relation)} WHERE ${refersTo(relation.object, value).sql}`;
    if (what === "list") {
      return draft(
        r,
        [
          `Which ${table.many} ${many} ${x}?`,
          `List the ${plural(label.phrase)} of the ${table.many} ${who} ${many} ${x}.`,
          `What are the ${plural(label.phrase)} of all ${table.many} ${who} ${many} ${x}?`,
        ],
        `SELECT DISTINCT ${columnSql(label, table)} ${from}`,
      );
    }
    if (what === "count") {
      return draft(
        r,
        [
          `How many ${table.many} ${many} ${x}?`,
          `How many different ${table.many} ${many} ${x}?`,
          `Count the ${table.many} ${who} ${many} ${x}.`,
        ],
        `SELECT COUNT(DISTINCT ${columnSql(idOf(table), table)}) ${from}`,
      );
    }
    const column = maybePick(
      r,
      numbersOf(table).filter(({ year }) => !year),
    );
    if (!column) return null;
    // A row that matches twice must count once, so rows are selected before they are averaged.
    const { subject, object } = relation;
    const chosen = `SELECT ${columnSql(subject.ref, subject.child)} FROM ${joinSql(object)} WHERE ${refersTo(object, value).sql}`;
    return draft(
      r,
      AGGREGATES.avg.phrasings(table, column, `${table.many} ${who} ${many} ${x}`, []),
      `SELECT AVG(${columnSql(column)}) FROM ${quoteName(table.name)} WHERE ${columnSql(idOf(table))} IN (${chosen})`,
    );
  };
}

/** Asks what a named subject does something to: "Which courses does Ana Ruiz take?" */
function objectsOf(what: "list" | "top" | "most"): Make {
  return (world, r) => {
    const relation = maybePick(r, relationsOf(world));
    const value = relation && someReferred(world, relation.subject, r);
    if (!relation || value === undefined) return null;
    const [table, label] = [relation.object.parent, labelOf(relation.object.parent)!];
    const { ask, many, one } = verbOf(relation.words);
    const whom = table.person ? "whom" : "that";
    const subjects = relation.subject.parent;
    const x = called(subjects, value);
    const from = `FROM ${relationSql(relation)} WHERE ${refersTo(relation.subject, value).sql}`;
    if (what === "list") {
      return draft(
        r,
        [
          `Which ${table.many} ${ask(x)}?`,
          `List the ${plural(label.phrase)} of the ${table.many} ${whom} ${x} ${one}.`,
          `What ${table.many} ${ask(x)}?`,
        ],
        `SELECT DISTINCT ${columnSql(label, table)} ${from}`,
      );
    }
    if (what === "top") {
      const column = maybePick(
        r,
        numbersOf(table).filter((number) => isFull(world, table, number)),
      );
      if (!column) return null;
      const best = superlative(table, column, true);
      return draft(
        r,
        [
          `${table.person ? "Who" : "What"} is the ${best.one} ${whom} ${x} ${one}?`,
          `Of the ${table.many} ${whom} ${x} ${one}, which ${best.verb}?`,
          `Which of the ${table.many} ${whom} ${x} ${one} ${best.verb}?`,
        ],
        `SELECT ${columnSql(label, table)} ${from} ORDER BY ${columnSql(column, table)} DESC LIMIT 1`,
      );
    }
    const of = someCategory(world, subjects, r, { qualified: true });
    if (!of) return null;
    const id = columnSql(idOf(table), table);
    return draft(
      r,
      [
        `Which ${table.one} ${ask(`the most ${rowsOf(subjects, of)}`, true)}?`,
        `What is the ${label.phrase} of the ${table.one} ${whom} the most ${rowsOf(subjects, of)} ${many}?`,
      ],
      `SELECT ${columnSql(label, table)} FROM ${relationSql(relation)} WHERE ${of.sql} GROUP BY ${id} ORDER BY COUNT(DISTINCT ${columnSql(idOf(subjects), subjects)}) DESC LIMIT 1`,
    );
  };
}

/** Follows two references, one after the other: loans of books by an author. */
function chain(
  world: World,
  r: Random,
  needsLabel: boolean,
): { near: Link; far: Link; value: string; restriction: Restriction; from: string } | undefined {
  const links = linksOf(world);
  const near = maybePick(
    r,
    links.filter(
      (link) =>
        (!needsLabel || link.child.label) &&
        listTemplate(link) &&
        links.some((next) => next.child === link.parent && next.parent !== link.child),
    ),
  );
  const far =
    near &&
    maybePick(
      r,
      links.filter((next) => next.child === near.parent && next.parent !== near.child),
    );
  const value = far && someReferred(world, far, r);
  if (!near || !far || value === undefined) return undefined;
  const last = refersTo(far, value);
  const after = fill(listTemplate(near)!, { v: rowsOf(near.parent, last) });
  return {
    near,
    far,
    value,
    restriction: { column: near.ref.name, sql: last.sql, after },
    from: `${joinSql(near)} JOIN ${onSql(far)}`,
  };
}

const countChain: Make = (world, r) => {
  const some = chain(world, r, false);
  if (!some) return null;
  return draft(
    r,
    countPhrasings(some.near.child, some.restriction),
    `SELECT COUNT(*) FROM ${some.from} WHERE ${some.restriction.sql}`,
  );
};

const listChain: Make = (world, r) => {
  const some = chain(world, r, true);
  if (!some) return null;
  const { child } = some.near;
  const label = labelOf(child)!;
  return draft(
    r,
    listPhrasings({ table: child, label }, some.restriction),
    `SELECT ${columnSql(label, child)} FROM ${some.from} WHERE ${some.restriction.sql}`,
  );
};

function measureChain(kind: "avg" | "sum" | "max"): Make {
  const { call, fits, phrasings } = AGGREGATES[kind];
  return (world, r) => {
    const some = chain(world, r, false);
    const column = some && maybePick(r, numbersOf(some.near.child).filter(fits));
    if (!some || !column) return null;
    const { child } = some.near;
    return draft(
      r,
      phrasings(child, column, rowsOf(child, some.restriction), [some.restriction]),
      `SELECT ${call}(${columnSql(column, child)}) FROM ${some.from} WHERE ${some.restriction.sql}`,
    );
  };
}

/** Counts rows that reference two named rows: flights from Lisbon to Rome. */
const countBetween: Make = (world, r) => {
  const links = linksOf(world);
  const [first, then] = r.sample(
    links.filter((link) => links.some((other) => other !== link && other.child === link.child)),
    2,
  );
  if (!first || !then || first.child !== then.child) return null;
  const [a, b] = links.indexOf(first) < links.indexOf(then) ? [first, then] : [then, first];
  const [idA, idB] = [cells(world, a.child, a.ref), cells(world, b.child, b.ref)];
  const at = r.int(0, idA.length - 1);
  const nameOf = ({ parent }: Link, id: unknown) =>
    cells(world, parent, labelOf(parent)!)[cells(world, parent, idOf(parent)).indexOf(id as never)];
  const [x, y] = [nameOf(a, idA[at]), nameOf(b, idB[at])];
  if (typeof x !== "string" || typeof y !== "string") return null;
  const same = a.parent === b.parent;
  const [ra, rb] = [refersTo(a, x, same ? "a" : undefined), refersTo(b, y, same ? "b" : undefined)];
  const from = `${quoteName(a.child.name)} JOIN ${onSql(a, same ? "a" : undefined)} JOIN ${onSql(b, same ? "b" : undefined)}`;
  return draft(r, countPhrasings(a.child, ra, rb), `SELECT COUNT(*) FROM ${from} WHERE ${ra.sql} AND ${rb.sql}`);
};

/** The forms in this file. */
export const JOIN_FORMS: readonly Form[] = [
  { name: "subjects_of", difficulty: "hard", several: true, make: subjectsOf("list") },
  { name: "count_subjects_of", difficulty: "hard", make: subjectsOf("count") },
  { name: "average_subjects_of", difficulty: "hard", make: subjectsOf("average") },
  { name: "objects_of", difficulty: "hard", several: true, make: objectsOf("list") },
  { name: "top_object_of", difficulty: "hard", make: objectsOf("top") },
  { name: "most_popular_object", difficulty: "hard", make: objectsOf("most") },
  { name: "count_chain", difficulty: "hard", make: countChain },
  { name: "list_chain", difficulty: "hard", several: true, make: listChain },
  { name: "average_chain", difficulty: "hard", make: measureChain("avg") },
  { name: "total_chain", difficulty: "hard", make: measureChain("sum") },
  { name: "highest_chain", difficulty: "hard", make: measureChain("max") },
  { name: "count_between", difficulty: "hard", make: countBetween },
];
