// Thread pool: all threads run each kernel together. Each has an instance of the module over one shared memory and
// computes its share (part, parts); the caller is part 0. Threads spin while they wait for each other, then sleep: waking
// one costs more than a small kernel, so they spin longer where that succeeds, and only briefly where cores are shared.

import { SqlEnvError } from "../../../errors.ts";

/** A module's exported kernels. */
export type KernelExports = Record<string, (...args: number[]) => void>;

export interface ThreadPool {
  readonly size: number;
  /** Runs a kernel with these arguments on all parts; returns when every part is done. */
  run(kernel: string, ...args: number[]): void;
  close(): void;
}

/** A started worker, from node:worker_threads or a page's Worker. */
export interface WorkerHandle {
  end(): void;
  /** Whether the thread with this id is still running. Polled, since a blocked caller receives no events. */
  isAlive?(id: number): boolean;
}

/** Called after every kernel: its seconds, and how many of them the threads worked, summed over the threads. */
export type ObserveKernel = (kernel: string, seconds: number, worked: number) => void;

export type StartWorker = (source: string, data: unknown) => WorkerHandle;

// Indices into the shared control array.
const [JOB, REMAINING, KERNEL, COUNT, FAILED] = [0, 1, 2, 3, 4]; // JOB counts kernel runs; workers wait for it to change
const FIRST_STATE = 8; // one word per part: 0 until it serves kernels, then its thread's id
const BROKEN = -1;
const STOP = -1;
const SLICE_MS = 500; // interval after which a waiting caller checks for dead threads
const START_MS = 120_000; // time limit for starting a thread, generous enough for a busy machine
const MAX_ARGS = 32;
const TIMED_SPINS = 20_000; // about 100 µs

/** How long to spin before sleeping: longer after each success, much shorter after each failure. */
const SPIN_US = { least: 40, most: 300 }; // decoding has gaps of up to 200 µs between two steps, and of 20 within one

/** Iterations per microsecond of the loop in which threads spin. */
function spinRate(): number {
  const word = new Int32Array(new SharedArrayBuffer(4));
  const times = Array.from({ length: 5 }, () => {
    const start = performance.now();
    for (let spin = 0; Atomics.load(word, 0) === 0 && spin < TIMED_SPINS; ) spin++;
    return performance.now() - start;
  });
  return TIMED_SPINS / 1000 / Math.max(0.01, Math.min(...times)); // the fastest was compiled and not interrupted
}

/** Creates a pool of one thread: kernels run in the caller. */
export function singleThread(exports: KernelExports, observe?: ObserveKernel): ThreadPool {
  const run = (kernel: string, ...args: number[]) => exports[kernel]!(...args, 0, 1);
  const observed = (kernel: string, ...args: number[]) => {
    const start = performance.now();
    run(kernel, ...args);
    const seconds = (performance.now() - start) / 1000;
    observe!(kernel, seconds, seconds);
  };
  return { size: 1, run: observe ? observed : run, close: () => {} };
}

/**
 * Starts a pool of `size` threads, including the caller. With `native`, workers prefer the machine-code kernels that
 * `startWorker` binds.
 */
