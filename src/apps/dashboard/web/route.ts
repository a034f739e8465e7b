// The view and its parameters in the URL fragment, so that reloads, bookmarks and shared links work.

export interface Route {
  /** The run's id; empty for the first run. */
  readonly run: string;
  readonly view: string;
  readonly rest: readonly string[];
  readonly params: URLSearchParams;
}

/** Parses "#/run/view/more?key=value". */
export function currentRoute(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [run = "", view = "", ...rest] = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return "";
    }
  });
  return { run, view: view || "overview", rest, params: new URLSearchParams(query) };
}

/** Parameters that links within a run keep: the runs it is compared with, and how runs are grouped. */
const KEPT = ["with", "group"];

/** The URL fragment of a view. */
export function hrefOf(
  run: string,
  view: string,
  rest: readonly (string | number)[] = [],
  params: Readonly<Record<string, string | number | boolean | undefined>> = {},
): string {
  const path = [run, view, ...rest].map((part) => encodeURIComponent(part)).join("/");
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(params))
    if (value !== undefined && value !== "" && value !== false) query.set(key, String(value));
  const here = currentRoute();
  for (const key of KEPT) {
    const value = here.params.get(key);
    if (value && here.run === run && !(key in params)) query.set(key, value);
  }
  const text = query.toString();
  return `#/${path}${text ? `?${text}` : ""}`;
}

/** Changes parameters in the URL without navigating. */
export function setParams(changes: Readonly<Record<string, string | number | boolean | undefined>>): void {
  const { run, view, rest, params } = currentRoute();
  const next = { ...Object.fromEntries(params), ...changes };
  history.replaceState(null, "", hrefOf(run, view, rest, next));
}
