// Reward components with their weights, so that what is shown adds up to the total.

/** A component's weight: `weights` are in the order of the reward functions, and so are the logged names. */
export function rewardWeight(
  name: string,
  logged: readonly string[],
  weights: readonly number[] | null | undefined,
): number {
  return weights?.length === logged.length ? weights[logged.indexOf(name)]! : 1;
}

/** A component's label: "progress × 0.15", or only "correctness" if its weight is 1. */
export function rewardLabel(name: string, weight: number): string {
  const short = name.replace(/^reward_/, "").replaceAll("_", " ");
  return weight === 1 ? short : `${short} × ${Number(weight.toPrecision(3))}`;
}