export function startThreadPool(
  size: number,
  module: WebAssembly.Module,
  memory: WebAssembly.Memory,
  exports: KernelExports,
  startWorker: StartWorker,
  { native = false, observe }: { readonly native?: boolean; readonly observe?: ObserveKernel | undefined } = {},
): ThreadPool {
  if (size === 1) return singleThread(exports, observe);
  const control = new Int32Array(new SharedArrayBuffer(4 * (FIRST_STATE + size)));
  const args = new Float64Array(new SharedArrayBuffer(8 * MAX_ARGS));
  const worked = observe && new Float64Array(new SharedArrayBuffer(8 * size)); // milliseconds of each part
  const rate = spinRate();
  const spins = { least: SPIN_US.least * rate, most: SPIN_US.most * rate };
  const names = Object.keys(exports);
  const indices = new Map(names.map((name, i) => [name, i]));
  const workers = Array.from({ length: size - 1 }, (_, i) =>
    startWorker(WORKER, {
      module,
      memory,
      control,
      args,
      names,
      part: i + 1,
      parts: size,
      spins,
      native,
      worked,
    }),
  );

  const dispatch = (kernel: number, values: readonly number[]) => {
    args.set(values);
    control[KERNEL] = kernel;
    control[COUNT] = values.length;
    Atomics.store(control, FAILED, 0);
    Atomics.store(control, REMAINING, size - 1);
    Atomics.add(control, JOB, 1);
    Atomics.notify(control, JOB);
  };
  let limit = spins.most;
  let closed = false;
  let lost: SqlEnvError | undefined;
  const started = performance.now();
  /** Throws if a part can never finish: its thread has ended or never started. */
  const checkThreads = () => {
    for (const [i, worker] of workers.entries()) {
      const state = Atomics.load(control, FIRST_STATE + i + 1);
      const isServing = state > 0;
      const isLost = isServing
        ? worker.isAlive?.(state) === false
        : state === BROKEN || performance.now() - started > START_MS;
      if (!isLost) continue;
      lost = new SqlEnvError("device_lost", {
        what: `thread ${i + 2} of the CPU's ${size} ${isServing ? "has ended" : "could not start"}`,
        remedy:
          "there may be too little memory: try fewer --threads; a training can be resumed from its last checkpoint",
      });
      throw lost;
    }
  };
  return {
    size,
    run(kernel, ...values) {
      if (closed) throw new Error("the device is closed"); // no worker would answer
      if (lost) throw lost;
      const start = worked ? performance.now() : 0;
      dispatch(indices.get(kernel)!, values);
      let failure: { readonly error: unknown } | undefined;
      try {
        exports[kernel]!(...values, 0, size);
      } catch (error) {
        failure = { error };
      }
      if (worked) worked[0] = performance.now() - start;
      // The other threads write to the same memory: wait until they are done, even after a failure here.
      let spin = 0;
      for (let left = Atomics.load(control, REMAINING); left > 0; left = Atomics.load(control, REMAINING)) {
        if (++spin > limit && Atomics.wait(control, REMAINING, left, SLICE_MS) === "timed-out") checkThreads();
      }
      limit = spin > limit ? Math.max(spins.least, limit / 8) : Math.min(spins.most, limit * 1.25);
      if (failure) throw failure.error;
      if (Atomics.load(control, FAILED) !== 0) throw new Error(`a thread failed in kernel ${kernel}`);
      if (worked) observe!(kernel, (performance.now() - start) / 1000, worked.reduce((sum, ms) => sum + ms, 0) / 1000);
    },
    close() {
      if (closed) return;
      closed = true;
      dispatch(STOP, []);
      for (const worker of workers) worker.end();
    },
  };
}

/** Source text of a worker: plain JavaScript, since Node and pages both start it from text. */
export const WORKER = `
async function serve(data, bind, id = 1) {
  try {
    await serveKernels(data, bind, id);
  } catch (error) {
    Atomics.store(data.control, 8 + data.part, -1); // the caller throws instead of waiting forever
    Atomics.notify(data.control, 1);
    throw error;
  }
}
async function serveKernels({ module, memory, control, args, names, part, parts, spins, native, worked }, bind, id) {
  const abort = () => { throw new Error("kernel aborted"); };
  let bound;
  try {
    if (native) bound = bind(memory);
  } catch {} // WebAssembly gives the same bits
  const host = bound?.imports ?? { runCommands: abort };
  const { exports } = await WebAssembly.instantiate(module, { env: { memory, abort, ...host } });
  if (bound) exports.useHost(1);
  // V8 can miss that the caller has grown the memory while this thread was starting; growing by nothing tells it.
  memory.grow(0);
  const kernels = names.map((name) => bound?.kernels[name] ?? exports[name]);
  Atomics.store(control, 8 + part, id);
  for (let seen = 0, limit = spins.most; ; ) {
    let spin = 0;
    while (Atomics.load(control, 0) === seen) if (++spin > limit) Atomics.wait(control, 0, seen);
    limit = spin > limit ? Math.max(spins.least, limit / 8) : Math.min(spins.most, limit * 1.25);
    seen = Atomics.load(control, 0);
    if (control[2] < 0) return;
    const start = worked && performance.now();
    try {
      kernels[control[2]](...args.subarray(0, control[3]), part, parts);
    } catch {
      Atomics.store(control, 4, 1); // the caller throws; if this thread died instead, it would wait forever
    }
    if (worked) worked[part] = performance.now() - start;
    if (Atomics.sub(control, 1, 1) === 1) Atomics.notify(control, 1);
  }
}
`;
