// The part of a test runner that the device suite uses, so that it runs with Node alone or in a browser: see
// device-suite.ts and browser-suite.ts.

interface Case {
  readonly name: string;
  readonly run: () => void | Promise<void>;
}

interface Group {
  readonly name: string;
  readonly before: (() => void)[];
  readonly after: (() => void)[];
  readonly items: (Case | Group)[];
}

const root: Group = { name: "", before: [], after: [], items: [] };
let current = root;

export function describe(name: string, body: () => void): void {
  const group: Group = { name, before: [], after: [], items: [] };
  const outer = current;
  outer.items.push(group);
  current = group;
  body();
  current = outer;
}

export function test(name: string, run: () => void | Promise<void>): void {
  current.items.push({ name, run });
}

type Row = unknown;
const each =
  (make: (name: string, run: () => void) => void) =>
  (rows: readonly Row[]) =>
  (name: string, run: (...row: never[]) => void): void => {
    for (const row of rows) {
      const values = (Array.isArray(row) ? row : [row]) as never[];
      let at = 0;
      make(
        name.replace(/%[isd]/g, () => String(values[at++])),
        () => run(...values),
      );
    }
  };
describe.each = each(describe);
test.each = each(test);

export function beforeAll(run: () => void): void {
  current.before.push(run);
}

export function afterAll(run: () => void): void {
  current.after.push(run);
}

export function expect(got: unknown, what = "") {
  const check = (isRight: boolean, want: string) => {
    if (!isRight) throw new Error(`${what ? `${what}: ` : ""}${String(got).slice(0, 200)} is not ${want}`);
  };
  const number = got as number;
  return {
    toBe: (want: unknown) => check(Object.is(got, want), String(want)),
    toEqual: (want: unknown) => check(isEqual(got, want), String(want).slice(0, 200)),
    toBeNaN: () => check(Number.isNaN(got), "NaN"),
    toBeGreaterThan: (least: number) => check(number > least, `above ${least}`),
    toBeGreaterThanOrEqual: (least: number) => check(number >= least, `at least ${least}`),
    toBeLessThan: (most: number) => check(number < most, `below ${most}`),
    toBeLessThanOrEqual: (most: number) => check(number <= most, `at most ${most}`),
    toThrow: (kind: new (...args: never[]) => Error) => {
      try {
        (got as () => void)();
      } catch (error) {
        check(error instanceof kind, kind.name);
        return;
      }
      check(false, `throwing ${kind.name}`);
    },
  };
}
/** Whether two values, or all that arrays and objects hold, are the same. */
function isEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  const keys = Object.keys(a) as (keyof typeof a)[];
  const isAlike = a.constructor === b.constructor && keys.length === Object.keys(b).length;
  return isAlike && keys.every((key) => Object.hasOwn(b, key) && isEqual(a[key], b[key]));
}

expect.fail = (message: string): never => {
  throw new Error(message);
};

export interface Outcome {
  readonly passed: number;
  readonly failed: readonly { readonly name: string; readonly error: string }[];
}

/** Runs all tests in order, or those whose name matches. */
export async function runAll(onFailure: (name: string, error: string) => void, wanted = /(?:)/): Promise<Outcome> {
  let passed = 0;
  const failed: { name: string; error: string }[] = [];
  const attempt = async (name: string, run: () => void | Promise<void>): Promise<boolean> => {
    try {
      await run();
      return true;
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      failed.push({ name, error: text });
      onFailure(name, text);
      return false;
    }
  };
  const visit = async (group: Group, path: string): Promise<void> => {
    for (const before of group.before) if (!(await attempt(`${path} (start)`, before))) return;
    for (const item of group.items) {
      const name = path ? `${path} > ${item.name}` : item.name;
      if ("items" in item) await visit(item, name);
      else if (wanted.test(name) && (await attempt(name, item.run))) passed++;
    }
    for (const after of group.after) await attempt(`${path} (end)`, after);
  };
  await visit(root, "");
  return { passed, failed };
}
