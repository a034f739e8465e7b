// A real browser for tests of pages: Debian's chromium, driven by playwright-core. Without it they are skipped with a message.
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { describe } from "vitest";
import { CHROMIUM, WITHOUT } from "./chromium.ts";

/** `describe` where there is a browser. */
export function withBrowser(name: string, body: () => void): void {
  describe.skipIf(!CHROMIUM)(name + WITHOUT, body);
}

export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM!, args: ["--no-sandbox"] });
}

/** A page that records errors, console warnings and requests to other servers, none of which may happen. */
export interface WatchedPage {
  readonly page: Page;
  readonly faults: string[];
  close(): Promise<void>;
}

export async function openPage(
  browser: Browser,
  url: string,
  { width = 1280, height = 800, ...options }: BrowserContextOptions & { width?: number; height?: number } = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width, height }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const faults: string[] = [];
  const { origin } = new URL(url);
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) faults.push(message.text());
  });
  page.on("request", (request) => {
    const address = request.url();
    if (!address.startsWith("data:") && !address.startsWith("blob:") && new URL(address).origin !== origin)
      faults.push(`asked for ${address}`);
  });
  await page.goto(url);
  return { page, faults, close: () => context.close() };
}
