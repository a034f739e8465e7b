// Runs selected for comparison with the current one, stored for the tab's session.

const KEY = "sqlenv-dashboard-runs";

/** Ids of the compared runs. */
export function comparedRuns(current: string): readonly string[] {
  try {
    const all = JSON.parse(sessionStorage.getItem(KEY) ?? "{}") as Record<string, string[]>;
    return all[current] ?? [];
  } catch {
    return []; // no storage, or foreign content
  }
}

export function setComparedRuns(current: string, runs: readonly string[]): void {
  try {
    const all = JSON.parse(sessionStorage.getItem(KEY) ?? "{}") as Record<string, readonly string[]>;
    sessionStorage.setItem(KEY, JSON.stringify({ ...all, [current]: runs }));
  } catch {
    // not stored
  }
}
