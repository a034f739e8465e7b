// A thread of clients that attack a server from four addresses until it is terminated: slow statements on sixteen
// sockets, empty sessions, half-sent bodies, oversized frames. It reports its counts twice a second.
import { request } from "node:http";
import { connect } from "node:net";
import { parentPort, workerData } from "node:worker_threads";
import { WebSocket } from "ws";
import { HEAVY_MESSAGES } from "./attacks.ts";

export interface AttackerData {
  readonly url: string;
  readonly addresses: readonly string[];
}

/** Counts of the attacks so far. */
export interface Attacks {
  readonly statements: number;
  readonly sessions: number;
  readonly half_bodies: number;
  readonly large_frames: number;
  readonly refused: number;
}

const { url, addresses } = workerData as AttackerData;
const { hostname, port } = new URL(url);
const done = { statements: 0, sessions: 0, half_bodies: 0, large_frames: 0, refused: 0 };

const [SOCKETS, HALF_BODIES, SESSIONS, PIPELINED] = [4, 50, 256, 4]; // per address
const SESSIONS_EVERY_MS = 10_000;
const RETRY_MS = 200; // delay before a closed connection is reopened

/** Sends heavy messages, several without waiting for replies, until the socket closes; then reconnects. */
function playHeavily(localAddress: string, from: number): void {
  let next = from;
  const socket = new WebSocket(`${url.replace("http", "ws")}/ws`, { localAddress });
  const send = () => {
    const isReset = next % 8 === 0; // an episode ends after fifteen steps
    socket.send(isReset ? '{"type":"reset"}' : HEAVY_MESSAGES[next % HEAVY_MESSAGES.length]!);
    next++;
  };
  socket.on("open", () => {
    socket.send('{"type":"reset"}');
    for (let i = 0; i < PIPELINED; i++) send();
  });
  socket.on("message", () => {
    done.statements++;
    if (socket.readyState === socket.OPEN) send();
  });
  socket.on("error", () => done.refused++);
  socket.on("close", () => setTimeout(() => playHeavily(localAddress, next), RETRY_MS));
}

function sendLargeFrames(localAddress: string): void {
  const socket = new WebSocket(`${url.replace("http", "ws")}/ws`, { localAddress });
  socket.on("open", () => {
    done.large_frames++;
    socket.send("x".repeat(900_000));
  });
  socket.on("error", () => {});
  socket.on("close", () => setTimeout(() => sendLargeFrames(localAddress), RETRY_MS));
}

function sendHalfABody(localAddress: string): void {
  const socket = connect({ host: hostname, port: Number(port), localAddress });
  socket.on("connect", () => {
    done.half_bodies++;
    socket.write("POST /step HTTP/1.1\r\nHost: localhost\r\nContent-Length: 120000\r\n\r\n");
    socket.write("x".repeat(100_000));
  });
  socket.resume();
  socket.on("error", () => {});
  socket.on("close", () => setTimeout(() => sendHalfABody(localAddress), RETRY_MS));
}

function createSession(localAddress: string): Promise<void> {
  const body = '{"jsonrpc":"2.0","method":"openenv/session/create","id":1}';
  return new Promise((resolve) => {
    const options = { host: hostname, port, path: "/mcp", method: "POST", localAddress };
    const sent = request(options, (response) => {
      response.resume();
      response.on("end", resolve);
    });
    sent.on("error", () => resolve());
    sent.end(body);
    done.sessions++;
  });
}

/** Fills the session limit with unused sessions, again each time they are closed. */
async function fillSlots(localAddress: string): Promise<void> {
  for (let i = 0; i < SESSIONS; i += 8) await Promise.all(Array.from({ length: 8 }, () => createSession(localAddress)));
  setTimeout(() => void fillSlots(localAddress), SESSIONS_EVERY_MS);
}

await Promise.all(addresses.map(fillSlots));
for (const [i, address] of addresses.entries()) {
  for (let k = 0; k < SOCKETS; k++) playHeavily(address, 1 + 5 * (i * SOCKETS + k));
  for (let k = 0; k < HALF_BODIES; k++) sendHalfABody(address);
  sendLargeFrames(address);
}
setInterval(() => parentPort!.postMessage({ ...done } satisfies Attacks), 500);
