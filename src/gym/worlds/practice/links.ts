// References between the tables of a practice world, and their phrases.
import { plural } from "../english.ts";
import type { RefColumn, TableSpec } from "../spec.ts";
import { columnName, isHeldOut } from "./names.ts";
import type { Noun, Sketch } from "./spec.ts";

/** The phrases of a reference: what follows the row's noun, and the verb of the referenced row. */
interface Relation {
  readonly where: string;
  readonly verb: string;
  readonly past?: readonly [string, string];
}

const RELATIONS: Readonly<Record<Noun["nature"], readonly Relation[]>> = {
  person: [
    { where: "of {v}", verb: "have" },
    { where: "owned by {v}", verb: "own" },
    { where: "managed by {v}", verb: "manage" },
    { where: "supervised by {v}", verb: "supervise" },
    { where: "led by {v}", verb: "lead" },
    { where: "sponsored by {v}", verb: "sponsor" },
    { where: "chosen by {v}", verb: "choose", past: ["chose", "chosen"] },
    { where: "assigned to {v}", verb: "have" },
    { where: "belonging to {v}", verb: "have" },
    { where: "handled by {v}", verb: "handle" },
    { where: "ordered by {v}", verb: "order", past: ["ordered", "ordered"] },
    { where: "found by {v}", verb: "find", past: ["found", "found"] },
    { where: "by {v}", verb: "have" },
    { where: "made by {v}", verb: "make", past: ["made", "made"] },
    { where: "for {v}", verb: "have" },
    { where: "looked after by {v}", verb: "look after" },
  ],
  place: [
    { where: "in {v}", verb: "have" },
    { where: "at {v}", verb: "have" },
    { where: "from {v}", verb: "have" },
    { where: "near {v}", verb: "have" },
    { where: "of {v}", verb: "have" },
    { where: "kept in {v}", verb: "keep" },
    { where: "stored at {v}", verb: "store" },
    { where: "hosted by {v}", verb: "host" },
    { where: "sent to {v}", verb: "receive" },
    { where: "housed in {v}", verb: "house" },
    { where: "run by {v}", verb: "run" },
    { where: "offered by {v}", verb: "offer" },
  ],
  thing: [
    { where: "of {v}", verb: "have" },
    { where: "for {v}", verb: "have" },
    { where: "linked to {v}", verb: "have" },
    { where: "belonging to {v}", verb: "have" },
    { where: "under {v}", verb: "have" },
    { where: "that use {v}", verb: "serve" },
    { where: "included in {v}", verb: "include" },
    { where: "covered by {v}", verb: "cover" },
    { where: "attached to {v}", verb: "have" },
    { where: "paired with {v}", verb: "have" },
    { where: "contained in {v}", verb: "contain" },
    { where: "on {v}", verb: "carry" },
  ],
};

/** Samples references to one or two earlier tables with labels; in a few worlds some tables are isolated. */
export function drawRefs(sketch: Sketch, noun: Noun): RefColumn[] {
  const { r, tables, nouns } = sketch;
  const targets = tables.filter((table) => table.label && table.columns.some(({ kind }) => kind === "id"));
  const count = r.pickWeighted([
    [0, 1],
    [1, 6],
    [2, 4],
  ] as const);
  return r.sample(targets, count).flatMap((target) => {
    const nature = nouns.get(target)!.nature;
    const relation = r.pick(
      RELATIONS[nature].filter(({ verb }) => noun.nature !== "person" || !NOT_DONE_TO_PEOPLE.has(verb)),
    );
    return refTo(sketch, target, relation) ?? [];
  });
}

const NOT_DONE_TO_PEOPLE = new Set("own order make handle keep store include contain cover carry".split(" "));

function refTo({ r, style }: Sketch, target: TableSpec, { where, verb, past }: Relation): RefColumn | undefined {
  const name = columnName(r, style, style.ref.replace("{one}", target.one));
  if (isHeldOut(name)) return undefined;
  const said = r.chance(0.35) ? where.replace("{v}", `the ${target.one} {v}`) : where;
  return {
    kind: "ref",
    name,
    phrase: target.one,
    table: target.name,
    where: said,
    through: where,
    verb,
    ...(past ? { past } : {}),
    ...(r.chance(0.3) ? { every: true } : {}),
  };
}

/** What the rows of a link table state, by the kind of subject. */
const DEEDS: Readonly<
  Record<Noun["nature"], readonly (readonly [verb: string, past?: string, participle?: string])[]>
> = {
  person: [
    ["visit", "visited", "visited"],
    ["own"],
    ["use"],
    ["like"],
    ["know"],
    ["carry"],
    ["buy", "bought", "bought"],
    ["collect"],
    ["review", "reviewed", "reviewed"],
    ["order", "ordered", "ordered"],
    ["choose", "chose", "chosen"],
    ["need"],
    ["study"],
    ["describe", "described", "described"],
    ["see", "saw", "seen"],
    ["prefer"],
    ["recommend"],
    ["test", "tested", "tested"],
  ],
  place: [
    ["host"],
    ["use"],
    ["hold"],
    ["offer"],
    ["display"],
    ["need"],
    ["keep"],
    ["lend", "lent", "lent"],
    ["supply"],
    ["own"],
  ],
  thing: [
    ["use"],
    ["contain"],
    ["need"],
    ["include"],
    ["cover"],
    ["mention"],
    ["require"],
    ["support"],
    ["match"],
    ["follow"],
  ],
};

/** The relation that a link table states between the tables of its first two references. */
export function relationOf(
  { r, tables, nouns }: Sketch,
  [subject, object]: readonly RefColumn[],
): Pick<TableSpec, "relation"> {
  const doer = tables.find((table) => table.name === subject?.table);
  if (!subject || !object || !doer) return {};
  const [verb, past, participle] = r.pick(DEEDS[nouns.get(doer)!.nature]);
  const tense = past && participle ? { past: [past, participle] as const } : {};
  return { relation: { subject: subject.name, verb, ...tense, object: object.name } };
}

/** Link tables are often named after what they link: `student_course`. */
export function linkNoun({ r }: Sketch, [a, b]: readonly RefColumn[]): Noun | undefined {
  if (!a || !b || a.phrase.includes(" ") || b.phrase.includes(" ") || !r.chance(0.5)) return undefined;
  const one = `${a.phrase} ${b.phrase}${r.chance(0.4) ? r.pick([" link", " pair", " entry"]) : ""}`;
  return { one, many: plural(one), nature: "thing" };
}
