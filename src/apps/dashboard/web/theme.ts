// Light, dark, or as the system has it.
import { button } from "./dom.ts";

const KEY = "sqlenv-theme";
const THEMES = ["auto", "light", "dark"] as const;
const SIGNS = { auto: "◐ auto", light: "☀ light", dark: "☾ dark" } as const;
type Theme = (typeof THEMES)[number];

/** A button that goes from one to the next. */
export function themeButton(): HTMLButtonElement {
  let theme = stored();
  const element = button(SIGNS[theme], () => set(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!), {
    class: "theme",
    title: "light, dark, or as the system has it",
  });
  const set = (next: Theme) => {
    theme = next;
    if (next === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    element.textContent = SIGNS[next];
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // a page without storage forgets
    }
    window.dispatchEvent(new Event("themechange"));
  };
  set(theme);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    window.dispatchEvent(new Event("themechange")),
  );
  return element;
}

function stored(): Theme {
  try {
    return THEMES.find((theme) => theme === localStorage.getItem(KEY)) ?? "auto";
  } catch {
    return "auto";
  }
}
