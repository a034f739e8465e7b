// Texts side by side in a terminal, each wrapped to its column.
import { printable, width } from "./output.ts";

/** A line wrapped to so many columns, at spaces where it has some; what follows keeps its indent, or that of "1. ". */
export function wrapLine(line: string, columns: number): string[] {
  const hang = Math.min(/^(?: +|\d+\. )?/.exec(line)![0].length, Math.floor(columns / 2));
  const [first, ...rest] = wrapPlain(line, columns, hang);
  return [first!, ...rest.map((part) => " ".repeat(hang) + part)];
}

function wrapPlain(line: string, all: number, hang: number): string[] {
  const lines: string[] = [];
  let [current, used, columns] = ["", 0, all];
  const end = () => {
    lines.push(current.trimEnd());
    [current, used, columns] = ["", 0, all - hang];
  };
  for (const word of printable(line).split(/(?<= )/)) {
    if (used > 0 && used + width(word.trimEnd()) > columns) {
      end();
    }
    for (const character of word) {
      if (used + width(character) > columns && character !== " ") {
        end();
      }
      current += character;
      used += width(character);
    }
  }
  return [...lines, current.trimEnd()];
}

/** Blocks of lines beside each other, with a bar in between. */
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
