// Names that an index file exports, followed to their declarations and doc comments.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

export interface Exported {
  readonly name: string;
  /** "function", "class", "const", "interface" or "type". */
  readonly kind: string;
  /** The file of its declaration. */
  readonly file: string;
  /** Its doc comment, without asterisks; empty without one. */
  readonly doc: string;
}

const DECLARATION =
  /(?:^\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n)?^export (?:async )?(function|class|const|interface|type)\*? (\w+)/gm;
const LIST = /^export (?:type )?\{([^}]*)\}(?: from "([^"]+)")?/gm;

/** The exports of a source file, by name. */
export function exportedBy(file: string): Map<string, Exported> {
  const source = readFileSync(file, "utf8");
  const found = new Map<string, Exported>();
  for (const [, from = ""] of source.matchAll(/^export \* from "([^"]+)"/gm))
    for (const [name, exported] of exportedBy(join(dirname(file), from))) found.set(name, exported);
  for (const [, doc = "", kind = "", name = ""] of source.matchAll(DECLARATION))
    found.set(name, { name, kind, file, doc: doc.replace(/^ *\*? ?/gm, "") });
  for (const [, list = "", from] of source.matchAll(LIST)) {
    const there = from === undefined ? found : exportedBy(join(dirname(file), from));
    for (const item of list.replace(/\/\*[\s\S]*?\*\//g, "").split(",")) {
      const [original = "", name = original] = item
        .trim()
        .replace(/^type /, "")
        .split(" as ");
      if (original) found.set(name, { ...there.get(original)!, name });
    }
  }
  return found;
}

/** The code of a doc comment's `@example`; undefined without one. */
export function exampleIn(doc: string): string | undefined {
  return /^@example\n([\s\S]+?)(?=^@\w|$(?![\s\S]))/m.exec(doc)?.[1]?.trim();
}
