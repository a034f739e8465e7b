// JSON from clients: parsed only when it is not nested so deep that later steps would run out of stack.

/** Levels of arrays and objects in a message. The protocol's own messages have five at most. */
export const MAX_NESTING = 64;

/** Parses a message. Throws SyntaxError for what is not JSON or is nested too deep. */
export function parseJson(text: string): unknown {
  if (nestsDeeperThan(text, MAX_NESTING)) throw new SyntaxError(`nested deeper than ${MAX_NESTING} levels`);
  return JSON.parse(text);
}

/** Whether brackets outside strings are nested deeper than `max`. Reads the text once and allocates nothing. */
export function nestsDeeperThan(text: string, max: number): boolean {
  if (text.length <= max) return false;
  let depth = 0;
  let isString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (isString) {
      if (code === 0x5c)
        i++; // a backslash: what follows it ends no string
      else if (code === 0x22) isString = false;
    } else if (code === 0x22) isString = true;
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > max) return true;
    } else if (code === 0x5d || code === 0x7d) depth--;
  }
  return false;
}
