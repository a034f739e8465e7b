// voted@k: chooses, among several attempts at a question, the one whose result most of them share.

export interface Election {
  /** Index of the chosen attempt: the first with the winning result. */
  readonly index: number;
  /** Number of attempts with this result; 0 if none has a result. */
  readonly votes: number;
}

/** Majority vote by results. Attempts without a result do not vote; the earlier result wins a tie. */
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
