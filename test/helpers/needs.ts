// Programs that some tests need and a machine may not have. Where one is missing its tests are skipped, and their name
// says why; where SQLENV_TEST_NEEDS lists it, because CI has installed it, a missing one is an error.

const needed = (process.env.SQLENV_TEST_NEEDS ?? "").split(",");

/** Suffix for the name of a test that is skipped without this program; empty if it is installed. */
export function without(program: string, isHere: boolean, remedy: string): string {
  if (isHere) return "";
  if (needed.includes(program))
    throw new Error(`SQLENV_TEST_NEEDS lists ${program}, and it was not found; ${remedy}, or take it off the list`);
  return ` (skipped: no ${program}; ${remedy})`;
}
