// Copies the episode so far: as a link, as code, or as JSON.
import { $ } from "../../web-shared/dom.ts";
import { asCurl, asTypeScript } from "./code-snippets.ts";
import type { EpisodeState } from "./episode-state.ts";
import { linkText } from "./permalink.ts";

const CONFIRMED = 2_000; // milliseconds

/** Wires the copy buttons; a button says that it worked, and the text is shown only if the browser refuses to copy. */
export function wireSharing(episode: EpisodeState, run: (work: () => Promise<void>) => void): void {
  const shown = $("copied", HTMLTextAreaElement);
  const texts: Readonly<Record<string, () => string>> = {
    "copy-link": () => `${location.href.split("#")[0]}#${linkText(episode.link)}`,
    // Under `sqlenv serve` the environment has the page's own origin.
    "copy-curl": () => asCurl(episode.link, location.pathname.startsWith("/web/") ? location.origin : undefined),
    "copy-ts": () => asTypeScript(episode.link),
    "copy-json": () =>
      JSON.stringify(episode.replay ? episode.replay.list[episode.replay.index]!.record : episode.record),
  };
  for (const [id, text] of Object.entries(texts)) {
    const button = $(id, HTMLButtonElement);
    const label = button.textContent;
    button.addEventListener("click", () =>
      run(async () => {
        shown.value = text();
        try {
          await navigator.clipboard.writeText(shown.value);
          shown.hidden = true;
          button.textContent = "Copied ✓";
        } catch {
          shown.hidden = false;
          shown.select();
          button.textContent = "Copy it below";
        }
        setTimeout(() => {
          button.textContent = label;
        }, CONFIRMED);
      }),
    );
  }
}
