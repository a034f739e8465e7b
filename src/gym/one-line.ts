// Text of several lines on one line.

/** Replaces every run of white space that holds a line break by `mark`. Linear in the text, whatever it is. */
export function oneLine(text: string, mark: string): string {
  // `\s*[\r\n]+\s*` would match the same runs, but takes quadratic time on spaces without a line break.
  return HAS_BREAK.test(text) ? text.replace(/\s+/g, (run) => (HAS_BREAK.test(run) ? mark : run)) : text;
}

const HAS_BREAK = /[\r\n]/;
