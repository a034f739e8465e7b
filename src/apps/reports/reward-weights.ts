// Reward components with their weights, so that what is shown adds up to the total.

/** A component's weight: the setting lists weights in the order of the reward functions, which is that of the log. */
export function rewardWeight(
  name: string,
  logged: readonly string[],
  weights: readonly number[] | null | undefined,
): number {
  return weights?.length === logged.length ? weights[logged.indexOf(name)]! : 1;
}

/** "progress × 0.15"; without a weight of its own, "correctness". */
export function rewardLabel(name: string, weight: number): string {
  const short = name.replace(/^reward_/, "").replaceAll("_", " ");
  return weight === 1 ? short : `${short} × ${Number(weight.toPrecision(3))}`;
}
