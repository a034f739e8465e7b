// Right answers in other clothes: the gold's own rows, written every way a player might write them.

import { formatAnswer, formatCell } from "../../../gym/data/index.ts";
import type { Gold } from "../../../gym/env/index.ts";
import type { Cell, StorageClass } from "../../../gym/sql/index.ts";
import type { Random } from "../../../random.ts";

export type Rows = readonly (readonly Cell[])[];

export interface Clothed {
  readonly clothes: string;
  readonly text: string;
}

/** Texts that all stand for the gold's value under the verifier's rules. */
export function rightAnswers(gold: Gold, r: Random): Clothed[] {
  const arrangements: [string, Rows][] = [
    ["as it is", gold.rows],
    ["other order or tie", rearranged(gold, r)],
  ];
  const texts = arrangements.flatMap(([arrangement, rows]) =>
    dress({ ...gold, rows }).map(({ clothes, text }) => ({ clothes: `${clothes}, ${arrangement}`, text })),
  );
  const canonical = formatAnswer(gold);
  const wraps: [string, (text: string) => string][] = [
    ["Answer:", (text) => `Answer: ${text}`],
    ["The answer is", (text) => `The answer is ${text}`],
    ["code fence", (text) => `\`\`\`\n${text}\n\`\`\``],
    ["thinking", (text) => `<think>is it ${text.length}?</think>\n${text}`],
    ["blanks around", (text) => `  ${text}\n`],
  ];
  return [...texts, ...wraps.map(([clothes, wrap]) => ({ clothes, text: wrap(canonical) }))];
}

/** The gold's rows with ties resolved another way: any order inside a group, any members where LIMIT cut it. */
function rearranged(gold: Gold, r: Random): Rows {
  return gold.groups.flatMap((group) => r.shuffle(group.rows).slice(0, group.take));
}

interface Shown {
  readonly columns: readonly string[];
  readonly types: readonly StorageClass[];
  readonly rows: Rows;
}

