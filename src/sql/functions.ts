// SQLite's functions whose time can grow with the product of their arguments' lengths, done again in linear or counted time.
// SQLite asks whether to go on only between instructions, and one instruction may be such a call.
import { MAX_PATTERN_LENGTH, MAX_VALUE_BYTES } from "./limits.ts";
import { type Pointer, registerFunction, sqlite } from "./sqlite.ts";

/** Takes off so many instructions; false when none are left or time is up. */
export type Charge = (instructions: number) => boolean;

/** A function over texts; null arguments never reach it. Gives undefined when its budget ran out. */
type TextFunction = (args: readonly string[], charge: Charge) => string | number | undefined;

const CHARACTERS_PER_INSTRUCTION = 16; // about as much work as one instruction of the virtual machine
const NULL = 5;

const FUNCTIONS: readonly [name: string, counts: readonly number[], TextFunction][] = [
  [
    "instr",
    [2],
    ([text, part], charge) => spend(charge, text!.length + part!.length, () => characterIndex(text!, part!)),
  ],
  ["replace", [3], ([text, part, by], charge) => replaceAll(text!, part!, by!, charge)],
  ["trim", [1, 2], ([text, set = " "], charge) => trim(text!, set, charge, true, true)],
  ["ltrim", [1, 2], ([text, set = " "], charge) => trim(text!, set, charge, true, false)],
  ["rtrim", [1, 2], ([text, set = " "], charge) => trim(text!, set, charge, false, true)],
  ["like", [2, 3], ([pattern, text, mark], charge) => matches(text!, likeParts(pattern!, mark), charge)],
  ["glob", [2], ([pattern, text], charge) => matches(text!, globParts(pattern!), charge)],
];

let installed: readonly { readonly name: string; readonly count: number; readonly pointer: Pointer }[] | undefined;

/** Puts the counted functions onto a connection, in place of SQLite's own. */
export function installCountedFunctions(db: Pointer, charge: Charge): void {
  const { wasm } = sqlite();
  installed ??= FUNCTIONS.flatMap(([name, counts, compute]) =>
    counts.map((count) => ({ name, count, pointer: wasm.installFunction("v(pip)", call(name, compute, charge)) })),
  );
  for (const { name, count, pointer } of installed) registerFunction(db, name, count, pointer);
}

function call(name: string, compute: TextFunction, charge: Charge) {
  return (context: Pointer, count: number, values: Pointer): void => {
    const { capi, wasm } = sqlite();
    const args: string[] = [];
    for (let i = 0; i < count; i++) {
      const value = wasm.peekPtr(values + 4 * i);
      if (capi.sqlite3_value_type(value) === NULL) {
        capi.sqlite3_result_null(context);
        return;
      }
      args.push(capi.sqlite3_value_text(value) ?? "");
    }
    try {
      const result = compute(args, charge);
      if (result === undefined) capi.sqlite3_result_error(context, "interrupted", -1);
      else if (typeof result === "number") capi.sqlite3_result_int(context, result);
      else if (result.length > MAX_VALUE_BYTES) capi.sqlite3_result_error_toobig(context);
      else capi.sqlite3_result_text(context, result, -1, capi.SQLITE_TRANSIENT);
    } catch (error) {
      capi.sqlite3_result_error(context, error instanceof Error ? error.message : `${name}() failed`, -1);
    }
  };
}

function spend<T>(charge: Charge, characters: number, work: () => T): T | undefined {
  return charge(1 + characters / CHARACTERS_PER_INSTRUCTION) ? work() : undefined;
}

/** Position of `part` in characters (not UTF-16 units), from 1; 0 when it is not there. */
function characterIndex(text: string, part: string): number {
  const at = indexOf(text, part, 0);
  return at < 0 ? 0 : Array.from(text.slice(0, at)).length + 1;
}

/** Knuth–Morris–Pratt: linear whatever the texts are. */
function indexOf(text: string, part: string, from: number): number {
  if (part === "") return from;
  if (part.length < 16) return text.indexOf(part, from); // so short that the worst case is harmless
  const fallback = new Int32Array(part.length);
  for (let i = 1, k = 0; i < part.length; i++) {
    while (k > 0 && part.charCodeAt(i) !== part.charCodeAt(k)) k = fallback[k - 1]!;
    if (part.charCodeAt(i) === part.charCodeAt(k)) k++;
    fallback[i] = k;
  }
  for (let i = from, k = 0; i < text.length; i++) {
    while (k > 0 && text.charCodeAt(i) !== part.charCodeAt(k)) k = fallback[k - 1]!;
    if (text.charCodeAt(i) === part.charCodeAt(k)) k++;
    if (k === part.length) return i - k + 1;
  }
  return -1;
}

