// Opens a browser for measurements: playwright-core drives an installed Chromium.
import { existsSync } from "node:fs";
import { SqlEnvError } from "../../../errors.ts";

/** The part of playwright-core that the benchmark uses. */
export interface BrowserPage {
  goto(url: string, options?: { readonly waitUntil?: "commit" | "load" }): Promise<unknown>;
  evaluate<T, A>(work: (argument: A) => T, argument: A): Promise<T>;
  waitForFunction(work: () => boolean): Promise<unknown>;
  close(): Promise<void>;
  on(event: "response", listener: (response: BrowserResponse) => void): void;
}
export interface BrowserResponse {
  url(): string;
  request(): { sizes(): Promise<{ readonly responseBodySize: number; readonly responseHeadersSize: number }> };
}
export interface Browser {
  version(): string;
  newPage(): Promise<BrowserPage>;
  close(): Promise<void>;
}

const PLACES = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/usr/bin/google-chrome-stable",
];

/** Path of Chromium: $CHROMIUM or a usual location; null if there is none. */
export function chromiumPath(): string | null {
  const named = process.env.CHROMIUM;
  return [...(named ? [named] : []), ...PLACES].find((path) => existsSync(path)) ?? null;
}

/** Starts Chromium. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = chromiumPath();
  if (!executablePath)
    throw new SqlEnvError("no_browser", {
      what: "Chromium was not found",
      remedy: "install one, or name it in CHROMIUM",
    });
  const name = "playwright-core"; // a development tool, not a dependency of the package
  let playwright: { chromium: { launch(options: object): Promise<Browser> } };
  try {
    playwright = (await import(name)) as typeof playwright;
  } catch (cause) {
    throw new SqlEnvError("no_browser", {
      what: "playwright-core is not installed",
      remedy: "npm install playwright-core",
      cause,
    });
  }
  return playwright.chromium.launch({ executablePath, args: ["--no-sandbox"] });
}
