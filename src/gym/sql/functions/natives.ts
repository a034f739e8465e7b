// Calls SQLite's own functions from ours. The public interface can replace a built-in function but not call the
// original, so addresses are read from SQLite's table of built-ins. The table's layout belongs to the pinned version:
// the functions are tested when SQLite is loaded, and loading fails if a result is unexpected.
import { wordView } from "../memory.ts";
import { type Pointer, type Sqlite, sqlite } from "../sqlite.ts";

export interface Native {
  readonly call: (context: Pointer, count: number, values: Pointer) => void;
  /** The built-in's user data; several functions share one implementation and differ only in it. */
  readonly data: Pointer;
}

// Offsets inside SQLite's FuncDef, sqlite3_context and sqlite3_value.
const [COUNT, FLAGS, DATA, CODE, NAME, FUNCTION_BYTES] = [0, 4, 8, 16, 32, 40];
const [IS_BUILTIN, ENCODING, UTF8] = [0x800000, 3, 1];
const [RESULT, START, LENGTH, VALUE_FLAGS] = [0, 8, 12, 16];
const [IS_TEXT, IS_BLOB, ENCODING_SHIFT] = [0x2, 0x10, 16];

/** Finds built-in functions by name. Keys are `name/arguments` (−1 for any number). */
export function findNatives({ wasm }: Pick<Sqlite, "wasm">, names: ReadonlySet<string>): Map<string, Native> {
  const end = wasm.exports.malloc(8); // upper bound for addresses: the built-ins are static data, below the heap
  wasm.exports.free(end);
  const [table, words] = [wasm.functionTable(), new DataView(wasm.heap8u().buffer)];
  const found = new Map<string, Native>();
  for (let at = 0; at + FUNCTION_BYTES <= end; at += 4) {
    const flags = words.getUint32(at + FLAGS, true);
    if (!(flags & IS_BUILTIN) || (flags & ENCODING) !== UTF8) continue;
    const [code, name] = [words.getUint32(at + CODE, true), words.getUint32(at + NAME, true)];
    if (code === 0 || code >= table.length || name === 0 || name >= end) continue;
    const text = shortText(wasm.heap8u(), name);
    if (!names.has(text)) continue;
    const count = words.getInt16(at + COUNT, true);
    const call = table.get(code) as Native["call"];
    found.set(`${text}/${Math.max(count, -1)}`, { call, data: words.getUint32(at + DATA, true) });
  }
  return found;
}

/** Bytes of a text or blob; 0 for other values, which `sqlite3_value_bytes` would convert to text. */
export function valueBytes(words: Uint32Array, value: Pointer): number {
  return words[(value + VALUE_FLAGS) >> 2]! & (IS_TEXT | IS_BLOB) ? words[(value + LENGTH) >> 2]! : 0;
}

/**
 * Address of a value's text, which has `valueBytes` bytes; 0 for NULL. Unlike SQLite's accessor, it does not copy text
 * to add a NUL.
 */
export function textStart(value: Pointer): Pointer {
  const words = wordView();
  const flags = words[(value + VALUE_FLAGS) >> 2]!;
  const isUtf8 = flags & IS_TEXT && ((flags >> ENCODING_SHIFT) & 0xff) === UTF8;
  return isUtf8 ? words[(value + START) >> 2]! : sqlite().wasm.exports.sqlite3_value_text(value);
}

/** Bytes of the text or blob that a function just returned. */
export function resultBytes(words: Uint32Array, context: Pointer): number {
  return valueBytes(words, words[(context + RESULT) >> 2]!);
}

function shortText(heap: Uint8Array, start: Pointer): string {
  let end = start;
  while (heap[end] !== 0 && end - start < 20) end++;
  return String.fromCharCode(...heap.subarray(start, end));
}
