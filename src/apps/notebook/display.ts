// What a notebook shows: the same thing in several forms, of which it takes the best it knows.

/** Contents by MIME type; `text/plain` is always among them. */
export type Bundle = Readonly<Record<string, string>> & { readonly "text/plain": string };

/** Something to show; printed, it is its text. */
export class Shown {
  readonly bundle: Bundle;

  constructor(bundle: Bundle) {
    this.bundle = bundle;
  }

  /** Asked by Deno's kernel of a cell's last line. */
  [Symbol.for("Jupyter.display")](): Bundle {
    return this.bundle;
  }

  /** Asked by `console.log`. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }

  toString(): string {
    return this.bundle["text/plain"];
  }
}

/** Puts something on the notebook's page; the same name again puts it in the place of what was there. */
export type Board = (name: string, shown: Shown) => Promise<void>;
