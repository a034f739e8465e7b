// Joins the lines of a text into one.

/** Replaces each stretch of white space that contains a line break with `mark`, in linear time. */
export function oneLine(text: string, mark: string): string {
  // `\s*[\r
  // ]+\s*` would match the same text, but takes quadratic time on spaces without a line break.
  return HAS_BREAK.test(text) ? text.replace(/\s+/g, (run) => (HAS_BREAK.test(run) ? mark : run)) : text;
}

const HAS_BREAK = /[\r\n]/;
