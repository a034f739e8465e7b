// Smoothing without lag, and thinning to as many points as a picture can show.

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** An interval at x. */
export interface Spread {
  readonly x: number;
  readonly low: number;
  readonly high: number;
}

/** Standard deviation of the smoothing kernel in points: 1/40 of all, 0 below 12. */
export function reach(points: number): number {
  return points < 12 ? 0 : Math.max(1, Math.round(points / 40));
}

/** Gaussian smoothing with a centered kernel, so that nothing is shifted. */
export function smooth(points: readonly Point[], width = reach(points.length)): Point[] {
  if (width === 0) return [...points];
  return points.map(({ x }, i) => {
    let [sum, weights] = [0, 0];
    for (let j = Math.max(0, i - 3 * width); j <= Math.min(points.length - 1, i + 3 * width); j++) {
      const weight = Math.exp(-0.5 * ((j - i) / width) ** 2);
      sum += weight * points[j]!.y;
      weights += weight;
    }
    return { x, y: sum / weights };
  });
}

/** At most `max` points: means of equally sized bins. */
export function thin(points: readonly Point[], max = 600): Point[] {
  if (points.length <= max) return [...points];
  return Array.from({ length: max }, (_, i) => {
    const share = points.slice(Math.floor((i * points.length) / max), Math.floor(((i + 1) * points.length) / max));
    const mean = (of: (point: Point) => number) => share.reduce((sum, point) => sum + of(point), 0) / share.length;
    return { x: mean(({ x }) => x), y: mean(({ y }) => y) };
  });
}
