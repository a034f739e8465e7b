// Right answers in other formats: the gold's rows, written in many ways that a player might use.

import { formatAnswer, formatCell } from "../../../gym/data/index.ts";
import type { Gold } from "../../../gym/env/index.ts";
import type { Cell, StorageClass } from "../../../gym/sql/index.ts";
import type { Random } from "../../../random.ts";

export type Rows = readonly (readonly Cell[])[];

export interface FormattedAnswer {
  readonly format: string;
  readonly text: string;
}

/** Texts that all mean the gold's value under the verifier's rules. */
export function rightAnswers(gold: Gold, r: Random): FormattedAnswer[] {
  const arrangements: [string, Rows][] = [
    ["as it is", gold.rows],
    ["other order or tie", rearranged(gold, r)],
  ];
  const texts = arrangements.flatMap(([arrangement, rows]) =>
    formatRows({ ...gold, rows }).map(({ format, text }) => ({ format: `${format}, ${arrangement}`, text })),
  );
  const canonical = formatAnswer(gold);
  const wraps: [string, (text: string) => string][] = [
    ["Answer:", (text) => `Answer: ${text}`],
    ["The answer is", (text) => `The answer is ${text}`],
    ["code fence", (text) => `\`\`\`\n${text}\n\`\`\``],
    ["thinking", (text) => `<think>is it ${text.length}?</think>\n${text}`],
    ["blanks around", (text) => `  ${text}\n`],
  ];
  return [...texts, ...wraps.map(([format, wrap]) => ({ format, text: wrap(canonical) }))];
}

/** Resolves the gold's ties differently: any order within a group, and any of its rows if LIMIT cuts it. */
function rearranged(gold: Gold, r: Random): Rows {
  return gold.groups.flatMap((group) => r.shuffle(group.rows).slice(0, group.take));
}

interface Shown {
  readonly columns: readonly string[];
  readonly types: readonly StorageClass[];
  readonly rows: Rows;
}

function formatRows(shown: Shown): FormattedAnswer[] {
  const { columns, rows, types } = shown;
  if (columns.length === 1 && rows.length === 1) return formatScalar(rows[0]![0]!, types[0]!, columns[0]!);
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
  const answers: FormattedAnswer[] = [{ format: "canonical", text: formatAnswer(shown) }];
  if (isList) {
    answers.push({ format: "JSON list", text: `[${json.map(([cell]) => cell).join(", ")}]` });
    answers.push({ format: "Python list", text: `[${python.map(([cell]) => cell).join(", ")}]` });
    if (bare && rows.length > 1) {
      answers.push({ format: "one value per line", text: flat.join("\n") });
      answers.push({ format: "upper case lines", text: flat.map(upper).join("\n") });
      answers.push({ format: "with header", text: [columns[0], ...flat].join("\n") });
      answers.push({
        format: "quoted, commas",
        text: flat.map((cell) => (cell === "NULL" ? cell : `"${cell}"`)).join(", "),
      });
      answers.push({ format: "commas without blanks", text: flat.map((cell) => csv(cell, ",", 1)).join(",") });
      if (!flat.some((cell) => /^[-*•] /.test(cell)))
        answers.push({ format: "bullets", text: flat.map((cell) => `- ${cell}`).join("\n") });
      answers.push({ format: "numbered", text: flat.map((cell, i) => `${i + 1}. ${cell}`).join("\n") });
      if (flat.every((cell) => !cell.includes(";"))) answers.push({ format: "semicolons", text: flat.join("; ") });
    }
    return answers;
  }
  answers.push({ format: "JSON rows", text: `[${json.map((row) => `[${row.join(", ")}]`).join(", ")}]` });
  answers.push({ format: "Python tuples", text: `[${python.map((row) => `(${row.join(", ")})`).join(", ")}]` });
  if (bare) {
    answers.push({ format: "bars", text: cells.map((row) => row.join(" | ")).join("\n") });
    answers.push({ format: "lower case bars", text: cells.map((row) => row.map(lower).join("|")).join("\n") });
    answers.push({ format: "CSV", text: cells.map((row) => quoted(row, ",")).join("\n") });
    answers.push({ format: "tabs", text: cells.map((row) => row.join("\t")).join("\n") });
    if (columns.every((column) => !/[|\n]/.test(column))) {
      const rule = `|${columns.map(() => "---").join("|")}|`;
      const lines = [columns, ...cells].map((row) => `| ${row.join(" | ")} |`);
      answers.push({ format: "Markdown", text: [lines[0], rule, ...lines.slice(1)].join("\n") });
    }
  }
  return answers;
}

function formatScalar(cell: Cell, type: StorageClass, column: string): FormattedAnswer[] {
  const text = formatCell(cell, type);
  const answers: FormattedAnswer[] = [
    { format: "canonical", text },
    { format: "in quotes", text: `"${text}"` },
    { format: "in brackets", text: `[${typeof cell === "string" ? JSON.stringify(cell) : text}]` },
    { format: "with full stop", text: `${text}.` },
    { format: "with header", text: `${column}\n${text}` },
    { format: "emphasized", text: `**${text}**` },
  ];
  if (typeof cell === "string") {
    return [
      ...answers.filter(({ format }) => keepsText(cell, format)),
      { format: "upper case", text: upper(text) },
      { format: "lower case", text: lower(text) },
      { format: "wide blanks", text: text.replaceAll(" ", "  ") },
    ];
  }
  const value = Number(cell);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) {
    answers.push(
      { format: "3.0", text: `${value}.0` },
      { format: "3.00", text: `${value}.00` },
      { format: "3", text: `${value}` },
    );
    answers.push({ format: "1,234", text: value.toLocaleString("en-US") });
    if (value >= 0) answers.push({ format: "+3", text: `+${value}` });
  } else if (typeof cell === "number") {
    for (const decimals of [2, 4, 6]) {
      const rounded = cell.toFixed(decimals);
      if (rounded.replace(/[-.]/g, "").replace(/^0+/, "").length >= 3)
        answers.push({ format: `${decimals} decimals`, text: rounded });
    }
    answers.push({ format: "17 digits", text: cell.toPrecision(17) });
  }
  return answers;
}

/**
 * Whether the text is unambiguous in this format: a header needs one-line text, and emphasis needs text without stars.
 */
function keepsText(cell: string, format: string): boolean {
  if (format === "with header") return !/[\r\n]/.test(cell) && cell === cell.trim() && cell !== "";
  if (format === "emphasized") return !cell.includes("*") && cell === cell.trim();
  if (format === "in quotes") return !/["\\]/.test(cell);
  return true;
}

/** Formats a cell for a separated line: quoted if it is empty or contains the separator or quotes. */
function csv(cell: string, separator: string, position: number): string {
  const needed = cell.includes(separator.trim() || separator) || (position === 0 && /^[[({]/.test(cell));
  return needed ? `"${cell.replaceAll('"', '""')}"` : cell;
}

/** Changes letter case only if that is reversible: not for ß and İ. */
function upper(text: string): string {
  return text.toUpperCase().toLowerCase() === text.toLowerCase() ? text.toUpperCase() : text;
}

function lower(text: string): string {
  return text.toLowerCase();
}
