// Module hooks for Nodes that do not run TypeScript: types are stripped in memory, so that files keep their addresses and
// what they import is found, whether or not their folder can be written to.
import { readFileSync } from "node:fs";
import type { LoadHook } from "node:module";
import { fileURLToPath } from "node:url";

export const load: LoadHook = async (url, context, nextLoad) => {
  if (!/^file:.*\.[cm]?ts$/.test(url)) return nextLoad(url, context);
  const { transformSync } = await import("@swc/wasm-typescript");
  const { code } = transformSync(readFileSync(fileURLToPath(url), "utf8"), { mode: "strip-only" });
  return { format: "module", source: code, shortCircuit: true };
};
