// Charges functions to the statement's budget if their time grows with their arguments. SQLite checks progress only
// between instructions, and a single one may call a function that processes 16,384 bytes, or takes time proportional to
// the product of two such lengths. Most functions are charged by the lengths of their arguments and then run by SQLite;
// LIKE, GLOB and instr count their steps.
import { MAX_PATTERN_LENGTH } from "../limits.ts";
import { byteView, wordView } from "../memory.ts";
import { type Pointer, registerFunction, type Sqlite, sqlite } from "../sqlite.ts";
import { findNatives, type Native, resultBytes, textStart, valueBytes } from "./natives.ts";
import { codePoints, globPattern, indexOf, likePattern, type Matched, match, type Pattern } from "./patterns.ts";

/** The running statement's budget, in virtual-machine instructions. */
export interface Budget {
  /** Subtracts instructions; returns false if none are left or time is up. */
  charge(instructions: number): boolean;
  left(): number;
}

type SqlFunction = (context: Pointer, count: number, values: Pointer) => void;

/** Computes the instructions charged for a call from the sizes (bytes) of its text and blob arguments. */
type Cost = (sizes: ArrayLike<number>, count: number) => number;

// Bytes that these functions process in the time of one instruction (about 30 ns), as measured.
const [FAST, MEDIUM, SLOW] = [32, 16, 8];
const perByte =
  (bytes: number): Cost =>
  (sizes) =>
    1 + sizes[0]! / bytes;
/** For functions that read a number or a first character: some of them scan the whole text twice. */
const everyByte =
  (bytes: number): Cost =>
  (sizes, count) => {
    let cost = 1;
    for (let i = 0; i < count; i++) cost += sizes[i]! / bytes;
    return cost;
  };
const product: Cost = (sizes) => 1 + (sizes[0]! * (1 + sizes[1]!)) / MEDIUM;

const CHARGED: readonly (readonly [names: string, counts: readonly number[], Cost])[] = [
  ["length", [1], perByte(FAST)],
  ["substr substring", [2, 3], everyByte(FAST)],
  ["upper lower", [1], perByte(MEDIUM)],
  ["hex quote unistr", [1], perByte(SLOW)],
  ["trim ltrim rtrim", [1], perByte(FAST)],
  ["trim ltrim rtrim", [2], product],
  ["replace", [3], product],
  ["printf format", [-1], (sizes, count) => everyByte(FAST)(sizes, count) + sizes[0]! / SLOW],
  ["unicode abs round", [1], everyByte(FAST)],
  ["round", [2], everyByte(FAST)],
  ["char", [-1], everyByte(FAST)],
  [
    "sign acos acosh asin asinh atan atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2",
    [1],
    everyByte(MEDIUM),
  ],
  ["radians sin sinh sqrt tan tanh trunc", [1], everyByte(MEDIUM)],
  ["atan2 log mod pow power", [2], everyByte(MEDIUM)],
  ["concat concat_ws", [-1], () => 1],
];

// nullif, max and min are not charged: they compare like operators. SQLite passes the collation they need only to
// built-ins.

/** Functions that are also charged for the length of their result. */
const GROWS = new Set(["replace", "printf", "format", "hex", "quote", "concat", "concat_ws"]);

/** Minimum numbers of arguments, which SQLite checks for built-in functions but not for ours. */
const FEWEST: Readonly<Record<string, number>> = { concat: 1, concat_ws: 2 };

const COUNTED: readonly (readonly [name: string, counts: readonly number[], (budget: Budget) => SqlFunction])[] = [
  ["like", [2, 3], like],
  ["glob", [2], glob],
  ["instr", [2], instr],
];

const STEPS_PER_INSTRUCTION = 10; // steps of pattern matching or text search that cost one instruction
const PATTERN_COST = 10; // instructions for compiling a pattern, plus one per byte
const INTERRUPT = 9;
const [BLOB, NULL] = [4, 5];

let installed:
  | readonly { readonly name: string; readonly count: number; pointer: Pointer; data: Pointer }[]
  | undefined;

/** Replaces SQLite's functions on a connection with charged ones. */
export function installChargedFunctions(db: Pointer, budget: Budget): void {
  installed ??= makeFunctions(sqlite(), budget);
  for (const { name, count, pointer, data } of installed) registerFunction(db, name, count, pointer, data);
}

function makeFunctions(engine: Sqlite, budget: Budget) {
  const { wasm } = engine;
  const charged = CHARGED.flatMap(([names, counts, cost]) =>
    names.split(" ").flatMap((name) => counts.map((count) => ({ name, count, cost }))),
  );
  const natives = findNatives(engine, new Set(charged.map(({ name }) => name)));
  return [
    ...charged.map(({ name, count, cost }) => {
      const native = natives.get(`${name}/${count}`);
      if (!native) throw new Error(`this build of SQLite has no ${name}() of ${count} arguments where it should be`);
      const code = call(name, native, cost, budget);
      return { name, count, pointer: wasm.installFunction("v(pip)", code), data: native.data };
    }),
    ...COUNTED.flatMap(([name, counts, make]) => {
      const pointer = wasm.installFunction("v(pip)", make(budget));
      return counts.map((count) => ({ name, count, pointer, data: 0 }));
    }),
  ];
}

