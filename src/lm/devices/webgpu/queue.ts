// The device's side of its worker: it gathers commands into lists, sends them, and waits for reads.
import { OOMError, SqlEnvError } from "../../../errors.ts";
import type { Program } from "./program.ts";
import { COMMAND, type CommandList, type ServedProgram, type ServerData, STATE, UNIFORM_WORDS } from "./server.ts";

/** Dispatches in a list: enough to make sending cheap, few enough that the GPU starts early. */
const MAX_DISPATCHES = 128;
/** Bytes that one list uploads, and that one read returns at a time. */
const MAX_UPLOAD = 8 * 2 ** 20;
const MAX_READ = 64 * 2 ** 20;
const SLICE_MS = 500;
const CLOSE_MS = 10_000;

/** A worker that runs `SERVER`. */
export interface GpuWorker {
  post(message: CommandList | "close", transfer: ArrayBuffer[]): void;
  end(): void;
}

/** A part of a GPU buffer, in bytes. */
export interface Place {
  readonly id: number;
  readonly offset: number;
}

/** Commands that can be queued again. */
export interface Captured {
  readonly commands: number[];
  readonly uniforms: number[];
  readonly programs: Map<number, ServedProgram>;
}

const emptyCommands = (): Captured => ({ commands: [], uniforms: [], programs: new Map() });

/** What the worker says when something failed. */
interface Failure {
  readonly kind: "lost" | "memory" | "invalid";
  readonly message: string;
}

export class Queue {
  readonly #worker: GpuWorker;
  readonly #data: ServerData;
  readonly #ids = new Map<Program, number>();
  readonly #sent = new Set<number>();
  #list = emptyCommands();
  #dispatches = 0;
  #uploads: Uint8Array[] = [];
  #uploaded = 0;
  #reads: SharedArrayBuffer[] = [];
  /** The capture in progress; its commands are not queued. */
  #captured: Captured | undefined;
  #nextBuffer = 1;
  #closed = false;

  constructor(worker: GpuWorker, data: ServerData) {
    this.#worker = worker;
    this.#data = data;
  }

  /** Makes a buffer of this many bytes and returns its id. */
  create(bytes: number): number {
    const id = this.#nextBuffer++;
    this.#list.commands.push(COMMAND.create, id, bytes);
    return id;
  }

  destroy(id: number): void {
    this.#list.commands.push(COMMAND.destroy, id);
    this.flush();
  }

