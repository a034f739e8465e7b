// A real server of the built package on a free port, and a plain WebSocket to talk to it.
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { WebSocket } from "ws";
import type * as ServerModule from "../../src/apps/openenv/index.ts";
import type { ThreadSpec } from "../../src/apps/openenv/thread-protocol.ts";
import type { DataSet } from "../../src/gym/data/index.ts";
import { smallDataSet } from "./small-data.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const { startServer } = (await import(resolve(root, "dist/apps/openenv/index.js"))) as typeof ServerModule;

let data: DataSet | undefined;

/** Starts a server on the small data set; two threads unless said. */
export async function serve(options: ServerModule.ServerOptions = {}): Promise<ServerModule.RunningServer> {
  data ??= await smallDataSet();
  return startServer(data, { port: 0, threads: 2, ...options });
}

/** What the pool's threads are started with, for tests without a server. */
export async function poolSpec(): Promise<ThreadSpec> {
  const { name, questions, file } = await smallDataSet();
  const names = [...new Set(questions.map(({ database_name }) => database_name))];
  return {
    name,
    questions,
    files: new Map(names.map((database) => [database, file!(database)])),
    doubleQuotedStrings: false,
    environment: { step_budget: 10, seed: 1 },
  };
}

export interface Closed {
  readonly code: number;
  readonly reason: string;
}

/** A socket whose replies are waited for one by one. */
export class Talker {
  readonly socket: WebSocket;
  readonly closed: Promise<Closed>;
  readonly opened: Promise<void>;
  readonly #replies: string[] = [];
  readonly #waiting: ((text: string) => void)[] = [];

  constructor(url: string, path = "/ws", headers: Record<string, string> = {}) {
    this.socket = new WebSocket(url.replace("http", "ws") + path, { headers });
    this.socket.on("message", (bytes) => {
      const waiting = this.#waiting.shift();
      if (waiting) waiting(String(bytes));
      else this.#replies.push(String(bytes));
    });
    this.closed = new Promise((resolve) => {
      this.socket.on("close", (code, reason) => resolve({ code, reason: String(reason) }));
    });
    this.opened = new Promise((resolve, reject) => {
      this.socket.on("open", resolve);
      this.socket.on("error", reject);
    });
    this.opened.catch(() => {});
  }

  /** The next unread reply. */
  next(): Promise<Wire> {
    const known = this.#replies.shift();
    const text =
      known !== undefined ? Promise.resolve(known) : new Promise<string>((resolve) => this.#waiting.push(resolve));
    return text.then((found) => JSON.parse(found) as Wire);
  }

  /** Sends a message (objects as JSON, text and bytes unchanged) and returns the reply. */
  async ask(message: object | string | Buffer): Promise<Wire> {
    await this.send(message);
    return this.next();
  }

  async send(message: object | string | Buffer): Promise<void> {
    await this.opened;
    this.socket.send(typeof message === "string" || Buffer.isBuffer(message) ? message : JSON.stringify(message));
  }

  step(action_type: string, argument: string): Promise<Wire> {
    return this.ask({ type: "step", data: { action_type, argument } });
  }

  async close(): Promise<void> {
    this.socket.close();
    await this.closed;
  }
}

/** A reply, loosely typed. */
// biome-ignore lint/suspicious/noExplicitAny: what comes over a wire is anything
export type Wire = Record<string, any>;

/** Posts JSON (text unchanged) and returns status and body. */
export async function post(url: string, body?: object | string): Promise<{ status: number; body: Wire }> {
  const response = await fetch(url, {
    method: "POST",
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Wire };
}

/** Waits until a condition holds, at most as long as a test may take. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 50_000; // before the test's own time limit, whose message would not name the condition
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`waited 50 s in vain for ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A statement that reaches the instruction limit, after about a second. */
export const SLOW = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n";

/** How it ends: by the instruction limit, or by the clock on a busy machine. */
export const ENDED = /^(too_long|timeout)$/;
