// The spec of a world: a database described so that code can fill it and ask natural questions about it. A spec is plain
// data; build.ts makes rows from it, forms make questions from it.

/** One database: its tables and the words people use for them. */
export interface WorldSpec {
  readonly name: string;
  /** Its contents in a few words, for listings: "concerts and the bands that play them". */
  readonly topic: string;
  /** A table comes after the tables it refers to. */
  readonly tables: readonly TableSpec[];
}

export interface TableSpec {
  readonly name: string;
  /** "singer" / "singers": never capitalized. */
  readonly one: string;
  readonly many: string;
  /** The column that names a row (its kind is "label"); link tables have none. */
  readonly label?: string;
  readonly rows: number;
  readonly columns: readonly ColumnSpec[];
  /** Rows are people: asked for with "who". */
  readonly person?: boolean;
  /** How a row is named in a sentence: "flight {v}", "the film {v}". @default "{v}" */
  readonly called?: string;
  /** For a link table, what its rows say: students (`subject`, a ref column) "take" courses (`object`); `past` as in RefColumn. */
  readonly relation?: {
    readonly subject: string;
    readonly verb: string;
    readonly past?: readonly [string, string];
    readonly object: string;
  };
  /** Values written by hand, for columns that belong together such as city and country; they fill the first rows. */
  readonly given?: {
    readonly columns: readonly string[];
    readonly rows: readonly (readonly (string | number | null)[])[];
  };
}

interface ColumnBase {
  readonly name: string;
  /** Noun phrase without article: "release year", "ticket price". */
  readonly phrase: string;
  /** Share of NULLs. @default 0 */
  readonly nulls?: number;
  /** Asks for the value of one row: "How old is {x}?" @default "What is the {phrase} of {x}?" and the like */
  readonly ask?: string;
  /** Restricts to the rows without a value: "still in hospital". @default "with no recorded {phrase}" */
  readonly missing?: string;
}

/** 1, 2, 3 … the primary key. */
export interface IdColumn extends ColumnBase {
  readonly kind: "id";
}

/** The name of a row, or another unique text such as a code. `values` are distinct and at least as many as rows, unless `repeats` is set. */
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
  /** Restricts the table's rows to a value: "from {v}", "in the {v} category", "with {av} card" for "with a student card". @default "whose {phrase} is {v}" */
  readonly where?: string;
  /** Restricts by a word before the noun, instead of `where`: "{v}" as in "Italian restaurants". */
  readonly before?: string;
}

/** A quantity. Values are skewed towards `low` when `skew` > 1. */
export interface NumberColumn extends ColumnBase {
  readonly kind: "integer" | "real";
  readonly low: number;
  readonly high: number;
  readonly skew?: number;
  /** Decimals of a real. @default 2 */
  readonly decimals?: number;
  /** Values are multiples of this. */
  readonly step?: number;
  /** A number column to the left, or `ref.column` for one of the referenced row: it is added to the sampled value. */
  readonly follows?: string;
  /** A calendar year: never averaged. */
  readonly year?: boolean;
  /** For the largest and smallest value itself. @default ["highest", "lowest"], for years ["latest", "earliest"] */
  readonly extremes?: readonly [string, string];
  /** For the row with the largest and smallest value: adjectives, ["oldest", "youngest"], or what follows the noun, ["with the most goals", "with the fewest goals"]. @default "with the highest {phrase}" */
  readonly superlatives?: readonly [string, string];
  /** Before a threshold: ["older than", "younger than"]. @default "with a {phrase} above" / "below" */
  readonly comparatives?: readonly [string, string];
  /** Restricts to a range, both ends included: "aged between {a} and {b}". @default "with a {phrase} between {a} and {b}" */
  readonly between?: string;
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
  /** A date column to the left, or `ref.column` for one of the referenced row: values are 0 to `within` days after it. */
  readonly follows?: string;
  readonly within?: number;
  /** ["most recently hired", "longest-serving"]. @default "with the latest {phrase}" */
  readonly superlatives?: readonly [string, string];
}

/** A foreign key to the id of another table; some of its rows are referenced often, some never. */
export interface RefColumn extends ColumnBase {
  readonly kind: "ref";
  readonly table: string;
  /** Restricts this table's rows to one referred row: "by {v}", "at {v}", "in the {v} department". */
  readonly where: string;
  /** How the referred row relates to these rows: "have", "teach", "offer" (as in "how many albums does each artist …"). @default "have" */
  readonly verb?: string;
  /** Simple past and participle of the verb, where people ask in the past: ["wrote", "written"]. */
  readonly past?: readonly [string, string];
  /** Like `where` but takes several referred rows: "by {v}", where {v} is "artists from Sweden". @default `where` when it ends in {v} after one word */
  readonly through?: string;
  /** The referred row of one row: "the author of {x}". @default "the {phrase} of {x}" */
  readonly of?: string;
  /** Every referred row occurs at least once, if there are rows enough. */
  readonly every?: boolean;
}

export type ColumnSpec = IdColumn | LabelColumn | CategoryColumn | NumberColumn | DateColumn | RefColumn;
