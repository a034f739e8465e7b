// Execution accuracy by the two published rules: whether a query's result equals the gold result.
//  - spider: the "execution match" of Spider's test-suite evaluator with its default flags. DISTINCT is removed from both
//    queries; duplicate rows count; columns may be in another order; the order of rows counts if the gold's text
//    contains ORDER BY anywhere; two empty results are equal.
//  - bird: compares rows as sets: neither their order nor duplicates count, but the order of columns does.
// Both compare cells as Python does: 1 equals 1.0 but not '1', NULL equals NULL, text must be exactly equal.
import { MAX_GOLD_BYTES, MAX_GOLD_ROWS } from "../../data/index.ts";
import { type Cell, type Database, type SqlError, type StorageClass, tokenizeSql } from "../../sql/index.ts";

export const EXECUTION_RULES = ["spider", "bird"] as const;

export type ExecutionRule = (typeof EXECUTION_RULES)[number];

/** Maximum cells compared while searching for an order of columns; a result that needs more does not match. */
export const MAX_COLUMN_SEARCH = 20_000_000;

/** All rows of a result, with the storage class of each cell. */
export interface Executed {
  readonly rows: readonly (readonly Cell[])[];
  readonly classes: readonly (readonly StorageClass[])[];
}

export type Execution =
  | { readonly ok: true; readonly result: Executed }
  | { readonly ok: false; readonly error: SqlError };

/** The results of a gold query as each rule runs it. */
export interface GoldExecution {
  readonly spider: Execution;
  readonly bird: Execution;
  /** Whether the order of rows counts by Spider's rule. */
  readonly ordered: boolean;
}

export interface Verdict {
  readonly spider: boolean;
  readonly bird: boolean;
  /** The query's result; null if it failed, and then `error` says why. */
  readonly result: Executed | null;
  readonly error: SqlError | null;
  /** Whether the query or the gold query hit the time limit, which depends on the machine, not only on the query. */
  readonly stopped: boolean;
}

/** Whether a query hit the time limit: another machine might finish it. */
export function isStopped(execution: Execution): boolean {
  return !execution.ok && execution.error.error_class === "timeout";
}

/** Runs a query and keeps the whole result; a result that is too large is an error. */
export function execute(database: Database, sql: string): Execution {
  const tokens = tokenizeSql(sql);
  const end = tokens.findIndex(({ text }) => text === ";");
  // Python's sqlite3 module treats a second semicolon as a second statement.
  if (end >= 0 && end < tokens.length - 1) return { ok: false, error: SEVERAL };
  const ran = database.run(sql, { maxRows: MAX_GOLD_ROWS, maxBytes: MAX_GOLD_BYTES, classes: true });
  if (!ran.ok) return ran;
  const { rows, classes = [], has_more } = ran.table;
  if (has_more) return { ok: false, error: { error_class: "too_large", message: "the result is too large" } };
  return { ok: true, result: { rows, classes } };
}

const SEVERAL: SqlError = { error_class: "not_select", message: "only one statement is allowed" };

/** Runs a gold query for both rules. */
export function executeGold(database: Database, sql: string): GoldExecution {
  const rewritten = asSpiderRuns(sql);
  const bird = execute(database, sql);
  const spider = rewritten === sql ? bird : execute(database, rewritten);
  return { spider, bird, ordered: ordersBySpider(rewritten) };
}

/** Judges a query by both rules. */
export function judge(database: Database, sql: string, gold: GoldExecution): Verdict {
  const rewritten = asSpiderRuns(sql);
  const bird = execute(database, sql);
  const spider = rewritten === sql ? bird : execute(database, rewritten);
  return {
    spider: spider.ok && gold.spider.ok && sameBySpider(gold.spider.result, spider.result, gold.ordered),
    bird: bird.ok && gold.bird.ok && sameByBird(gold.bird.result, bird.result),
    result: bird.ok ? bird.result : null,
    error: bird.ok ? null : bird.error,
    stopped: [spider, bird, gold.spider, gold.bird].some(isStopped),
  };
}

/**
 * Rewrites a query as Spider's evaluator runs it: the first statement, without DISTINCT, with split operators rejoined.
 */
