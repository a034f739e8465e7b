// Questions about rows by their child rows: which one has the most, how many each has.
import { quoteName } from "../../sql/index.ts";
import { idOf, type World } from "../build.ts";
import { plural } from "../english.ts";
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
  soleLinksOf,
  verbLinksOf,
} from "../inspect-world.ts";
import { countedBy, extremesOf, rowOf, rowsOf, verbOf } from "../phrases.ts";
import { someCategory, someNumber } from "../restrictions.ts";
import { draft, type Form, type Make } from "./form.ts";
import { someGroups } from "./group.ts";
import { AGGREGATES } from "./measure.ts";

/** Lists parents that have at least one child row of some kind. */
const parentsWith: Make = (world, r) => {
  const link = maybePick(r, verbLinksOf(world));
  const of =
    link &&
    (r.chance(0.5)
      ? someCategory(world, link.child, r, { qualified: true })
      : someNumber(world, link.child, r, { qualified: true, low: 0.6, high: 0.97 }));
  if (!link || !of) return null;
  const { child, parent, ref } = link;
  const { many } = verbOf(ref);
  const label = labelOf(parent)!;
  const who = parent.person ? "who" : "that";
  return draft(
    r,
    [
      `Which ${parent.many} ${many} at least one ${rowOf(child, of)}?`,
      `Which ${parent.many} ${many} ${rowsOf(child, of)}?`,
      `List the ${plural(label.phrase)} of the ${parent.many} ${who} ${many} at least one ${rowOf(child, of)}.`,
    ],
    `SELECT DISTINCT ${columnSql(label, parent)} FROM ${joinSql(link)} WHERE ${of.sql}`,
  );
};

function childCounts(world: World, { child, ref, parent }: Link): Map<unknown, number> {
  const counts = new Map<unknown, number>(cells(world, parent, idOf(parent)).map((id) => [id, 0]));
  for (const id of cells(world, child, ref)) if (id !== null) counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}

const countEach: Make = (world, r) => {
  const link = maybePick(r, verbLinksOf(world));
  if (!link) return null;
  const { child, ref, parent } = link;
  const isSole = soleLinksOf(world).some((sole) => sole.ref === ref);
  const label = labelOf(parent)!;
  const everyHasOne = [...childCounts(world, link).values()].every((count) => count > 0);
  const none = everyHasOne ? "" : r.pick([`, including those with none`, `, counting zero for those with none`]);
  const { ask, one } = verbOf(ref);
  const id = columnSql(idOf(parent), parent);
  return draft(
    r,
    [
      `How many ${child.many} ${ask(`each ${parent.one}`)}? Give the ${label.phrase} and the number${none}.`,
      `Show the ${label.phrase} of each ${parent.one} and how many ${child.many} ${parent.person ? "they" : "it"} ${parent.person ? verbOf(ref).many : one}${none}.`,
      isSole && `For each ${parent.one}, give the ${label.phrase} and the number of ${child.many}${none}.`,
    ],
    everyHasOne
      ? `SELECT ${columnSql(label, parent)}, COUNT(*) FROM ${joinSql(link)} GROUP BY ${id}`
      : `SELECT ${columnSql(label, parent)}, COUNT(${columnSql(ref, child)}) FROM ${quoteName(parent.name)} LEFT JOIN ${quoteName(child.name)} ON ${columnSql(ref, child)} = ${id} GROUP BY ${id}`,
  );
};

const parentWithMost: Make = (world, r) => {
  const link = maybePick(r, verbLinksOf(world));
  if (!link) return null;
  const { child, ref, parent } = link;
  const [first, next] = [...childCounts(world, link).values()].sort((a, b) => b - a);
  if (first === next) return null;
  const label = labelOf(parent)!;
  const { one } = verbOf(ref);
  return draft(
    r,
    [
      `Which ${parent.one} ${one} the most ${child.many}?`,
      parent.person
        ? `Who ${one} the most ${child.many}?`
        : `Which ${parent.one} ${one} more ${child.many} than any other?`,
      `What is the ${label.phrase} of the ${parent.one} ${parent.person ? "who" : "that"} ${one} the most ${child.many}?`,
      (ref.verb ?? "have") === "have" && `Find the ${parent.one} with the most ${child.many}.`,
    ],
    `SELECT ${columnSql(label, parent)} FROM ${joinSql(link)} GROUP BY ${columnSql(idOf(parent), parent)} ORDER BY COUNT(*) DESC LIMIT 1`,
  );
};

function parentWithBest(kind: "avg" | "sum"): Make {
  const { call, fits } = AGGREGATES[kind];
  return (world, r) => {
    const link = maybePick(r, soleLinksOf(world));
    const column =
      link &&
      maybePick(
        r,
        numbersOf(link.child).filter((number) => fits(number) && isFull(world, link.child, number)),
      );
    if (!link || !column) return null;
    const { child, parent } = link;
    const label = labelOf(parent)!;
    const highest = kind === "sum" || r.chance(0.65);
    const word = `${extremesOf(column)[highest ? 0 : 1]} ${kind === "avg" ? "average" : "total"} ${column.phrase}`;
    const their = parent.person ? "their" : "its";
    const counted = kind === "sum" ? countedBy(column) : undefined;
    return draft(
      r,
      [
        counted
          ? `Which ${parent.one} has the most ${counted} over all ${their} ${child.many} together?`
          : `Which ${parent.one} has the ${word} over all ${their} ${child.many}?`,
        `What is the ${label.phrase} of the ${parent.one} whose ${child.many} have the ${word}?`,
        `Find the ${parent.one} whose ${child.many} have the ${word}.`,
      ],
      `SELECT ${columnSql(label, parent)} FROM ${joinSql(link)} GROUP BY ${columnSql(idOf(parent), parent)} ORDER BY ${call}(${columnSql(column, child)})${highest ? " DESC" : ""} LIMIT 1`,
    );
  };
}

/** Counts child rows by a category of the parent: "How many books are there for each country of the author?" */
const countPerParentGroup: Make = (world, r) => {
  const link = maybePick(
    r,
    linksOf(world).filter(({ child, ref }) => isFull(world, child, ref)),
  );
  const group = link && someGroups(world, link.parent, r);
  if (!link || !group) return null;
  const { child, ref, parent } = link;
  return draft(
    r,
    [
      `How many ${child.many} are there for each ${group.phrase} of the ${ref.phrase}?`,
      `Count the ${child.many} for each ${group.phrase} of the ${ref.phrase}.`,
      `Group the ${child.many} by the ${group.phrase} of the ${ref.phrase} and count them.`,
    ],
    `SELECT ${columnSql(group, parent)}, COUNT(*) FROM ${joinSql(link)} GROUP BY ${columnSql(group, parent)}`,
  );
};

/** The forms in this file. */
export const PARENT_FORMS: readonly Form[] = [
  { name: "parents_with", difficulty: "medium", several: true, make: parentsWith },
  { name: "count_each", difficulty: "medium", several: true, make: countEach },
  { name: "parent_with_most", difficulty: "medium", make: parentWithMost },
  { name: "parent_with_best_average", difficulty: "medium", make: parentWithBest("avg") },
  { name: "parent_with_best_total", difficulty: "medium", make: parentWithBest("sum") },
  { name: "count_per_parent_group", difficulty: "medium", several: true, make: countPerParentGroup },
];
