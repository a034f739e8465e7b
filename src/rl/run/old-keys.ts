// Keys of a run folder's files that have another name now.
import { z } from "zod";

/** The schema, which also accepts keys by the names that earlier versions wrote. @param names new name by old name */
export function acceptOldKeys<S extends z.ZodType>(schema: S, names: Readonly<Record<string, string>>) {
  return z.preprocess((value) => {
    if (typeof value !== "object" || value === null) return value; // the schema refuses it
    return Object.fromEntries(Object.entries(value).map(([key, field]) => [names[key] ?? key, field]));
  }, schema);
}
