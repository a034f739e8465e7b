// Server-sent events that a slow client reads at its own pace; what it has not read counts as held.
import type { HeldBytes } from "../held-bytes.ts";

/** Seconds between comments that keep an otherwise silent connection open; proxies close it after 30 or 60. */
const KEEP_ALIVE_SECONDS = 10;

const encoder = new TextEncoder();

export interface EventStreamOptions {
  readonly client: string;
  readonly held: HeldBytes;
  /** Called when the client has gone. */
  readonly onCancel: () => void;
}

/** A response body of events. */
export class EventStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly #options: EventStreamOptions;
  readonly #keepAlive: NodeJS.Timeout;
  #unread = "";
  #isOver = false;
  #isCancelled = false;
  #wake: (() => void) | undefined;

  constructor(options: EventStreamOptions) {
    this.#options = options;
    this.#keepAlive = setInterval(() => {
      if (this.#unread === "") this.#write(": waiting\n\n");
    }, KEEP_ALIVE_SECONDS * 1000);
    this.body = new ReadableStream(
      {
        pull: async (controller) => {
          while (this.#unread === "" && !this.#isOver)
            await new Promise<void>((resolve) => {
              this.#wake = resolve;
            });
          const text = this.#takeAll();
          if (text !== "") controller.enqueue(encoder.encode(text));
          else if (!this.#isCancelled) controller.close();
        },
        cancel: () => {
          this.#isCancelled = true;
          this.#takeAll();
          this.end();
          options.onCancel();
        },
      },
      { highWaterMark: 0 },
    );
  }

  /** Sends an event with JSON as its data. */
  send(data: object): void {
    this.#write(`data: ${JSON.stringify(data)}\n\n`);
  }

  /** Sends the event that ends a completion. */
  done(): void {
    this.#write("data: [DONE]\n\n");
    this.end();
  }

  /** Ends the stream. */
  end(): void {
    this.#isOver = true;
    clearInterval(this.#keepAlive);
    this.#wake?.();
  }

  #write(text: string): void {
    if (this.#isOver) return;
    this.#unread += text;
    this.#options.held.add(this.#options.client, text.length);
    this.#wake?.();
  }

  #takeAll(): string {
    const text = this.#unread;
    this.#unread = "";
    this.#options.held.giveBack(this.#options.client, text.length);
    return text;
  }
}
