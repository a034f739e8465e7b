// Lines of a byte stream, with a length limit: lines that are too long are skipped without being buffered.

/** A line without its newline; null for one that was too long. */
export type Line = string | null;

/** Reads lines; the last one needs no newline. */
export async function* readLines(stream: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Line> {
  const decoder = new TextDecoder();
  let parts: Uint8Array[] = [];
  let length = 0;
  const take = (): Line => {
    const line = length > maxBytes ? null : decoder.decode(joined(parts, length)).replace(/\r$/, "");
    [parts, length] = [[], 0];
    return line;
  };
  for await (const chunk of stream) {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      add(chunk.subarray(start, end));
      yield take();
      start = end + 1;
    }
    add(chunk.subarray(start));
  }
  if (length > 0) yield take();

  function add(bytes: Uint8Array): void {
    length += bytes.length;
    if (length > maxBytes) parts = [];
    else if (bytes.length > 0) parts.push(bytes);
  }
}

function joined(parts: readonly Uint8Array[], length: number): Uint8Array {
  if (parts.length === 1) return parts[0]!;
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
