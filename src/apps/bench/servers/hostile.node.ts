// Measures honest clients on a server under attack, and the same clients alone. Each attacker has its own loopback
// address, which Linux provides without setup.
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { WebSocket } from "ws";
import type { SocketLike } from "../../../gym/client/index.ts";
import type { DataSet } from "../../../gym/data/index.ts";
import type { AttackerData, Attacks } from "./attackers.node.ts";
import { type Load, loadServer } from "./server.ts";

export interface HostileOptions {
  readonly seconds: number;
  /** Number of the honest client's sessions. */
  readonly sessions: number;
  /** Steps per second and session. */
  readonly rate: number;
  readonly onProgress: (text: string) => void;
}

export interface Hostile {
  readonly alone: Load;
  readonly attacked: Load;
  readonly attacks: Attacks;
}

const ATTACKERS = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"];
const HONEST = "127.0.0.6";

/** Measures the clients alone, then under attack. */
export async function benchHostile(url: string, data: DataSet, options: HostileOptions): Promise<Hostile> {
  const { seconds, sessions, rate, onProgress } = options;
  const socket = (address: string) => new WebSocket(address, { localAddress: HONEST }) as unknown as SocketLike;
  onProgress("warming up");
  await loadServer(url, data, { sessions, seconds: 2, rate: 0, seed: "warm", socket });
  onProgress(`${sessions} honest sessions alone`);
  const alone = await loadServer(url, data, { sessions, seconds, rate, socket });
  onProgress("attackers take every slot");
  const workerData: AttackerData = { url, addresses: ATTACKERS };
  const worker = new Worker(new URL("./attackers.node.js", import.meta.url), { workerData });
  let attacks: Attacks | undefined;
  worker.on("message", (message: Attacks) => {
    attacks = message;
  });
  try {
    await once(worker, "message");
    onProgress(`${sessions} honest sessions under attack`);
    const attacked = await loadServer(url, data, { sessions, seconds, rate, socket });
    return { alone, attacked, attacks: attacks! };
  } finally {
    await worker.terminate();
  }
}
