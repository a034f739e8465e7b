// A run's changes as Server-Sent Events. Each event's id is a cursor into the run, so that a page that lost its
// connection gets exactly what it missed.
import type { FeedEvent } from "./schemas.ts";

/** Milliseconds between polls of the folder, between heartbeats, and before a page reconnects. */
const [LOOK, SIGN, RETRY] = [400, 15_000, 1000];

/** The part of a run that a feed needs. */
export interface FeedRun {
  refresh(): Promise<void>;
  since(cursor: string): FeedEvent | "reset" | null;
}

/** Streams events from a cursor until the page disconnects. */
export function openFeed(run: FeedRun, cursor: string, signal: AbortSignal): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let known = cursor;
  let signed = Date.now();
  let open = true;
  const stop = () => {
    open = false;
    clearTimeout(timer);
  };
  return new ReadableStream({
    start(controller) {
      const send = (text: string) => {
        controller.enqueue(encoder.encode(text));
        signed = Date.now();
      };
      const close = () => {
        if (!open) return;
        stop();
        controller.close();
      };
      const look = async () => {
        try {
          await run.refresh();
          if (!open) return;
          const news = run.since(known);
          if (news === "reset") {
            send("event: reset\ndata: {}\n\n");
            return close(); // the page reloads everything and opens a new feed
          }
          // A slow page gets no more events for now: a later event includes what it missed.
          if (news && (controller.desiredSize ?? 0) > 0) {
            known = news.summary.cursor;
            send(`id: ${known}\ndata: ${JSON.stringify(news)}\n\n`);
          } else if (Date.now() - signed > SIGN) send(": still here\n\n");
          timer = setTimeout(look, LOOK);
        } catch (error) {
          stop();
          controller.error(error);
        }
      };
      signal.addEventListener("abort", close, { once: true });
      send(`retry: ${RETRY}\n\n`);
      void look();
    },
    cancel: stop,
  });
}
