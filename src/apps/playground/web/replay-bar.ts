// The bar above a recorded episode: which one, its turns forward and back, and a play button.
import { $, fillOptions } from "../../web-shared/dom.ts";
import type { EpisodeState } from "./episode-state.ts";
import type { Client } from "./worker-client.ts";

const SHORTEST_PAUSE = 300; // milliseconds between turns; faster cannot be followed

export interface ReplayBar {
  /** Shows the episodes in a file. */
  open(file: File): void;
  draw(replay: NonNullable<EpisodeState["replay"]>): void;
  /** Goes forward (1) or back (-1). */
  move(turns: number): void;
  /** Plays from here, or from the start if at the end; pauses if playing. */
  toggle(): void;
}

/** Wires the bar; `run` executes an action and shows its error. */
export function createReplayBar(
  client: Client,
  episode: EpisodeState,
  run: (work: () => Promise<void>) => void,
  pause: () => number,
): ReplayBar {
  const playButton = $("replay-play", HTMLButtonElement);
  let timer: ReturnType<typeof setTimeout> | undefined;

  const stop = () => {
    clearTimeout(timer);
    timer = undefined;
    playButton.textContent = "▶ Play";
  };
  const length = () => {
    const { replay } = episode;
    return replay ? replay.list[replay.index]!.record.steps.length : 0;
  };
  const goTo = (at: number) => {
    const { replay } = episode;
    if (replay) episode.show({ ...replay, at: Math.max(0, Math.min(length(), at)) });
  };
  const tick = () => {
    if (!episode.replay || episode.replay.at >= length()) return stop();
    goTo(episode.replay.at + 1);
    if (episode.replay.at >= length()) return stop();
    timer = setTimeout(tick, Math.max(SHORTEST_PAUSE, pause()));
  };
  const toggle = () => {
    if (timer !== undefined) return stop();
    if (!episode.replay) return;
    if (episode.replay.at >= length()) goTo(0);
    playButton.textContent = "Pause";
    timer = setTimeout(tick, SHORTEST_PAUSE);
  };
  const move = (turns: number) => {
    stop();
    if (episode.replay) goTo(episode.replay.at + turns);
  };
  const readFile = async (file: File): Promise<void> => {
    const list = await client.call("read", { name: file.name, text: await file.text() });
    stop();
    episode.show({ list, index: 0, at: list[0]!.record.steps.length });
  };

  $("file", HTMLInputElement).addEventListener("change", (event) => {
    const input = event.target as HTMLInputElement;
    const file = input.files?.[0];
    if (file) run(() => readFile(file));
    input.value = ""; // the same file may be chosen again
  });
  $("replays", HTMLSelectElement).addEventListener("change", (event) => {
    stop();
    const index = Number((event.target as HTMLSelectElement).value);
    episode.show({ list: episode.replay!.list, index, at: episode.replay!.list[index]!.record.steps.length });
  });
  $("replay-at", HTMLInputElement).addEventListener("input", (event) => {
    stop();
    goTo(Number((event.target as HTMLInputElement).value));
  });
  $("replay-back", HTMLButtonElement).addEventListener("click", () => move(-1));
  $("replay-on", HTMLButtonElement).addEventListener("click", () => move(1));
  playButton.addEventListener("click", toggle);
  for (const id of ["replay-end", "replay-close"])
    $(id, HTMLButtonElement).addEventListener("click", () => {
      stop();
      episode.show(null);
    });

  return {
    open: (file) => run(() => readFile(file)),
    draw({ list, index, at }) {
      const slider = $("replay-at", HTMLInputElement);
      [slider.max, slider.value] = [String(length()), String(at)];
      $("replay-back", HTMLButtonElement).disabled = at === 0;
      $("replay-on", HTMLButtonElement).disabled = at === length();
      const select = $("replays", HTMLSelectElement);
      if (select.dataset.of !== String(list.length) || select.options[0]?.text !== list[0]!.title) {
        fillOptions(
          select,
          list.map(({ title }, i) => ({ value: String(i), text: title })),
        );
        select.dataset.of = String(list.length);
      }
      select.value = String(index);
    },
    move,
    toggle,
  };
}
