// Small JSON files that an earlier part of a run left in its folder.
import { z } from "zod";
import { ModelLoadError, messageOf } from "../../errors.ts";
import type { RunStore } from "./store.ts";

/** A record that an earlier part of the run wrote; null without the file. */
export function readRunJson<T>(store: Pick<RunStore, "read" | "name">, file: string, schema: z.ZodType<T>): T | null {
  const text = store.read(file);
  if (text === null) return null;
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    const issue = cause instanceof z.ZodError ? cause.issues[0] : undefined;
    const reason = issue ? [issue.path.join("."), issue.message].filter(Boolean).join(": ") : messageOf(cause);
    throw new ModelLoadError({
      what: `a file of the run is damaged (${reason})`,
      value: `${store.name}/${file}`,
      remedy: "restore it, or delete it: what can be made again is, the rest is left out of the result",
      cause,
    });
  }
}
