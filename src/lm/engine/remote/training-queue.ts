// The requests that train a model, in order: each is sent when the one before it was accepted, not when that has its
// result. Servers run them by their sequence numbers. If one fails, none is sent after it.
import { EngineError } from "../../../errors.ts";
import type { Reply, TinkerClient } from "./client.ts";

export interface Numbers {
  readonly model_id: string;
  readonly seq_id: number;
}

/** One way to send a request: a route, and a body in JSON or protobuf. */
export interface Form {
  readonly path: string;
  readonly body: (numbers: Numbers) => object | Uint8Array;
}

/** A request that was sent; its result is awaited separately, so that the next can be sent. */
export interface Submitted {
  readonly result: Promise<Reply>;
}

export class TrainingQueue {
  /** Forms of requests that the server does not know. */
  readonly unknown = new Set<"forward" | "json">();
  readonly #client: TinkerClient;
  readonly #isOurs: boolean;
  readonly #modelId: () => Promise<string>;
  #sequence = 0;
  #failure: unknown;
  /** Resolves when the last request was accepted. */
  #accepted: Promise<unknown> = Promise.resolve();

  /**
   * @param modelId creates the model when it is first needed
   * @param isOurs whether the server leaves out log-probs of tokens that are not trained on
   */
  constructor(client: TinkerClient, modelId: () => Promise<string>, { isOurs }: { readonly isOurs: boolean }) {
    this.#client = client;
    this.#modelId = modelId;
    this.#isOurs = isOurs;
  }

  /** The next sequence number. */
  next(): number {
    return ++this.#sequence;
  }

  /** Sends nothing after this error. */
  fail(error: unknown): void {
    this.#failure ??= error;
  }

  /** Begins anew, for another model. */
  reset(): void {
    [this.#sequence, this.#failure, this.#accepted] = [0, undefined, Promise.resolve()];
  }

  /** Sends a request in the first of the forms that the server knows; its result is awaited separately. */
  async send(type: string, forms: () => readonly Form[]): Promise<Submitted> {
    const headers: Record<string, string> = { "x-tinker-request-type": type };
    if (this.#isOurs) headers["x-sqlenv-logprobs"] = "trained";
    const submitted = this.#accepted.then(async () => {
      if (this.#failure) throw this.#failure;
      const model_id = await this.#modelId();
      const seq_id = this.next();
      const left = [...forms()];
      for (;;) {
        const { path, body } = left.shift()!;
        const message = body({ model_id, seq_id });
        const submit = () => this.#client.json(path, message, { headers });
        let first: unknown;
        try {
          first = await submit();
        } catch (error) {
          if (left.length === 0 || !(error instanceof EngineError) || !isUnknownForm(path, error)) throw error;
          this.unknown.add(path === "forward" ? "forward" : "json");
          continue;
        }
        const again = async () => {
          const reply = first ?? (await submit());
          first = null; // sent again only if its result is gone
          return reply;
        };
        const result = this.#client.result(path, again, { headers });
        result.catch((error: unknown) => {
          this.#failure ??= error;
        });
        return { result };
      }
    });
    this.#accepted = submitted.catch((error: unknown) => {
      this.#failure ??= error;
    });
    return submitted;
  }
}

/** Whether a server refused a request for its form, and did not take it. */
function isUnknownForm(path: string, { value = "" }: EngineError): boolean {
  return (path === "forward" && /^HTTP 40[45]\b/.test(value)) || /^HTTP 415\b|protobuf/i.test(value);
}
