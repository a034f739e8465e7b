// voted@k: of several attempts at a question, the one whose result most of them share.

export interface Election {
  /** The chosen attempt: the first with the winning result. */
  readonly index: number;
  /** Attempts with its result; 0 where none has a result. */
  readonly votes: number;
}

/** Majority vote among attempts by their results; those without one do not vote, and the earlier result wins a tie. */
export function elect(ballots: readonly (string | undefined)[]): Election {
  const counts = new Map<string, Election>();
  ballots.forEach((ballot, index) => {
    if (ballot === undefined) return;
    const before = counts.get(ballot);
    counts.set(ballot, before ? { ...before, votes: before.votes + 1 } : { index, votes: 1 });
  });
  let best: Election = { index: 0, votes: 0 };
  for (const election of counts.values()) if (election.votes > best.votes) best = election;
  return best;
}
