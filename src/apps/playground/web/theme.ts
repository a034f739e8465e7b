// Dark or light: as the system has it, until one says otherwise.
import { $ } from "./dom.ts";

const KEY = "sqlenv-theme";

/** Wires the switch, and remembers what was chosen where the browser lets it. */
export function wireTheme(): void {
  const set = (theme: string) => document.documentElement.style.setProperty("color-scheme", theme);
  const kept = remember();
  if (kept === "dark" || kept === "light") set(kept);
  $("theme", HTMLButtonElement).addEventListener("click", () => {
    const chosen = document.documentElement.style.colorScheme;
    const isDark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    const theme = isDark ? "light" : "dark";
    set(theme);
    remember(theme);
  });
}

function remember(theme?: string): string | null {
  try {
    if (theme !== undefined) localStorage.setItem(KEY, theme);
    return localStorage.getItem(KEY);
  } catch {
    return null; // private windows may have no storage
  }
}
