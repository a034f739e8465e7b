// Exponential moving average with bias correction, as in TensorBoard.

/** Smooths values; weight 0 leaves them unchanged, near 1 flattens them. */
export function ema(values: readonly number[], weight: number): number[] {
  if (weight <= 0) return [...values];
  let [last, debias] = [0, 0];
  return values.map((value) => {
    last = last * weight + (1 - weight) * value;
    debias = debias * weight + (1 - weight);
    return last / debias;
  });
}
