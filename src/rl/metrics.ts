// Metrics between two lines of the log: sums and counts, as plain data that a checkpoint can hold.

/** By name: the sum of a metric's values, and how many there were. */
export type Sums = Readonly<Record<string, readonly [sum: number, count: number]>>;

/** With some more values; what is not a number is left out. */
export function added(sums: Sums, metrics: Readonly<Record<string, number>>): Sums {
  const finite = Object.entries(metrics).filter(([, value]) => Number.isFinite(value));
  const changed = finite.map(([name, value]) => {
    const [sum, count] = sums[name] ?? [0, 0];
    return [name, [sum + value, count + 1]] as const;
  });
  return { ...sums, ...Object.fromEntries(changed) };
}

export function meansOf(sums: Sums): Record<string, number> {
  return Object.fromEntries(Object.entries(sums).map(([name, [sum, count]]) => [name, sum / count]));
}
