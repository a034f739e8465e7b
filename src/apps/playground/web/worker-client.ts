// The page's connection to the worker: asynchronous calls, and the worker's events.

import workerUrl from "./worker.ts?worker&url";
import type { Call, Calls, FromWorker, ToWorker, WorkerEvent } from "./worker-protocol.ts";

interface Pending {
  readonly resolve: (result: never) => void;
  readonly reject: (error: Error) => void;
}

/** Calls the worker by name. */
export interface Client {
  call<C extends Call>(call: C, params: Calls[C]["params"]): Promise<Calls[C]["result"]>;
}

/** Starts the worker; `onEvent` receives its events. */
export function startClient(onEvent: (event: WorkerEvent) => void): Client {
  const pending = new Map<number, Pending>();
  let next = 0;
  const worker = new Worker(trusted(workerUrl), { type: "module" });
  const failAll = (error: Error) => {
    for (const { reject } of pending.values()) reject(error);
    pending.clear();
  };
  worker.onerror = (event) => failAll(new Error(event.message || "the worker could not be started"));
  worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
    if ("event" in data) return onEvent(data);
    const waiting = pending.get(data.id);
    pending.delete(data.id);
    if ("error" in data) waiting?.reject(new Error(data.error));
    else waiting?.resolve(data.result as never);
  };
  return {
    call(call, params) {
      const id = next++;
      return new Promise((resolve, reject) => {
        pending.set(id, { resolve: resolve as Pending["resolve"], reject });
        worker.postMessage({ id, call, params } satisfies ToWorker);
      });
    },
  };
}

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string };
}

/** The page's content security policy allows no script from text; this trusted type admits the worker's URL only. */
function trusted(url: string): string {
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
  return trustedTypes?.createPolicy("worker", { createScriptURL: () => url }).createScriptURL(url) ?? url;
}
