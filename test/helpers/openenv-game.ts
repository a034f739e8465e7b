// A small OpenEnv server that is not ours: "say the number" with typed actions, a capacity, and faults on request.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";

/** What goes wrong in an episode; a task asks for it with `reset: { fault }`. */
export type Fault =
  | "error"
  | "drop"
  | "late"
  | "no reward"
  | "NaN"
  | "odd reward"
  | "no text"
  | "endless"
  | "over"
  | "refuse";

export interface GameOptions {
  /** Sessions at once. @default 100 */
  readonly capacity?: number;
  /** Port. @default any */
  readonly port?: number;
  /** Replaces /schema. */
  readonly schema?: unknown;
}

export interface Game {
  readonly url: string;
  readonly port: number;
  /** Sessions that are open, the most that were, and connections that were refused. */
  readonly sessions: { open: number; most: number; refused: number };
  /** The resets and steps that arrived, in order. */
  readonly asked: { readonly type: string; readonly data: Record<string, unknown> }[];
  /** Ends every session at once, as a crash does. */
  drop(): void;
  close(): Promise<void>;
}

const SCHEMA = {
  action: {
    additionalProperties: false,
    properties: { metadata: { type: "object" }, guess: { type: "integer" } },
    required: ["guess"],
  },
  observation: {
    properties: {
      done: { type: "boolean" },
      reward: { anyOf: [{ type: "number" }, { type: "null" }] },
      metadata: { type: "object" },
      prompt: { type: "string" },
      tries: { type: "integer" },
    },
  },
};

/** Starts the server. The number to say is `number` of reset; three tries. */
export async function startGame({ capacity = 100, port = 0, schema = SCHEMA }: GameOptions = {}): Promise<Game> {
  const sessions = { open: 0, most: 0, refused: 0 };
  const asked: { type: string; data: Record<string, unknown> }[] = [];
  const http = createServer((request: IncomingMessage, response: ServerResponse) => {
    const replies: Record<string, unknown> = { "/metadata": { name: "say" }, "/schema": schema };
    const reply = replies[request.url ?? ""];
    response.writeHead(reply === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(reply ?? { detail: "Not Found" }));
  });
  const sockets = new WebSocketServer({ server: http, path: "/ws" });
  sockets.on("connection", (socket) => {
    if (sessions.open >= capacity) {
      sessions.refused++;
      const data = { code: "CAPACITY_REACHED", message: "Server at capacity", max_sessions: capacity };
      socket.send(JSON.stringify({ type: "error", data }));
      socket.close(1000);
      return;
    }
    sessions.most = Math.max(sessions.most, ++sessions.open);
    socket.on("close", () => sessions.open--);
    play(socket, asked);
  });
  await new Promise<void>((resolve) => http.listen(port, "127.0.0.1", resolve));
  const at = (http.address() as AddressInfo).port;
  const drop = () => {
    for (const socket of sockets.clients) socket.terminate();
  };
  return {
    url: `http://127.0.0.1:${at}`,
    port: at,
    sessions,
    asked,
    drop,
    close: async () => {
      drop();
      sockets.close();
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

function play(socket: WebSocket, asked: Game["asked"]): void {
  let state: { number: number; fault: Fault | undefined; tries: number } | undefined;
  const send = (type: string, data: unknown) => socket.send(JSON.stringify({ type, data }));
  const observe = (prompt: unknown, reward: unknown, done: boolean) =>
    send("observation", { observation: { prompt, tries: state?.tries ?? 0 }, reward, done });
  socket.on("message", (bytes) => {
    const { type, data = {} } = JSON.parse(String(bytes)) as { type: string; data?: Record<string, unknown> };
    if (type === "state") return send("state", { episode_id: null, step_count: 0 });
    if (type === "close") return socket.close(1000);
    asked.push({ type, data });
    if (type === "reset") {
      state = { number: Number(data.number ?? 0), fault: data.fault as Fault | undefined, tries: 0 };
      if (state.fault === "refuse") return send("error", { code: "EXECUTION_ERROR", message: "no such level" });
      return observe(`Say ${state.number}.`, null, state.fault === "over");
    }
    const { fault } = state!;
    state!.tries++;
    if (fault === "error") return send("error", { code: "EXECUTION_ERROR", message: "the board is on fire" });
    if (fault === "drop") return socket.terminate();
    if (fault === "late") return;
    if (!Number.isInteger(data.guess)) {
      const errors = [{ type: "int_type", loc: ["guess"], msg: "Input should be a valid integer", input: data.guess }];
      return send("error", { code: "VALIDATION_ERROR", message: "Invalid message", errors });
    }
    const isRight = data.guess === state!.number;
    const done = fault !== "endless" && (isRight || state!.tries === 3);
    if (fault === "NaN" && done) {
      socket.send('{"type":"observation","data":{"observation":{},"reward":NaN,"done":true}}');
      return;
    }
    const rewards: Partial<Record<Fault, unknown>> = { "no reward": null, "odd reward": "high" };
    const reward = fault !== undefined && fault in rewards ? rewards[fault] : done ? Number(isRight) : null;
    observe(fault === "no text" ? null : "Again.", reward, done);
  });
}
