// Detects duplicate keys in JSON objects: JSON.parse keeps the last value, other readers the first, so such a file is
// ambiguous.

/**
 * The first key that occurs twice in an object of the JSON text, at any depth; undefined if there is none. The text
 * must be valid JSON.
 */
export function duplicateKey(json: string): string | undefined {
  // One entry per open object or array; null for arrays, which have no keys.
  const open: (Set<string> | null)[] = [];
  for (let at = 0; at < json.length; at++) {
    const character = json[at];
    if (character === "{") open.push(new Set());
    else if (character === "[") open.push(null);
    else if (character === "}" || character === "]") open.pop();
    else if (character === '"') {
      const start = at;
      at = closingQuote(json, at);
      if (!isKey(json, at + 1)) continue;
      const literal = json.slice(start + 1, at);
      const key = literal.includes("\\") ? (JSON.parse(`"${literal}"`) as string) : literal;
      const keys = open.at(-1)!;
      if (keys.has(key)) return key;
      keys.add(key);
    }
  }
  return undefined;
}

function closingQuote(json: string, opening: number): number {
  let at = opening + 1;
  while (json[at] !== '"') at += json[at] === "\\" ? 2 : 1;
  return at;
}

/** Whether a colon follows; in valid JSON it only follows keys. */
function isKey(json: string, from: number): boolean {
  let at = from;
  while (json[at] === " " || json[at] === "\n" || json[at] === "\r" || json[at] === "\t") at++;
  return json[at] === ":";
}
