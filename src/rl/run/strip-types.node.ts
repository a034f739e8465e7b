// Module hooks for Node versions that do not run TypeScript. Types are stripped in memory: files keep their URLs, so relative
// imports resolve, and their folder need not be writable.
import { readFileSync } from "node:fs";
import type { LoadHook } from "node:module";
import { fileURLToPath } from "node:url";

export const load: LoadHook = async (url, context, nextLoad) => {
  if (!/^file:.*\.[cm]?ts$/.test(url)) return nextLoad(url, context);
  const { transformSync } = await import("@swc/wasm-typescript");
  const { code } = transformSync(readFileSync(fileURLToPath(url), "utf8"), { mode: "strip-only" });
  return { format: "module", source: code, shortCircuit: true };
};
