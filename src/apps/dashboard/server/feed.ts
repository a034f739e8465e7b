// What is new in a run, pushed to a page as Server-Sent Events. Each event's id says how much the page then knows, so that a
// page that lost its connection gets exactly what it missed.
import type { FeedEvent } from "./schemas.ts";

/** Milliseconds between looks at the folder, between signs of life, and before a page tries again. */
const [LOOK, SIGN, RETRY] = [400, 15_000, 1000];

/** What a feed needs of a run. */
export interface FeedRun {
  refresh(): Promise<void>;
  since(cursor: string): FeedEvent | "reset" | null;
}

/** The feed from a cursor on, until the page has gone. */
export function feedOf(run: FeedRun, cursor: string, signal: AbortSignal): ReadableStream<Uint8Array> {
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
            return close(); // the page reads everything again and asks for a new feed
          }
          // A page that does not keep up is not sent more: what it missed is in a later event.
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
