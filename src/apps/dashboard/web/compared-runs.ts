// Which runs are laid over the one that is looked at; kept for as long as the tab is open.

const KEY = "sqlenv-dashboard-runs";

/** Ids of the others. */
export function chosenRuns(current: string): readonly string[] {
  try {
    const all = JSON.parse(sessionStorage.getItem(KEY) ?? "{}") as Record<string, string[]>;
    return all[current] ?? [];
  } catch {
    return []; // no storage here, or somebody else's
  }
}

export function chooseRuns(current: string, runs: readonly string[]): void {
  try {
    const all = JSON.parse(sessionStorage.getItem(KEY) ?? "{}") as Record<string, readonly string[]>;
    sessionStorage.setItem(KEY, JSON.stringify({ ...all, [current]: runs }));
  } catch {
    // a page without storage forgets
  }
}
