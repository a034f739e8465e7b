// How much a test tries: less in `npm test`, everything in `npm run test:all`, and in `npm run test:slow`, which follows
// `npm test`, what that left out.

export const ALL = Boolean(process.env.SQLENV_TEST_ALL);

/** Whether quick tests run: not in `npm run test:slow`. For files that have both kinds. */
export const QUICK = !process.env.SQLENV_TEST_REST;

export function cases(quick: number, all: number): number {
  return ALL ? all : quick;
}

/** The first of these, all, or (`npm run test:slow`) the others. */
export function some<T>(quick: number, all: readonly T[]): readonly T[] {
  return all.slice(QUICK ? 0 : quick, ALL ? undefined : quick);
}
