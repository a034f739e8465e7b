// Runs that are compared with the current one: the parameter `with` of the URL, kept by every link within a run.
import { currentRoute, setParams } from "./route.ts";

/** Ids of the compared runs. */
export function comparedRuns(current: string): readonly string[] {
  const { run, params } = currentRoute();
  if (run !== "" && run !== current) return [];
  const ids = (params.get("with") ?? "").split(",").filter(Boolean);
  return ids.map(decoded).filter((id) => id !== current);
}

/** Changes the compared runs; the links of the page's frame are updated. */
export function setComparedRuns(runs: readonly string[]): void {
  setParams({ with: runs.map(encodeURIComponent).join(",") });
  window.dispatchEvent(new Event("comparedchange"));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
