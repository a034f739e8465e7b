// The spec of a world: describes a database so that code can fill it and ask natural questions about it. A spec is
// plain data: build.ts makes rows from it, forms make questions from it.

/** One database: its tables and the words people use for them. */
export interface WorldSpec {
  readonly name: string;
  /** Short description for listings: "concerts and the bands that play them". */
  readonly topic: string;
  /** A table must come after the tables it references. */
  readonly tables: readonly TableSpec[];
}

export interface TableSpec {
  readonly name: string;
  /** Singular noun such as "singer", never capitalized; `many` is the plural. */
  readonly one: string;
  readonly many: string;
  /** The column that names a row (of kind "label"); link tables have none. */
  readonly label?: string;
  readonly rows: number;
  readonly columns: readonly ColumnSpec[];
  /** Whether rows are people, so that questions say "who". */
  readonly person?: boolean;
  /** How a row is named in a sentence: "flight {v}", "the film {v}". @default "{v}" */
  readonly called?: string;
  /**
   * What the rows of a link table state: students (`subject`, a ref column) "take" courses (`object`). `past` as in
   * RefColumn.
   */
  readonly relation?: {
    readonly subject: string;
    readonly verb: string;
    readonly past?: readonly [string, string];
    readonly object: string;
  };
  /** Hand-written values for columns that belong together, such as city and country; they fill the first rows. */
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
  /** Question for the value of one row: "How old is {x}?" @default "What is the {phrase} of {x}?" and similar */
  readonly ask?: string;
  /** Phrase for rows without a value: "still in hospital". @default "with no recorded {phrase}" */
  readonly missing?: string;
  /** Type to cast to, for a column of numbers that are stored as text. */
  readonly cast?: "INTEGER" | "REAL";
}

/** The primary key: 1, 2, 3 … */
export interface IdColumn extends ColumnBase {
  readonly kind: "id";
}

/**
 * The name of a row, or another unique text such as a code. Unless `repeats` is set, `values` must be distinct and no
 * fewer than the rows.
 */
export interface LabelColumn extends ColumnBase {
  readonly kind: "label";
  readonly values: readonly string[];
  readonly repeats?: boolean;
}

/** A word from a short list; earlier words are more frequent (Zipf). */
export interface CategoryColumn extends ColumnBase {
  readonly kind: "category";
  readonly values: readonly string[];
  /** Plural of the phrase: "genres". */
  readonly plural: string;
  /**
   * Phrase for rows with a value: "from {v}", "in the {v} category", "with {av} card" for "with a student card".
   * @default "whose {phrase} is {v}"
   */
  readonly where?: string;
  /** Phrase before the noun, instead of `where`: "{v}" as in "Italian restaurants". */
  readonly before?: string;
  /** Phrases for single values, instead of both: { T: "that are full-time" }. */
  readonly words?: Readonly<Record<string, string>>;
  /** Whether the values are numbers, which are written without quotes. */
  readonly numeric?: boolean;
}

/** A quantity. Values are skewed towards `low` when `skew` > 1. */
export interface NumberColumn extends ColumnBase {
  readonly kind: "integer" | "real";
  readonly low: number;
  readonly high: number;
  readonly skew?: number;
  /** Decimals of a real. @default 2 */
  readonly decimals?: number;
  /** Every value is a multiple of this. */
  readonly step?: number;
  /**
   * A number column to the left, or `ref.column` for one in the referenced row, whose value is added to the sampled
   * one.
   */
  readonly follows?: string;
  /** Whether it is a calendar year, which is never averaged. */
  readonly year?: boolean;
  /** Words for the largest and smallest value. @default ["highest", "lowest"], for years ["latest", "earliest"] */
  readonly extremes?: readonly [string, string];
  /**
   * Words for the row with the largest and smallest value: adjectives such as ["oldest", "youngest"], or what follows
   * the noun, such as ["with the most goals", "with the fewest goals"]. @default "with the highest {phrase}"
   */
  readonly superlatives?: readonly [string, string];
  /** Words before a threshold: ["older than", "younger than"]. @default "with a {phrase} above" / "below" */
  readonly comparatives?: readonly [string, string];
  /**
   * Phrase for a range, both ends included: "aged between {a} and {b}". @default "with a {phrase} between {a} and {b}"
   */
  readonly between?: string;
  /** Word after a number: "minutes", "euros". */
  readonly unit?: string;
  /** Whether a sum of values makes sense: for sales yes, for ages no. */
  readonly summable: boolean;
}

/** A date as text, such as "2019-04-30". */
export interface DateColumn extends ColumnBase {
  readonly kind: "date";
  readonly from: string;
  readonly to: string;
  /** Phrase for rows of a year: "hired in {v}". */
  readonly where: string;
  /**
   * A date column to the left, or `ref.column` for one in the referenced row: values are 0 to `within` days after it.
   */
  readonly follows?: string;
  readonly within?: number;
  /**
   * Words for the latest and earliest row: ["most recently hired", "longest-serving"]. @default "with the latest
   * {phrase}"
   */
  readonly superlatives?: readonly [string, string];
}

/** A foreign key to the id of another table; some of its ids are referenced often, some never. */
export interface RefColumn extends ColumnBase {
  readonly kind: "ref";
  readonly table: string;
  /** Phrase for rows that reference one row: "by {v}", "at {v}", "in the {v} department". */
  readonly where: string;
  /**
   * Verb that relates the referenced row to these rows: "have", "teach", "offer" (as in "how many albums does each
   * artist …"). @default "have"
   */
  readonly verb?: string;
  /** Simple past and participle of the verb, if people ask in the past: ["wrote", "written"]. */
  readonly past?: readonly [string, string];
  /**
   * Like `where`, but for several referenced rows: "by {v}", where {v} is "artists from Sweden". @default `where` if it
   * ends in {v} after one word
   */
  readonly through?: string;
  /** Phrase for the row that one row references: "the author of {x}". @default "the {phrase} of {x}" */
  readonly of?: string;
  /** Whether every row of the referenced table occurs at least once, if there are enough rows. */
  readonly every?: boolean;
  /** Whether questions may say that a referenced row has these rows. @default true */
  readonly owned?: boolean;
}

export type ColumnSpec = IdColumn | LabelColumn | CategoryColumn | NumberColumn | DateColumn | RefColumn;
