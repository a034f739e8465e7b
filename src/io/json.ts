// JSON from clients, with bounded nesting so that later recursion cannot overflow the stack.

/** Maximum nesting depth of a message. The protocol's own messages have at most five levels. */
export const MAX_NESTING = 64;

/** Parses a message. Throws SyntaxError if it is not JSON or nested too deeply. */
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
        i++; // a backslash escapes the next character
      else if (code === 0x22) isString = false;
    } else if (code === 0x22) isString = true;
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > max) return true;
    } else if (code === 0x5d || code === 0x7d) depth--;
  }
  return false;
}
