// How many cases a test tries: fewer in `npm test`, all in `npm run test:all`.

export const ALL = Boolean(process.env.SQLENV_TEST_ALL);

export function cases(quick: number, all: number): number {
  return ALL ? all : quick;
}

/** The first of these, or all. */
export function some<T>(quick: number, all: readonly T[]): readonly T[] {
  return ALL ? all : all.slice(0, quick);
}
