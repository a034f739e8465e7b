// The text encoding of a database file.

const [ENCODING_AT, UTF16LE, UTF16BE] = [56, 2, 3];

/** Whether a database's header declares UTF-16 text, which sandboxed connections cannot read. */
export function isUtf16(bytes: Uint8Array): boolean {
  if (!isSqlite(bytes) || bytes.length < ENCODING_AT + 4) return false;
  const encoding = new DataView(bytes.buffer, bytes.byteOffset).getUint32(ENCODING_AT);
  return encoding === UTF16LE || encoding === UTF16BE;
}

/** Whether a file begins as SQLite files do. */
export function isSqlite(bytes: Uint8Array): boolean {
  return new TextDecoder().decode(bytes.subarray(0, 16)) === "SQLite format 3\0";
}
