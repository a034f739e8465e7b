// Files to keep: from the server where there is one, else made here.
import { h } from "../../web-shared/dom.ts";

/** Downloads an address, or what `make` gives when there is none. */
export function keep(address: string | null, name: string, make: () => string): void {
  const href = address ?? URL.createObjectURL(new Blob([make()], { type: "text/plain;charset=utf-8" }));
  const anchor = h("a", { href, download: name.replace(/[^\w.-]+/g, "_"), class: "hidden" });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  if (address === null) setTimeout(() => URL.revokeObjectURL(href), 10_000);
}
