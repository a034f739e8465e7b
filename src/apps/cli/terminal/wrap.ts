// Text wrapped to a terminal's width, alone or in columns.
import { printable, width } from "./output.ts";

/** A paragraph of at most `columns` characters per line, each line indented. */
export function wrapText(text: string, columns: number, indent = 0): string {
  return wrapLine(text, columns - indent)
    .map((line) => " ".repeat(indent) + line)
    .join("\n");
}

/** Wraps one line, at spaces where possible; continuation lines keep its indent, or that of a leading "1. ". */
export function wrapLine(line: string, columns: number): string[] {
  const hang = Math.min(/^(?: +|\d+\. )?/.exec(line)![0].length, Math.floor(columns / 2));
  const [first, ...rest] = wrapPlain(line, columns, hang);
  return [first!, ...rest.map((part) => " ".repeat(hang) + part)];
}

function wrapPlain(line: string, columns: number, hang: number): string[] {
  const lines: string[] = [];
  let [current, used, limit] = ["", 0, columns];
  const end = () => {
    lines.push(current.trimEnd());
    [current, used, limit] = ["", 0, columns - hang];
  };
  for (const word of printable(line).split(/(?<= )/)) {
    if (used > 0 && used + width(word.trimEnd()) > limit) end();
    for (const character of word) {
      if (used + width(character) > limit && character !== " ") end();
      current += character;
      used += width(character);
    }
  }
  return [...lines, current.trimEnd()];
}

/** Blocks of lines side by side, separated by bars. */
export function sideBySide(blocks: readonly (readonly string[])[], columns: number): string[] {
  const wrapped = blocks.map((block) => block.flatMap((line) => wrapLine(line, columns)));
  const height = Math.max(0, ...wrapped.map(({ length }) => length));
  return Array.from({ length: height }, (_, row) =>
    wrapped
      .map((block) => block[row] ?? "")
      .map((cell) => cell + " ".repeat(Math.max(0, columns - width(cell))))
      .join(" │ ")
      .trimEnd(),
  );
}
