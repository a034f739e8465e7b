// The page's end of the worker: calls that answer later, and news.
import type { Call, Calls, FromWorker, News, ToWorker } from "./protocol.ts";
import workerUrl from "./worker.ts?worker&url";

interface Pending {
  readonly resolve: (give: never) => void;
  readonly reject: (error: Error) => void;
}

/** What the worker is asked, by name. */
export interface Client {
  call<C extends Call>(call: C, take: Calls[C]["take"]): Promise<Calls[C]["give"]>;
}

/** Starts the worker; `hear` is told what it says on its own. */
export function startClient(hear: (news: News) => void): Client {
  const pending = new Map<number, Pending>();
  let next = 0;
  const worker = new Worker(trusted(workerUrl), { type: "module" });
  const failAll = (error: Error) => {
    for (const { reject } of pending.values()) reject(error);
    pending.clear();
  };
  worker.onerror = (event) => failAll(new Error(event.message || "the worker could not be started"));
  worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
    if ("news" in data) return hear(data);
    const waiting = pending.get(data.id);
    pending.delete(data.id);
    if ("error" in data) waiting?.reject(new Error(data.error));
    else waiting?.resolve(data.give as never);
  };
  return {
    call(call, take) {
      const id = next++;
      return new Promise((resolve, reject) => {
        pending.set(id, { resolve: resolve as Pending["resolve"], reject });
        worker.postMessage({ id, call, take } satisfies ToWorker);
      });
    },
  };
}

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string };
}

/** The page's policy lets no text become code; this one address of ours may. */
function trusted(url: string): string {
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
  return trustedTypes?.createPolicy("worker", { createScriptURL: () => url }).createScriptURL(url) ?? url;
}
