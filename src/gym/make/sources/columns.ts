// Which columns may be copied and asked about: --columns and --exclude.
import { nearest, UsageError } from "../../../errors.ts";

export interface ColumnChoice {
  /** Patterns such as `people.name`, `orders.*` or `orders`; only these columns. @default all */
  readonly columns?: readonly string[];
  /** Patterns of columns to leave out. @default none */
  readonly exclude?: readonly string[];
}

/** Decides about columns, and refuses patterns that matched none. */
export class ColumnFilter {
  readonly #columns: readonly Pattern[] | undefined;
  readonly #exclude: readonly Pattern[];
  readonly #seen = new Set<string>();

  constructor({ columns, exclude = [] }: ColumnChoice) {
    this.#columns = columns && columns.length > 0 ? columns.map((text) => pattern("--columns", text)) : undefined;
    this.#exclude = exclude.map((text) => pattern("--exclude", text));
  }

  /** Whether anything may be left out. */
  get isActive(): boolean {
    return this.#columns !== undefined || this.#exclude.length > 0;
  }

  /** Whether a column may be used. */
  readonly allows = (table: string, column: string): boolean => {
    const name = `${table}.${column}`.toLowerCase();
    this.#seen.add(`${table}.${column}`);
    const matches = (patterns: readonly Pattern[]) => {
      const found = patterns.filter((one) => one.test.test(name));
      for (const one of found) one.used = true;
      return found.length > 0;
    };
    const excluded = matches(this.#exclude);
    return (this.#columns === undefined || matches(this.#columns)) && !excluded;
  };

  /** Throws if a pattern matched no column of any source: a misspelt one would let personal data through. */
  checkUsed(): void {
    for (const { option, text, used } of [...(this.#columns ?? []), ...this.#exclude]) {
      if (used) continue;
      const guess = nearest(text, this.#seen);
      throw new UsageError({
        what: `${option} matches no column`,
        value: text,
        remedy: guess ? `did you mean ${guess}?` : "write table.column, with * for any text",
      });
    }
  }
}

interface Pattern {
  readonly option: string;
  readonly text: string;
  readonly test: RegExp;
  used: boolean;
}

function pattern(option: string, text: string): Pattern {
  const whole = text.includes(".") ? text : `${text}.*`;
  const source = whole
    .toLowerCase()
    .split("*")
    .map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"))
    .join(".*");
  return { option, text, test: new RegExp(`^${source}$`), used: false };
}