export function asSpiderRuns(sql: string): string {
  const joined = sql.replaceAll("> =", ">=").replaceAll("< =", "<=").replaceAll("! =", "!=");
  const tokens = tokenizeSql(joined);
  const end = tokens.find(({ text }) => text === ";")?.end ?? joined.length;
  let [text, from] = ["", 0];
  for (const { kind, key, start, end: after } of tokens) {
    if (kind !== "word" || key !== "DISTINCT" || start >= end) continue;
    text += joined.slice(from, start);
    from = after;
  }
  return (text + joined.slice(from, end)).replace(/YEAR\s*\(\s*CURDATE\s*\(\s*\)\s*\)\s*/gi, "2020");
}

/**
 * Whether the order of rows counts by Spider's rule, which searches the gold's text: ORDER BY in a subquery counts too.
 */
export function ordersBySpider(gold: string): boolean {
  return gold.toLowerCase().includes("order by");
}

/** A key that is equal for results with the same multiset of rows. */
export function resultKey(result: Executed): string {
  return JSON.stringify(rowKeys(result).sort());
}

/** Whether two results are equal by BIRD's rule. */
export function sameByBird(gold: Executed, predicted: Executed): boolean {
  const [wanted, given] = [new Set(rowKeys(gold)), new Set(rowKeys(predicted))];
  return sameSet(wanted, given);
}

/** Whether two results are equal by Spider's rule. */
export function sameBySpider(gold: Executed, predicted: Executed, ordered: boolean): boolean {
  const [rows, others] = [gold.rows.length, predicted.rows.length];
  if (rows === 0 && others === 0) return true;
  if (rows !== others) return false;
  const width = gold.rows[0]!.length;
  if (predicted.rows[0]!.length !== width) return false;
  if (!sameUnorderedRows(gold, predicted, ordered)) return false;
  const [wanted, given] = [columnsOf(gold), columnsOf(predicted)];
  return ordered ? sameColumns(wanted, given) : hasColumnOrder(wanted, given);
}

/**
 * The evaluator's first check: rows must be equal once their cells are sorted by what Python prints. It mostly saves
 * time, but it can also decide: 3 and 3.0 are equal but printed differently, so a row that also has 30 sorts
 * differently and does not match.
 */
function sameUnorderedRows(gold: Executed, predicted: Executed, ordered: boolean): boolean {
  const [wanted, given] = [sortedRowKeys(gold), sortedRowKeys(predicted)];
  return ordered ? wanted.every((key, i) => key === given[i]) : sameSet(new Set(wanted), new Set(given));
}

function sameSet(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  if (one.size !== other.size) return false;
  for (const key of one) if (!other.has(key)) return false;
  return true;
}

function rowKeys({ rows, classes }: Executed): string[] {
  return rows.map((row, r) => JSON.stringify(row.map((cell, c) => cellKey(cell, classes[r]![c]!))));
}

function sortedRowKeys({ rows, classes }: Executed): string[] {
  return rows.map((row, r) => {
    const cells = row.map((cell, c) => {
      const type = classes[r]![c]!;
      return { key: cellKey(cell, type), printed: printedByPython(cell, type) };
    });
    cells.sort((a, b) => (a.printed < b.printed ? -1 : a.printed > b.printed ? 1 : 0));
    return JSON.stringify(cells.map(({ key }) => key));
  });
}

/** A key for each cell, column by column. */
function columnsOf({ rows, classes }: Executed): string[][] {
  return rows[0]!.map((_, c) => rows.map((row, r) => cellKey(row[c]!, classes[r]![c]!)));
}

/** A key that is equal for cells that Python considers equal. */
function cellKey(cell: Cell, type: StorageClass): string {
  if (cell === null) return "null";
  if (typeof cell === "bigint") return `n${cell}`;
  if (typeof cell === "string") return (type === "blob" ? "b" : "t") + cell;
  if (Number.isSafeInteger(cell)) return `n${cell === 0 ? 0 : cell}`; // −0 equals 0
  return `n${Number.isInteger(cell) ? BigInt(cell) : cell}`;
}

