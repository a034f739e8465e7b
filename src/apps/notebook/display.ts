// Notebook output: the same content in several MIME types, of which the notebook picks the richest it supports.

/** Content by MIME type; always includes `text/plain`. */
export type Bundle = Readonly<Record<string, string>> & { readonly "text/plain": string };

/** A displayable value; printed, it is its text. */
export class Shown {
  readonly bundle: Bundle;

  constructor(bundle: Bundle) {
    this.bundle = bundle;
  }

  /** Called by Deno's kernel on a cell's last value. */
  [Symbol.for("Jupyter.display")](): Bundle {
    return this.bundle;
  }

  /** Called by `console.log`. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }

  toString(): string {
    return this.bundle["text/plain"];
  }
}

/** Displays something in the notebook; the same name again replaces it. */
export type Board = (name: string, shown: Shown) => Promise<void>;
