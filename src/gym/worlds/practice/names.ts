// Naming styles of practice worlds: like a real database, each world spells tables and columns in one style.
import type { Random } from "../../../random.ts";
import { unseenNames } from "../bundled.ts";

let heldOut: ReadonlySet<string> | undefined;

/** Whether a name, in any spelling, is reserved for the held-out databases. */
export function isHeldOut(name: string): boolean {
  heldOut ??= new Set([...unseenNames()].map(bare));
  return heldOut.has(bare(name));
}

/** A key that is equal for `Unit Price`, `unit_price` and `unitPrice`. */
function bare(name: string): string {
  return name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
}

/** In this order: unit_price, unitPrice, UnitPrice, Unit_Price, UNIT_PRICE, unitprice, unit price, Unit Price. */
type Case = "snake" | "camel" | "pascal" | "ada" | "upper" | "joined" | "spaced" | "titled";

/** A world's naming style. */
export interface NameStyle {
  readonly letters: Case;
  readonly pluralTables: boolean;
  /** Text before and after a table's noun: `tbl_`, `_list`. */
  readonly tablePrefix: string;
  readonly tableSuffix: string;
  /** Templates for primary keys and references; `{one}` is the table's noun. */
  readonly id: string;
  readonly ref: string;
  /** Share of long words that are abbreviated. */
  readonly abbreviates: number;
}

/** Samples a world's naming style. */
export function drawStyle(r: Random): NameStyle {
  const letters = r.pickWeighted<Case>([
    ["snake", 62],
    ["camel", 10],
    ["pascal", 8],
    ["ada", 3],
    ["upper", 5],
    ["joined", 6],
    ["spaced", 3],
    ["titled", 3],
  ]);
  const isPrefixed = r.chance(0.07);
  const isSuffixed = !isPrefixed && r.chance(0.05);
  return {
    letters,
    pluralTables: r.chance(0.5),
    tablePrefix: isPrefixed ? r.pick(["tbl", "t", "dim", "app", "my", "db", "x", "core", "main"]) : "",
    tableSuffix: isSuffixed ? r.pick(["list", "data", "info", "table", "records", "tbl", "master", "2"]) : "",
    id: r.pickWeighted([
      ["id", 10],
      ["{one} id", 7],
      ["{one} no", 2],
      ["{one} key", 1],
      ["{one} nr", 1],
      ["pk", 0.5],
      ["{one} number", 0.5],
    ]),
    ref: r.pickWeighted([
      ["{one} id", 12],
      ["{one}", 4],
      ["{one} no", 2],
      ["{one} ref", 1],
      ["fk {one}", 0.7],
      ["{one} key", 0.7],
      ["{one} fk", 0.5],
    ]),
    abbreviates: r.chance(0.08) ? 0.6 : r.chance(0.1) ? 0.15 : 0,
  };
}

/** Makes a table's name from the words people use for it. */
export function tableName(r: Random, style: NameStyle, one: string, many: string): string {
  // Few databases are consistent about plurals.
  const noun = style.pluralTables !== r.chance(0.06) ? many : one;
  return spell(r, style, `${style.tablePrefix} ${noun} ${style.tableSuffix}`);
}

/** Makes a column's name from its words. */
export function columnName(r: Random, style: NameStyle, words: string): string {
  return spell(r, style, words);
}

function spell(r: Random, style: NameStyle, text: string): string {
  const words = text
    .trim()
    .split(/[\s-]+/)
    .map((word) => (word.length > 5 && r.chance(style.abbreviates) ? abbreviated(r, word) : word));
  const [first = "", ...rest] = words;
  switch (style.letters) {
    case "snake":
      return words.join("_");
    case "camel":
      return first + rest.map(raised).join("");
    case "pascal":
      return words.map(raised).join("");
    case "ada":
      return words.map(raised).join("_");
    case "upper":
      return words.join("_").toUpperCase();
    case "joined":
      return words.join("");
    case "spaced":
      return words.join(" ");
    case "titled":
      return words.map(raised).join(" ");
  }
}

function raised(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** Abbreviates a word: "quantity" → "quan", "qntty" or "qnt". */
function abbreviated(r: Random, word: string): string {
  if (r.chance(0.5)) return word.slice(0, r.int(3, 5));
  const consonants = word.charAt(0) + word.slice(1).replace(/[aeiou]/g, "");
  return consonants.slice(0, r.int(3, 6));
}
