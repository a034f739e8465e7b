// CSV as RFC 4180 defines it, strictly: quoted fields may hold separators, quotes (doubled) and line breaks; every
// record has as many fields as the header. Reads text in pieces, so that a file of any size needs little memory.
import { QuestionLoadError } from "../../../errors.ts";

export interface CsvOptions {
  /** Name for error messages. */
  readonly file: string;
  /** @default the first of , ; tab and | that the header has */
  readonly separator?: string;
  /** Maximum fields of a record. @default 500 */
  readonly maxColumns?: number;
  /** Maximum characters of a field. @default 1,000,000 */
  readonly maxField?: number;
}

const SEPARATORS = [",", ";", "\t", "|"];

/** Where the reader is: before a field, in a plain or quoted one, after a quote in a quoted one, after \r. */
type State = "start" | "plain" | "quoted" | "quote" | "return";

/** Reads records from pieces of text; throws an error that names the line if it is not CSV. */
export function* readCsv(
  pieces: Iterable<string>,
  { file, separator, maxColumns = 500, maxField = 1_000_000 }: CsvOptions,
): Generator<readonly string[]> {
  let [state, field, record, line, width]: [State, string, string[], number, number] = ["start", "", [], 1, -1];
  let split = separator;
  let isFirst = true;

  const fail = (what: string) =>
    new QuestionLoadError(
      { what: `${what} in line ${line}`, value: file, remedy: "write it as RFC 4180 says" },
      "bad_csv",
    );
  const endField = () => {
    record.push(field);
    field = "";
    if (record.length > maxColumns)
      throw new QuestionLoadError(
        { what: `more than ${maxColumns} columns`, value: file, remedy: "split the table, or leave columns out" },
        "bad_csv",
      );
  };
  /** Ends a record; undefined for an empty line. */
  const endRecord = (): readonly string[] | undefined => {
    const isEmpty = record.length === 0 && field === "" && state !== "quote";
    endField();
    const done = record;
    record = [];
    if (isEmpty && width !== 1) return undefined;
    if (width < 0) width = done.length;
    if (done.length !== width) throw fail(`${done.length} fields instead of ${width}`);
    return done;
  };

  for (const piece of pieces) {
    const text: string = isFirst && piece.startsWith("\ufeff") ? piece.slice(1) : piece;
    if (isFirst && text !== "") {
      isFirst = false;
      split ??= separatorOf(text);
    }
    for (let at = 0; at < text.length; at++) {
      const character = text[at]!;
      if (character === "\0") throw fail("binary data");
      if (state === "return") {
        state = "start";
        if (character === "\n") continue;
      }
      if (state === "quoted") {
        if (character === '"') state = "quote";
        else {
          // Takes all text up to the next quote at once, since a field may be long.
          const next = text.indexOf('"', at);
          const run = text.slice(at, next < 0 ? text.length : next);
          if (run.includes("\0")) throw fail("binary data");
          field += run;
          line += count(run, "\n");
          at += run.length - 1;
          if (field.length > maxField)
            throw fail(`a field of more than ${maxField} characters, perhaps a quote that is not closed,`);
        }
        continue;
      }
      if (character === split) {
        endField();
        state = "start";
      } else if (character === "\n" || character === "\r") {
        const done = endRecord();
        state = character === "\r" ? "return" : "start";
        if (done) yield done;
        line++;
      } else if (state === "quote") {
        if (character !== '"') throw fail("text after a closing quote");
        field += '"';
        state = "quoted";
      } else if (character === '"') {
        if (state === "plain") throw fail("a quote inside a field without quotes");
        state = "quoted";
      } else {
        field += character;
        state = "plain";
        if (field.length > maxField) throw fail(`a field of more than ${maxField} characters`);
      }
    }
  }
  if (state === "quoted") throw fail("a quote that is not closed");
  if (state !== "return" && (record.length > 0 || field !== "" || state === "quote")) {
    const done = endRecord();
    if (done) yield done;
  }
}

function count(text: string, character: string): number {
  let found = 0;
  for (let at = text.indexOf(character); at >= 0; at = text.indexOf(character, at + 1)) found++;
  return found;
}

/** The separator that occurs most often in the first line, outside quotes. */
function separatorOf(text: string): string {
  const end = text.search(/[\r\n]/);
  const header = (end < 0 ? text : text.slice(0, end)).replace(/"[^"]*"/g, "");
  const counts = SEPARATORS.map((one) => header.split(one).length);
  return SEPARATORS[counts.indexOf(Math.max(...counts))]!;
}