/** Ends the statement as the progress handler would. */
export function interrupt(context: Pointer): void {
  sqlite().wasm.exports.sqlite3_result_error_code(context, INTERRUPT);
}

const sizes = new Float64Array(128); // argument sizes of the current call; SQLite allows no more arguments

function call(name: string, { call }: Native, cost: Cost, budget: Budget): SqlFunction {
  const { capi } = sqlite();
  const grows = GROWS.has(name);
  const fewest = FEWEST[name] ?? 0;
  return (context, count, values) => {
    if (count < fewest) {
      capi.sqlite3_result_error(context, `wrong number of arguments to function ${name}()`, -1);
      return;
    }
    const words = wordView();
    sizes[0] = 0;
    for (let i = 0; i < count; i++) sizes[i] = valueBytes(words, words[(values >> 2) + i]!);
    const isPaid = budget.charge(cost(sizes, count));
    if (isPaid) call(context, count, values);
    if (!isPaid || (grows && !budget.charge(resultBytes(wordView(), context) / MEDIUM))) interrupt(context);
  };
}

const matched: Matched = { value: 0, steps: 0 };

function giveMatch(context: Pointer, budget: Budget, exports: Sqlite["wasm"]["exports"]): void {
  if (!budget.charge(1 + matched.steps / STEPS_PER_INSTRUCTION) || matched.value === undefined) interrupt(context);
  else exports.sqlite3_result_int(context, matched.value);
}

function like(budget: Budget): SqlFunction {
  const { capi, wasm } = sqlite();
  const matches = patternFunction(budget, likePattern);
  return (context, count, values) => {
    let escaping = 0;
    if (count === 3) {
      const value = wordView()[(values >> 2) + 2]!;
      const start = textStart(value);
      if (start === 0) return;
      const points = codePoints(byteView(), start, start + valueBytes(wordView(), value));
      if (points.length !== 1) {
        capi.sqlite3_result_error(context, "ESCAPE expression must be a single character", -1);
        return;
      }
      escaping = points[0]!;
    }
    matches(context, values, escaping, wasm.exports);
  };
}

function glob(budget: Budget): SqlFunction {
  const { exports } = sqlite().wasm;
  const matches = patternFunction(budget, globPattern);
  return (context, _, values) => matches(context, values, 0, exports);
}

/**
 * Makes a function of a pattern and a text. It keeps the last pattern compiled: most statements use one for all rows.
 */
function patternFunction(
  budget: Budget,
  compile: (heap: Uint8Array, start: Pointer, end: Pointer, escaping: number) => Pattern,
) {
  const { capi } = sqlite();
  const kept = new Uint8Array(4 * MAX_PATTERN_LENGTH);
  let keptLength = -1;
  let keptEscaping = 0;
  let pattern: Pattern = { places: [], sets: [], folds: false };
  return (context: Pointer, values: Pointer, escaping: number, exports: Sqlite["wasm"]["exports"]): void => {
    const first = wordView()[values >> 2]!;
    const second = wordView()[(values >> 2) + 1]!;
    const start = textStart(first);
    const text = textStart(second);
    if (start === 0 || text === 0) return;
    const heap = byteView();
    const length = valueBytes(wordView(), first);
    let isKept = length === keptLength && escaping === keptEscaping;
    for (let i = 0; isKept && i < length; i++) isKept = heap[start + i] === kept[i];
    if (!isKept) {
      const end = start + length;
      if (length > kept.length || codePoints(heap, start, end).length > MAX_PATTERN_LENGTH) {
        capi.sqlite3_result_error(context, "LIKE or GLOB pattern too complex", -1);
        return;
      }
      budget.charge(PATTERN_COST + length);
      kept.set(heap.subarray(start, end));
      keptLength = length;
      keptEscaping = escaping;
      pattern = compile(heap, start, end, escaping);
    }
    const textEnd = text + valueBytes(wordView(), second);
    match(heap, text, textEnd, pattern, budget.left() * STEPS_PER_INSTRUCTION, matched);
    giveMatch(context, budget, exports);
  };
}

function instr(budget: Budget): SqlFunction {
  const { exports } = sqlite().wasm;
  return (context, _, values) => {
    const text = wordView()[values >> 2]!;
    const part = wordView()[(values >> 2) + 1]!;
    const textType = exports.sqlite3_value_type(text);
    const partType = exports.sqlite3_value_type(part);
    if (textType === NULL || partType === NULL) return;
    // A blob is compared with text byte by byte, as if it were text.
    const start = textType === BLOB ? exports.sqlite3_value_blob(text) : textStart(text);
    const partStart = partType === BLOB ? exports.sqlite3_value_blob(part) : textStart(part);
    const end = start + valueBytes(wordView(), text);
    const partEnd = partStart + valueBytes(wordView(), part);
    const inCharacters = textType !== BLOB || partType !== BLOB;
    const allowed = budget.left() * STEPS_PER_INSTRUCTION;
    indexOf(byteView(), start, end, partStart, partEnd, inCharacters, allowed, matched);
    giveMatch(context, budget, exports);
  };
}
