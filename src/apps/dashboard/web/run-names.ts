// Names that a reader gives to runs, beside the folders' own. They are kept in this browser: the dashboard only reads runs.
const KEY = "sqlenv-run-names";
/** Names given in this page, for browsers that store nothing (private windows). */
let names: Readonly<Record<string, string>> | null = null;

/** The given name of a run, else its id, which is its folder's name. */
export function runName(id: string): string {
  names ??= stored();
  return Object.hasOwn(names, id) ? names[id]! : id;
}

/** Renames a run; an empty name gives it its folder's name again. */
export function renameRun(id: string, name: string): void {
  const { [id]: _, ...others } = names ?? stored();
  const given = name.trim().slice(0, 80);
  names = given === "" || given === id ? others : { ...others, [id]: given };
  try {
    localStorage.setItem(KEY, JSON.stringify(names));
  } catch {
    // the name lasts until the page is closed
  }
  window.dispatchEvent(new Event("renamed"));
}

function stored(): Readonly<Record<string, string>> {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    if (typeof value !== "object" || value === null) return {};
    return Object.fromEntries(Object.entries(value).filter(([, name]) => typeof name === "string"));
  } catch {
    return {};
  }
}
