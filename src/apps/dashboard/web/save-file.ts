// Saves a file from the server, or generated in the page.
import { h } from "../../web-shared/dom.ts";

/** Downloads a URL, or the result of `make` if there is none. */
export function saveFile(url: string | null, name: string, make: () => string): void {
  const href = url ?? URL.createObjectURL(new Blob([make()], { type: "text/plain;charset=utf-8" }));
  const anchor = h("a", { href, download: name.replace(/[^\w.-]+/g, "_"), class: "hidden" });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  if (url === null) setTimeout(() => URL.revokeObjectURL(href), 10_000);
}
