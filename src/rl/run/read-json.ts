// Small JSON files that an earlier part of a run left in its folder.
import { ModelLoadError, messageOf } from "../../errors.ts";
import type { RunStore } from "./store.ts";

/** What an earlier part of the run left; null for nothing. A file that is no JSON object with these keys is refused. */
export function readRunJson<T extends object>(
  store: Pick<RunStore, "read" | "name">,
  file: string,
  keys: readonly (keyof T & string)[],
): T | null {
  const text = store.read(file);
  if (text === null) return null;
  const damaged = (how: string, cause?: unknown) =>
    new ModelLoadError({
      what: `a file of the run is damaged (${how})`,
      value: `${store.name}/${file}`,
      remedy: "restore it, or delete it: what can be made again is, the rest is left out of the result",
      cause,
    });
  let value: Partial<T> | null;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw damaged(messageOf(cause), cause);
  }
  const missing = keys.find((key) => value?.[key] === undefined);
  if (missing !== undefined) throw damaged(`it has no ${missing}`);
  return value as T;
}
