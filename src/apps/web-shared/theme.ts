// The color theme: light, dark, or the system's. The dashboard and the playground share the stored choice.
const KEY = "sqlenv-theme";
const THEMES = ["auto", "light", "dark"] as const;
const LABELS = { auto: "◐ auto", light: "☀ light", dark: "☾ dark" } as const;
type Theme = (typeof THEMES)[number];

/**
 * Applies the stored theme and makes a button cycle through the themes. The theme is `data-theme` on the root element
 * (absent for the system's), and `themechange` is dispatched on the window whenever colors may have changed.
 */
export function wireThemeButton(button: HTMLButtonElement): HTMLButtonElement {
  let theme = readTheme();
  const apply = () => {
    const { dataset } = document.documentElement;
    if (theme === "auto") delete dataset.theme;
    else dataset.theme = theme;
    button.textContent = LABELS[theme];
    notify();
  };
  button.title = "light, dark, or the system's theme";
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
    writeTheme(theme);
    apply();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", notify);
  apply();
  return button;
}

function notify(): void {
  window.dispatchEvent(new Event("themechange"));
}

/** The stored theme; a value from elsewhere, or no storage at all, means the system's. */
function readTheme(): Theme {
  try {
    const stored = localStorage.getItem(KEY);
    return THEMES.find((theme) => theme === stored) ?? "auto";
  } catch {
    return "auto";
  }
}

function writeTheme(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Without storage (private windows) the choice lasts until the page is closed.
  }
}
