// The session's score: each player's first attempt at each question.

/** Counts first attempts; trying again does not change the score. */
export class Tally {
  /** By player, then by question: whether the first attempt was right. */
  readonly #attempts = new Map<string, Map<string, boolean>>();

  count(player: string, question: string, isRight: boolean): void {
    const attempts = this.#attempts.get(player) ?? new Map<string, boolean>();
    this.#attempts.set(player, attempts);
    if (!attempts.has(question)) attempts.set(question, isRight);
  }

  /** Such as "You: 2 of 3 right. The model: 1 of 3 right."; empty before the first attempt. */
  get text(): string {
    return [...this.#attempts]
      .map(([player, attempts]) => {
        const right = [...attempts.values()].filter(Boolean).length;
        return `${playerName(player)}: ${right} of ${attempts.size} right.`;
      })
      .join(" ");
  }

  /** Who won a question that both the person and the model have tried; empty otherwise. */
  duel(question: string): string {
    const [you, model] = ["person", "model"].map((player) => this.#attempts.get(player)?.get(question));
    if (you === undefined || model === undefined) return "";
    if (you === model) return you ? "You and the model are both right." : "You and the model are both wrong.";
    return you ? "You beat the model on this one." : "The model beat you on this one.";
  }
}

function playerName(player: string): string {
  return player === "person" ? "You" : `The ${player}${player === "model" ? "" : " player"}`;
}
