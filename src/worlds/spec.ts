// How a database is described so that code can fill it and questions about it read as a person would ask them.
// A spec is plain data; build.ts makes rows from it, forms make questions from it.

/** One database: its tables and the words people use for them. */
export interface WorldSpec {
  readonly name: string;
  /** What it holds, a few words for listings: "concerts and the bands that play them". */
  readonly topic: string;
  /** A table comes after the tables it refers to. */
  readonly tables: readonly TableSpec[];
}

export interface TableSpec {
  readonly name: string;
  /** "singer" / "singers": never capitalized. */
  readonly one: string;
  readonly many: string;
  /** Name of the column by which people call a row (its kind is "label"); link tables have none. */
  readonly label?: string;
  readonly rows: number;
  readonly columns: readonly ColumnSpec[];
}

interface ColumnBase {
  readonly name: string;
  /** Noun phrase without article: "release year", "ticket price". */
  readonly phrase: string;
  /** Share of NULLs. @default 0 */
  readonly nulls?: number;
}

/** 1, 2, 3 … the primary key. */
export interface IdColumn extends ColumnBase {
  readonly kind: "id";
}

/** What a row is called. `values` are distinct and at least as many as rows, unless `repeats` is set. */
export interface LabelColumn extends ColumnBase {
  readonly kind: "label";
  readonly values: readonly string[];
  readonly repeats?: boolean;
}

/** One of a few words; the first are the most frequent (Zipf). */
export interface CategoryColumn extends ColumnBase {
  readonly kind: "category";
  readonly values: readonly string[];
  /** "genres". */
  readonly plural: string;
  /** Restricts the table's rows to a value: "from {v}", "in the {v} category". @default "whose {phrase} is {v}" */
  readonly where?: string;
}

/** A quantity. Values are skewed towards `low` when `skew` > 1. */
export interface NumberColumn extends ColumnBase {
  readonly kind: "integer" | "real";
  readonly low: number;
  readonly high: number;
  readonly skew?: number;
  /** Decimals of a real. @default 2 */
  readonly decimals?: number;
  /** Adjectives for the row with the largest and smallest value: ["oldest", "youngest"]. @default "with the highest {phrase}" */
  readonly superlatives?: readonly [string, string];
  /** Before a threshold: ["older than", "younger than"]. @default "with a {phrase} above" / "below" */
  readonly comparatives?: readonly [string, string];
  /** Said after a number: "minutes", "euros". */
  readonly unit?: string;
  /** Whether adding values up makes sense: sales yes, ages no. */
  readonly summable: boolean;
}

/** A day as text, "2019-04-30". */
export interface DateColumn extends ColumnBase {
  readonly kind: "date";
  readonly from: string;
  readonly to: string;
  /** Restricts to a year: "hired in {v}". */
  readonly where: string;
  /** ["most recently hired", "longest-serving"]. @default "with the latest {phrase}" */
  readonly superlatives?: readonly [string, string];
}

/** Refers to the id of another table; some rows of it are referred to often, some never. */
export interface RefColumn extends ColumnBase {
  readonly kind: "ref";
  readonly table: string;
  /** Restricts this table's rows to one referred row: "by {v}", "at {v}", "in the {v} department". */
  readonly where: string;
  /** How the referred row relates to these rows: "have", "teach", "offer" (as in "how many albums does each artist …"). @default "have" */
  readonly verb?: string;
}

export type ColumnSpec = IdColumn | LabelColumn | CategoryColumn | NumberColumn | DateColumn | RefColumn;
