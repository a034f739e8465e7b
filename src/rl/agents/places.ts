// Places for agents in this process: a limited number run at once, the others wait in order.
import type { RunAgent } from "./agent.ts";
import type { AgentPlace } from "./agent-episode.ts";

/** Returns a function that waits for one of `count` places. */
export function places(count: number, run: RunAgent): (signal: AbortSignal) => Promise<AgentPlace> {
  const waiting: (() => void)[] = [];
  let free = count;
  const giveBack = () => {
    const next = waiting.shift();
    if (next) next();
    else free++;
  };
  return async (signal) => {
    if (free > 0) free--;
    else
      await new Promise<void>((resolve, reject) => {
        const leave = () => {
          waiting.splice(waiting.indexOf(take), 1);
          reject(signal.reason);
        };
        const take = () => {
          signal.removeEventListener("abort", leave);
          resolve();
        };
        signal.addEventListener("abort", leave, { once: true });
        waiting.push(take);
      });
    return { run, free: giveBack };
  };
}