/** The evaluator's sort key for a cell: the value as Python prints it, then its type. */
function printedByPython(cell: Cell, type: StorageClass): string {
  if (cell === null) return "None<class 'NoneType'>";
  if (type === "real") return `${printedFloat(Number(cell))}<class 'float'>`;
  if (type === "integer") return `${cell}<class 'int'>`;
  if (type === "blob") return `${printedBytes(String(cell))}<class 'bytes'>`;
  return `${cell}<class 'str'>`;
}

/** Prints a float like Python. JavaScript prints the same digits, but switches to exponents at other sizes. */
function printedFloat(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (Object.is(value, -0)) return "-0.0";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e16)) {
    const [digits, exponent] = value.toExponential().split("e") as [string, string];
    return `${digits}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
  }
  return Number.isInteger(value) ? `${value}.0` : String(value);
}

/** Prints bytes, given as x'…', like Python. */
function printedBytes(hex: string): string {
  const bytes = (hex.slice(2, -1).match(/../g) ?? []).map((pair) => Number.parseInt(pair, 16));
  const hasOnlySingle = bytes.includes(0x27) && !bytes.includes(0x22);
  const quote = hasOnlySingle ? '"' : "'";
  const text = bytes.map((byte) => {
    const special = { 9: "\\t", 10: "\\n", 13: "\\r", 92: "\\\\" }[byte];
    if (special !== undefined) return special;
    if (byte === quote.charCodeAt(0)) return `\\${quote}`;
    return byte >= 32 && byte < 127 ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`;
  });
  return `b${quote}${text.join("")}${quote}`;
}

/** Whether the columns form the same multiset, with rows in the same order. */
function sameColumns(wanted: readonly (readonly string[])[], given: readonly (readonly string[])[]): boolean {
  const keys = (columns: typeof wanted) => columns.map((column) => JSON.stringify(column)).sort();
  const [one, other] = [keys(wanted), keys(given)];
  return one.every((key, i) => key === other[i]);
}

/** Whether the given columns can be reordered so that both results have the same multiset of rows. */
function hasColumnOrder(wanted: readonly (readonly string[])[], given: readonly (readonly string[])[]): boolean {
  const rows = wanted[0]!.length;
  let steps = MAX_COLUMN_SEARCH;
  const sorted = (column: readonly string[]) => JSON.stringify([...column].sort());
  const [wantedSorted, givenSorted] = [wanted.map(sorted), given.map(sorted)];
  const candidates = wanted.map((_, i) => given.flatMap((__, j) => (givenSorted[j] === wantedSorted[i] ? [j] : [])));
  // Try columns with few candidates first, so that a wrong choice fails early.
  const order = wanted.map((_, i) => i).sort((a, b) => candidates[a]!.length - candidates[b]!.length);

  /** Numbers each distinct row prefix: equal multisets of numbers mean equal multisets of prefixes. */
  function search(depth: number, wantedRows: Int32Array, givenRows: Int32Array, used: ReadonlySet<number>): boolean {
    if (depth === order.length) return true;
    const names = new Map<string, number>();
    const extend = (before: Int32Array, column: readonly string[], count: (name: number) => void) =>
      Int32Array.from(before, (prefix, r) => {
        const key = `${prefix} ${column[r]}`;
        const name = names.get(key) ?? names.size;
        names.set(key, name);
        count(name);
        return name;
      });
    const wantedCounts: number[] = [];
    const next = extend(wantedRows, wanted[order[depth]!]!, (name) => {
      wantedCounts[name] = (wantedCounts[name] ?? 0) + 1;
    });
    const tried = new Set<string>();
    for (const j of candidates[order[depth]!]!) {
      if (used.has(j)) continue;
      steps -= rows;
      if (steps <= 0) return false;
      const same = JSON.stringify(given[j]);
      if (tried.has(same)) continue; // an equal column has already failed
      tried.add(same);
      const left = [...wantedCounts];
      let fits = true;
      const nextGiven = extend(givenRows, given[j]!, (name) => {
        left[name] = (left[name] ?? 0) - 1;
        if (left[name] < 0) fits = false;
      });
      if (fits && search(depth + 1, next, nextGiven, new Set([...used, j]))) return true;
    }
    return false;
  }
  return search(0, new Int32Array(rows), new Int32Array(rows), new Set());
}
