// Metrics accumulated between two lines of the log, as plain data for checkpoints.

/** By name: the sum and the number of a metric's values. */
export type Sums = Readonly<Record<string, readonly [sum: number, count: number]>>;

/** Adds values; those that are not finite are left out. */
export function added(sums: Sums, metrics: Readonly<Record<string, number>>): Sums {
  const finite = Object.entries(metrics).filter(([, value]) => Number.isFinite(value));
  const changed = finite.map(([name, value]) => {
    // Names are an environment's own, such as "constructor", which every object inherits.
    const [sum, count] = Object.hasOwn(sums, name) ? sums[name]! : [0, 0];
    return [name, [sum + value, count + 1]] as const;
  });
  return { ...sums, ...Object.fromEntries(changed) };
}

export function meansOf(sums: Sums): Record<string, number> {
  return Object.fromEntries(Object.entries(sums).map(([name, [sum, count]]) => [name, sum / count]));
}
