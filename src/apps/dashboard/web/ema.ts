// Smoothing as people know it from other tools: an exponential mean that does not favour the first value.

/** Each value with what came before it; weight 0 changes nothing, near 1 almost flattens. */
export function ema(values: readonly number[], weight: number): number[] {
  if (weight <= 0) return [...values];
  let [last, debias] = [0, 0];
  return values.map((value) => {
    last = last * weight + (1 - weight) * value;
    debias = debias * weight + (1 - weight);
    return last / debias;
  });
}