function dress(shown: Shown): Clothed[] {
  const { columns, rows, types } = shown;
  if (columns.length === 1 && rows.length === 1) return dressScalar(rows[0]![0]!, types[0]!, columns[0]!);
  const cells = rows.map((row) => row.map((cell, i) => formatCell(cell, types[i]!)));
  const quoted = (row: readonly string[], separator: string) =>
    row.map((cell, i) => csv(cell, separator, i)).join(separator);
  const json = rows.map((row, r) =>
    row.map((cell, c) => (cell === null ? "null" : typeof cell === "string" ? JSON.stringify(cell) : cells[r]![c]!)),
  );
  const python = rows.map((row, r) =>
    row.map((cell, c) =>
      cell === null
        ? "None"
        : typeof cell === "string"
          ? `'${cell.replace(/[\\']/g, "\\$&").replaceAll("\n", "\\n").replaceAll("\t", "\\t")}'`
          : cells[r]![c]!,
    ),
  );
  const isList = columns.length === 1;
  const flat = cells.map((row) => row[0]!);
  const oneLine = cells.every((row) => row.every((cell) => !/[\r\n]/.test(cell)));
  const bare =
    oneLine && cells.every((row) => row.every((cell) => cell === cell.trim() && !/["'|`\t]/.test(cell) && cell !== ""));
  const clothed: Clothed[] = [{ clothes: "canonical", text: formatAnswer(shown) }];
  if (isList) {
    clothed.push({ clothes: "JSON list", text: `[${json.map(([cell]) => cell).join(", ")}]` });
    clothed.push({ clothes: "Python list", text: `[${python.map(([cell]) => cell).join(", ")}]` });
    if (bare && rows.length > 1) {
      clothed.push({ clothes: "a value a line", text: flat.join("\n") });
      clothed.push({ clothes: "upper case lines", text: flat.map(upper).join("\n") });
      clothed.push({ clothes: "with header", text: [columns[0], ...flat].join("\n") });
      clothed.push({
        clothes: "quoted, commas",
        text: flat.map((cell) => (cell === "NULL" ? cell : `"${cell}"`)).join(", "),
      });
      clothed.push({ clothes: "commas without blanks", text: flat.map((cell) => csv(cell, ",", 1)).join(",") });
      if (!flat.some((cell) => /^[-*•] /.test(cell)))
        clothed.push({ clothes: "bullets", text: flat.map((cell) => `- ${cell}`).join("\n") });
      clothed.push({ clothes: "numbered", text: flat.map((cell, i) => `${i + 1}. ${cell}`).join("\n") });
      if (flat.every((cell) => !cell.includes(";"))) clothed.push({ clothes: "semicolons", text: flat.join("; ") });
    }
    return clothed;
  }
  clothed.push({ clothes: "JSON rows", text: `[${json.map((row) => `[${row.join(", ")}]`).join(", ")}]` });
  clothed.push({ clothes: "Python tuples", text: `[${python.map((row) => `(${row.join(", ")})`).join(", ")}]` });
  if (bare) {
    clothed.push({ clothes: "bars", text: cells.map((row) => row.join(" | ")).join("\n") });
    clothed.push({ clothes: "lower case bars", text: cells.map((row) => row.map(lower).join("|")).join("\n") });
    clothed.push({ clothes: "CSV", text: cells.map((row) => quoted(row, ",")).join("\n") });
    clothed.push({ clothes: "tabs", text: cells.map((row) => row.join("\t")).join("\n") });
    if (columns.every((column) => !/[|\n]/.test(column))) {
      const rule = `|${columns.map(() => "---").join("|")}|`;
      const lines = [columns, ...cells].map((row) => `| ${row.join(" | ")} |`);
      clothed.push({ clothes: "Markdown", text: [lines[0], rule, ...lines.slice(1)].join("\n") });
    }
  }
  return clothed;
}

function dressScalar(cell: Cell, type: StorageClass, column: string): Clothed[] {
  const text = formatCell(cell, type);
  const clothed: Clothed[] = [
    { clothes: "canonical", text },
    { clothes: "in quotes", text: `"${text}"` },
    { clothes: "in brackets", text: `[${typeof cell === "string" ? JSON.stringify(cell) : text}]` },
    { clothes: "with full stop", text: `${text}.` },
    { clothes: "with header", text: `${column}\n${text}` },
    { clothes: "emphasized", text: `**${text}**` },
  ];
  if (typeof cell === "string") {
    return [
      ...clothed.filter(({ clothes }) => keepsText(cell, clothes)),
      { clothes: "upper case", text: upper(text) },
      { clothes: "lower case", text: lower(text) },
      { clothes: "wide blanks", text: text.replaceAll(" ", "  ") },
    ];
  }
  const value = Number(cell);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) {
    clothed.push(
      { clothes: "3.0", text: `${value}.0` },
      { clothes: "3.00", text: `${value}.00` },
      { clothes: "3", text: `${value}` },
    );
    clothed.push({ clothes: "1,234", text: value.toLocaleString("en-US") });
    if (value >= 0) clothed.push({ clothes: "+3", text: `+${value}` });
  } else if (typeof cell === "number") {
    for (const decimals of [2, 4, 6]) {
      const rounded = cell.toFixed(decimals);
      if (rounded.replace(/[-.]/g, "").replace(/^0+/, "").length >= 3)
        clothed.push({ clothes: `${decimals} decimals`, text: rounded });
    }
    clothed.push({ clothes: "17 digits", text: cell.toPrecision(17) });
  }
  return clothed;
}

/** Whether these clothes leave the text unambiguous: a header line needs one-line text, emphasis no stars. */
function keepsText(cell: string, clothes: string): boolean {
  if (clothes === "with header") return !/[\r\n]/.test(cell) && cell === cell.trim() && cell !== "";
  if (clothes === "emphasized") return !cell.includes("*") && cell === cell.trim();
  if (clothes === "in quotes") return !/["\\]/.test(cell);
  return true;
}

/** A cell in a separated line: quoted where it holds the separator, quotes or nothing. */
function csv(cell: string, separator: string, position: number): string {
  const needed = cell.includes(separator.trim() || separator) || (position === 0 && /^[[({]/.test(cell));
  return needed ? `"${cell.replaceAll('"', '""')}"` : cell;
}

/** Letter case that folds back: ß and İ do not survive a change of case. */
function upper(text: string): string {
  return text.toUpperCase().toLowerCase() === text.toLowerCase() ? text.toUpperCase() : text;
}

function lower(text: string): string {
  return text.toLowerCase();
}
