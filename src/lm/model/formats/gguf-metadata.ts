// Typed access to a GGUF header's metadata. Errors name the key that is missing or has the wrong type.
import { ModelLoadError } from "../../../errors.ts";

export class GgufFacts {
  readonly file: string;
  readonly #facts: ReadonlyMap<string, unknown>;

  /** `file` appears in errors. */
  constructor(facts: ReadonlyMap<string, unknown>, file: string) {
    this.file = file;
    this.#facts = facts;
  }

  bad(what: string, value?: string | number, remedy = "check the file, or fetch it again"): ModelLoadError {
    return new ModelLoadError({ what: `${this.file}: ${what}`, value, remedy });
  }

  number(key: string): number | undefined {
    return this.#typed(
      key,
      "a number",
      (value): value is number => typeof value === "number" && Number.isFinite(value),
    );
  }

  whole(key: string): number | undefined {
    return this.#typed(key, "a whole number", (value): value is number => Number.isSafeInteger(value));
  }

  flag(key: string): boolean | undefined {
    return this.#typed(key, "true or false", (value) => typeof value === "boolean");
  }

  text(key: string): string | undefined {
    return this.#typed(key, "a text", (value) => typeof value === "string");
  }

  texts(key: string): readonly string[] | undefined {
    const isTexts = (value: unknown): value is string[] =>
      Array.isArray(value) && value.every((one) => typeof one === "string");
    return this.#typed(key, "a list of texts", isTexts);
  }

  wholes(key: string): readonly number[] | undefined {
    const isWholes = (value: unknown): value is number[] => Array.isArray(value) && value.every(Number.isSafeInteger);
    return this.#typed(key, "a list of whole numbers", isWholes);
  }

  /** Returns a required value; throws if it is missing. */
  needed<T>(key: string, value: T | undefined): T {
    if (value === undefined) throw this.bad("a fact is missing", key);
    return value;
  }

  #typed<T>(key: string, expected: string, is: (value: unknown) => value is T): T | undefined {
    const value = this.#facts.get(key);
    if (value === undefined || is(value)) return value;
    throw this.bad(`${key} should be ${expected}`, String(JSON.stringify(value)).slice(0, 80));
  }
}
