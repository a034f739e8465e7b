// Facts from package.json.
import { readFileSync } from "node:fs";

/** Version and description. */
export function packageInfo(): Readonly<Record<"version" | "description", string>> {
  return JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
}