function replaceAll(text: string, part: string, by: string, charge: Charge): string | undefined {
  if (part === "") return text;
  const pieces: string[] = [];
  let length = 0;
  for (let from = 0; ; ) {
    const at = indexOf(text, part, from);
    const piece = text.slice(from, at < 0 ? text.length : at);
    length += piece.length + by.length;
    if (!charge(1 + (piece.length + part.length + by.length) / CHARACTERS_PER_INSTRUCTION)) return undefined;
    pieces.push(piece);
    if (at < 0 || length > 2 * MAX_VALUE_BYTES) return pieces.join(by); // too long to be accepted anyway
    from = at + part.length;
  }
}

function trim(text: string, set: string, charge: Charge, left: boolean, right: boolean): string | undefined {
  return spend(charge, text.length + set.length, () => {
    const characters = Array.from(text);
    const out = new Set(set);
    let [start, end] = [0, characters.length];
    while (left && start < end && out.has(characters[start]!)) start++;
    while (right && end > start && out.has(characters[end - 1]!)) end--;
    return characters.slice(start, end).join("");
  });
}

/** A pattern's element: any run, any one character, or one that passes a test. */
type Part = "run" | "one" | ((character: string) => boolean);

/** Letter case counts for all but ASCII letters, as in SQLite. */
function asciiLower(character: string): string {
  return character >= "A" && character <= "Z" ? character.toLowerCase() : character;
}

function likeParts(pattern: string, mark: string | undefined): Part[] {
  if (mark !== undefined && Array.from(mark).length !== 1)
    throw new Error("ESCAPE expression must be a single character");
  const parts: Part[] = [];
  const characters = Array.from(checkedPattern(pattern));
  for (let i = 0; i < characters.length; i++) {
    let character = characters[i]!;
    if (character === mark) {
      if (++i >= characters.length) return [() => false]; // nothing to mark: matches nothing
      character = characters[i]!;
    } else if (character === "%" || character === "_") {
      parts.push(character === "%" ? "run" : "one");
      continue;
    }
    const wanted = asciiLower(character);
    parts.push((given) => asciiLower(given) === wanted);
  }
  return parts;
}

function globParts(pattern: string): Part[] {
  const parts: Part[] = [];
  const characters = Array.from(checkedPattern(pattern));
  for (let i = 0; i < characters.length; i++) {
    const character = characters[i]!;
    if (character === "*" || character === "?") parts.push(character === "*" ? "run" : "one");
    else if (character !== "[") parts.push((given) => given === character);
    else {
      const negated = characters[i + 1] === "^";
      const start = i + (negated ? 2 : 1);
      const end = characters.indexOf("]", start + 1); // a bracket that comes first stands for itself
      if (end < 0) return [() => false];
      const set = characters.slice(start, end);
      parts.push((given) => inSet(set, given) !== negated);
      i = end;
    }
  }
  return parts;
}

function inSet(set: readonly string[], given: string): boolean {
  for (let i = 0; i < set.length; i++) {
    if (set[i + 1] === "-" && i + 2 < set.length) {
      if (given >= set[i]! && given <= set[i + 2]!) return true;
      i += 2;
    } else if (set[i] === given) return true;
  }
  return false;
}

function checkedPattern(pattern: string): string {
  if (pattern.length > MAX_PATTERN_LENGTH) throw new Error("LIKE or GLOB pattern too complex");
  return pattern;
}

/** Whether the parts match the whole text: on a mismatch only the last run is lengthened, so time is at most text × parts. */
function matches(text: string, parts: readonly Part[], charge: Charge): number | undefined {
  const characters = Array.from(text);
  let [i, p, runAt, runFrom, steps] = [0, 0, -1, 0, 0];
  while (i < characters.length) {
    if (++steps % 1024 === 0 && !charge(1024 / CHARACTERS_PER_INSTRUCTION)) return undefined;
    const part = parts[p];
    if (part === "run") {
      runAt = p++;
      runFrom = i;
    } else if (part !== undefined && (part === "one" || part(characters[i]!))) {
      i++;
      p++;
    } else if (runAt >= 0) {
      p = runAt + 1;
      i = ++runFrom;
    } else return 0;
  }
  while (parts[p] === "run") p++;
  return charge(1 + characters.length / CHARACTERS_PER_INSTRUCTION) ? (p === parts.length ? 1 : 0) : undefined;
}
