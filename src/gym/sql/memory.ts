// Views of SQLite's WebAssembly memory, for code that runs once per cell. Views are cached until the memory grows,
// which detaches them, so get a view again after every call that may allocate.
import { sqlite } from "./sqlite.ts";

let bytes: Uint8Array = new Uint8Array(0);
let words: Uint32Array = new Uint32Array(0);

/** The memory as bytes. */
export function byteView(): Uint8Array {
  if (bytes.length === 0) bytes = sqlite().wasm.heap8u();
  return bytes;
}

/** The memory as unsigned 32-bit words, for pointers and lengths. */
export function wordView(): Uint32Array {
  if (words.length === 0) words = sqlite().wasm.heap32u();
  return words;
}
