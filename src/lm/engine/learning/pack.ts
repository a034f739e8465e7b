// Packs contexts to learn from as a forest of spans: a common prefix is computed once, forward and backward.
import type { Span } from "../../model/layout.ts";

/** Minimum length of a common prefix that gets a span of its own. */
const MIN_SHARED = 8;

export interface Packed {
  readonly spans: readonly Span[];
  /** The row that holds the token at a position of a context. */
  rowOf(context: number, position: number): number;
  /** Number of rows; `tokens` is the number without sharing. */
  readonly rows: number;
  readonly tokens: number;
}

/** Packs contexts deterministically. */
export function packContexts(contexts: readonly (readonly number[])[]): Packed {
  const spans: Span[] = [];
  const firstRows: number[] = [];
  const pieces = contexts.map((): { from: number; row: number }[] => []);
  let rows = 0;

  const addSpan = (tokens: readonly number[], parent: number | null): number => {
    spans.push({ tokens, parent });
    firstRows.push(rows);
    rows += tokens.length;
    return spans.length - 1;
  };

  /** Adds the rest of these contexts, which are all equal up to `from`, after a span. */
  const addAll = (members: readonly number[], from: number, parent: number | null): void => {
    for (const group of groupsByToken(contexts, members, from)) addGroup(group, from, parent);
  };

  /** Adds contexts that continue with the same token. */
  const addGroup = (group: readonly number[], from: number, parent: number | null): void => {
    const end = commonEnd(contexts, group, from);
    const parted = end - from < MIN_SHARED ? groupsByToken(contexts, group, end) : [group];
    if (parted.length > 1) {
      // The common prefix is too short for its own span; smaller groups with a longer common prefix may still share
      // one.
      for (const smaller of parted) addGroup(smaller, from, parent);
      return;
    }
    const span = addSpan(contexts[group[0]!]!.slice(from, end), parent);
    for (const member of group) pieces[member]!.push({ from, row: firstRows[span]! });
    addAll(
      group.filter((member) => contexts[member]!.length > end),
      end,
      span,
    );
  };
  addAll(
    contexts.map((_, i) => i),
    0,
    null,
  );
  return {
    spans,
    rowOf(context, position) {
      const piece = pieces[context]!.findLast(({ from }) => from <= position)!;
      return piece.row + position - piece.from;
    },
    rows,
    tokens: contexts.reduce((sum, { length }) => sum + length, 0),
  };
}

/** Groups contexts by the token at a position, in order of first appearance. */
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

/** The first position at which these contexts do not all have the same token. */
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
