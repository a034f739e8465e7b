// Request and reply over a WebSocket: one request at a time, with a time limit, in Node and in browsers.
import { messageOf, ServerError } from "../../errors.ts";

/** The part of the WebSocket interface that we use; the `ws` package has it too. */
export interface SocketLike {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onerror: ((event: never) => void) | null;
  onclose: ((event: { code: number; reason: string }) => void) | null;
  send(text: string): void;
  close(code?: number): void;
}

export type SocketMaker = (url: string) => SocketLike;

interface Waiting {
  readonly resolve: (text: string) => void;
  readonly reject: (error: Error) => void;
}

/** An open connection. */
export class Connection {
  readonly #socket: SocketLike;
  #waiting: Waiting | undefined;
  #unsolicited: string | undefined;
  #lost: ServerError | undefined;

  private constructor(socket: SocketLike) {
    this.#socket = socket;
  }

  get isOpen(): boolean {
    return this.#lost === undefined;
  }

  /** Opens a connection. Rejects with code `connect_failed`. */
  static open(url: string, make: SocketMaker, milliseconds: number): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const shown = url.replace(/api_key=[^&]*/, "api_key=…");
      const fail = (why: string) =>
        reject(
          new ServerError("connect_failed", {
            what: "cannot connect to",
            value: shown,
            remedy: `${why}; is the server running?`,
          }),
        );
      let socket: SocketLike;
      try {
        socket = make(url);
      } catch (error) {
        fail(messageOf(error));
        return;
      }
      const connection = new Connection(socket);
      const timer = setTimeout(() => {
        socket.close();
        fail(`no answer within ${milliseconds / 1000} s`);
      }, milliseconds);
      socket.onerror = (event) => fail((event as { message?: string }).message || "the connection was refused");
      socket.onclose = ({ code, reason }) => {
        clearTimeout(timer);
        fail(`closed with ${code}`);
        connection.#lose(code, reason);
      };
      socket.onmessage = ({ data }) => connection.#hear(String(data));
      socket.onopen = () => {
        clearTimeout(timer);
        resolve(connection);
      };
    });
  }

  /** Sends a text and resolves with the reply. A timeout closes the connection: a late reply would be mistaken for the next one. */
  ask(text: string, milliseconds: number): Promise<string> {
    if (this.#lost && this.#unsolicited === undefined) return Promise.reject(this.#lost);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#lost = new ServerError("timeout", {
          what: `the server did not answer within ${milliseconds / 1000} s`,
          remedy: "reset to start again",
        });
        this.#socket.close();
        this.#settle()?.reject(this.#lost);
      }, milliseconds);
      const done = () => clearTimeout(timer);
      this.#waiting = {
        resolve: (answer) => {
          done();
          resolve(answer);
        },
        reject: (error) => {
          done();
          reject(error);
        },
      };
      // A server without a free slot sends its error at once: that message is the reply to the first request.
      if (this.#unsolicited !== undefined) this.#hear(this.#unsolicited);
      else this.#socket.send(text);
    });
  }

  /** Sends a close message and closes. */
  close(): void {
    if (!this.#lost) {
      this.#lost = new ServerError("closed", { what: "the client was closed" });
      this.#socket.send('{"type":"close"}');
    }
    this.#socket.close(1000);
  }

  #hear(text: string): void {
    const waiting = this.#settle();
    this.#unsolicited = waiting ? undefined : text;
    waiting?.resolve(text);
  }

  #settle(): Waiting | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }

  #lose(code: number, reason: string): void {
    const why = reason || (code === 1001 ? "the server is going away" : "");
    this.#lost ??= new ServerError("connection_lost", {
      what: `the connection was closed (${code}${why && `: ${why}`})`,
      remedy: "reset to connect again and start a new episode",
    });
    this.#settle()?.reject(this.#lost);
  }
}
