// Contexts to learn from, packed as a forest: what several have in common at their beginning is computed once, forward and back.
import type { Run } from "../../model/layout.ts";

/** Shorter common beginnings are not worth a run of their own. */
const MIN_SHARED = 8;

export interface Packed {
  readonly runs: readonly Run[];
  /** Row of the token at a position of a context. */
  rowOf(context: number, position: number): number;
  /** Rows in all, and tokens if nothing were shared. */
  readonly rows: number;
  readonly tokens: number;
}

/** Packs contexts; depends on nothing but the contexts. */
export function packContexts(contexts: readonly (readonly number[])[]): Packed {
  const runs: Run[] = [];
  const firstRows: number[] = [];
  const pieces = contexts.map((): { from: number; row: number }[] => []);
  let rows = 0;

  const addRun = (tokens: readonly number[], parent: number | null): number => {
    runs.push({ tokens, parent });
    firstRows.push(rows);
    rows += tokens.length;
    return runs.length - 1;
  };

  /** Places the rest of these contexts, all equal up to `from`, behind a run. */
  const place = (members: readonly number[], from: number, parent: number | null): void => {
    for (const group of groupsByToken(contexts, members, from)) placeGroup(group, from, parent);
  };

  /** The same for contexts that go on with the same token. */
  const placeGroup = (group: readonly number[], from: number, parent: number | null): void => {
    const end = commonEnd(contexts, group, from);
    const parted = end - from < MIN_SHARED ? groupsByToken(contexts, group, end) : [group];
    if (parted.length > 1) {
      // Too little to share by all; but those that go on together behind it may share more, this little included.
      for (const smaller of parted) placeGroup(smaller, from, parent);
      return;
    }
    const run = addRun(contexts[group[0]!]!.slice(from, end), parent);
    for (const member of group) pieces[member]!.push({ from, row: firstRows[run]! });
    place(
      group.filter((member) => contexts[member]!.length > end),
      end,
      run,
    );
  };
  place(
    contexts.map((_, i) => i),
    0,
    null,
  );
  return {
    runs,
    rowOf(context, position) {
      const piece = pieces[context]!.findLast(({ from }) => from <= position)!;
      return piece.row + position - piece.from;
    },
    rows,
    tokens: contexts.reduce((sum, { length }) => sum + length, 0),
  };
}

/** Contexts by the token at a position, in order of first appearance. */
function groupsByToken(contexts: readonly (readonly number[])[], members: readonly number[], at: number): number[][] {
  const groups = new Map<number, number[]>();
  for (const member of members) {
    const token = contexts[member]![at]!;
    const group = groups.get(token);
    if (group) group.push(member);
    else groups.set(token, [member]);
  }
  return [...groups.values()];
}

/** First position at which not all of these contexts have the same token. */
function commonEnd(contexts: readonly (readonly number[])[], group: readonly number[], from: number): number {
  const first = contexts[group[0]!]!;
  let end = first.length;
  for (const member of group.slice(1)) {
    const other = contexts[member]!;
    let at = from;
    while (at < end && at < other.length && other[at] === first[at]) at++;
    end = at;
  }
  return end;
}