  /** Runs a kernel; `bindings` are triples of buffer, offset and bytes, `words` its uniform buffer. */
  dispatch(program: Program, groups: readonly [x: number, y: number], bindings: number[], words: Uint32Array): void {
    const to = this.#captured ?? this.#list;
    let id = this.#ids.get(program);
    if (id === undefined) {
      id = this.#ids.size;
      this.#ids.set(program, id);
    }
    if (!this.#sent.has(id)) {
      const { name, code, reads, writes } = program;
      const written = [...reads.map(() => false), ...writes.map(() => true)];
      to.programs.set(id, { id, name, code, written });
    }
    to.commands.push(COMMAND.dispatch, id, groups[0], groups[1], bindings.length, ...bindings);
    for (const word of words) to.uniforms.push(word);
    for (let i = words.length; i < UNIFORM_WORDS; i++) to.uniforms.push(0);
    if (!this.#captured && ++this.#dispatches >= MAX_DISPATCHES) this.flush();
  }

  /** Copies between two different buffers. */
  copy(from: Place, to: Place, bytes: number): void {
    (this.#captured ?? this.#list).commands.push(COMMAND.copy, from.id, from.offset, to.id, to.offset, bytes);
  }

  clear({ id, offset }: Place, bytes: number): void {
    (this.#captured ?? this.#list).commands.push(COMMAND.clear, id, offset, bytes);
  }

  upload({ id, offset }: Place, bytes: Uint8Array): void {
    if (this.#captured) throw new Error("the host wrote to the device inside a capture");
    for (let from = 0; from < bytes.length; from += MAX_UPLOAD) {
      const part = bytes.slice(from, from + MAX_UPLOAD);
      if (this.#uploaded + part.length > MAX_UPLOAD) this.flush();
      this.#list.commands.push(COMMAND.upload, this.#uploaded, id, offset + from, part.length);
      this.#uploads.push(part);
      this.#uploaded += part.length;
    }
  }

  /** Reads a buffer; waits for all that was queued. */
  read(place: Place, bytes: number): ArrayBuffer {
    const all = new Uint8Array(bytes);
    for (let from = 0; from < bytes; from += MAX_READ) {
      const length = Math.min(MAX_READ, bytes - from);
      all.set(new Uint8Array(this.readLater({ ...place, offset: place.offset + from }, length)()), from);
    }
    return all.buffer;
  }

  /** Reads at this point of the queue; the returned function waits for the bytes. */
  readLater({ id, offset }: Place, bytes: number): () => ArrayBuffer {
    if (this.#captured) throw new Error("the host read from the device inside a capture");
    const shared = new SharedArrayBuffer(8 + bytes);
    this.#list.commands.push(COMMAND.read, id, offset, bytes);
    this.#reads.push(shared);
    this.flush();
    return () => {
      const state = new Int32Array(shared, 0, 1);
      while (Atomics.load(state, 0) === STATE.pending) {
        Atomics.wait(state, 0, STATE.pending, SLICE_MS);
        this.#check();
      }
      this.#check();
      return new Uint8Array(shared, 8).slice().buffer as ArrayBuffer;
    };
  }

  /** Captures what `work` queues instead of queueing it. */
  capture(work: () => void): Captured {
    const captured = emptyCommands();
    this.#captured = captured;
    try {
      work();
    } finally {
      this.#captured = undefined;
    }
    return captured;
  }

  /** Queues captured commands. */
  replay({ commands, uniforms, programs }: Captured): void {
    this.flush();
    for (const [id, program] of programs) if (!this.#sent.has(id)) this.#list.programs.set(id, program);
    this.#list = { programs: this.#list.programs, commands: [...commands], uniforms: [...uniforms] };
    this.flush();
  }

  /** Sends the commands gathered so far. */
  flush(): void {
    if (this.#closed) throw new Error("the device is closed");
    this.#check();
    const { commands, programs, uniforms } = this.#list;
    if (commands.length === 0) return;
    const uploads = new Uint8Array(this.#uploaded);
    let at = 0;
    for (const part of this.#uploads) {
      uploads.set(part, at);
      at += part.length;
    }
    const list = {
      programs: [...programs.values()],
      commands: Float64Array.from(commands),
      uniforms: Uint32Array.from(uniforms),
      uploads,
      reads: this.#reads,
    };
    for (const id of programs.keys()) this.#sent.add(id);
    this.#worker.post(list, [list.commands.buffer, list.uniforms.buffer, uploads.buffer]);
    this.#list = emptyCommands();
    this.#dispatches = 0;
    this.#uploads = [];
    this.#uploaded = 0;
    this.#reads = [];
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#worker.post("close", []);
    // Node aborts if a thread ends while Dawn has something to report in it.
    Atomics.wait(this.#data.control, 0, STATE.done, CLOSE_MS);
    this.#worker.end();
  }

  /** Throws what the worker reported. */
  #check(): void {
    if (Atomics.load(this.#data.control, 1) === 0) return;
    const { kind, message } = textOf(this.#data.errors, this.#data.control[3]!) as Failure;
    const value = message.split("\n", 1)[0]!;
    if (kind === "memory") {
      throw new OOMError({
        what: "the GPU is out of memory",
        value,
        remedy: "recompute activations, or lower the batch size, num_generations or the context length",
      });
    }
    if (kind === "lost") {
      throw new SqlEnvError("device_lost", {
        what: "the GPU was lost",
        value,
        remedy: "another program or the system may have reset it; a training can be resumed from its last checkpoint",
      });
    }
    throw new SqlEnvError("webgpu", { what: "WebGPU refused a command", value: message });
  }
}

/** A text that the worker has left in shared memory, as JSON. */
export function textOf(bytes: Uint8Array, length: number): unknown {
  return JSON.parse(new TextDecoder().decode(bytes.slice(0, length)));
}
