// The GPU's side of the WebGPU device, in a worker: it receives lists of commands and answers reads. WebGPU reads
// asynchronously, and the Device interface does not: the device's thread waits for this one in shared memory.

/** Commands of a list, each a number followed by its arguments. */
export const COMMAND = { dispatch: 0, copy: 1, upload: 2, clear: 3, create: 4, destroy: 5, read: 6 } as const;

/** Words of a dispatch's uniform buffer; offsets into it must be multiples of 256 bytes. */
export const UNIFORM_WORDS = 64;

/** States of the shared words: of a read, and of the worker (word 0) and its errors (word 1). */
export const STATE = { pending: 0, done: 1, failed: 2, closed: 3 } as const;

/** Bytes for the text of the facts or of the first error, as JSON. */
export const TEXT_BYTES = 65_536;

/** What a worker is started with. `control` holds its state, the state of errors and the lengths of both texts. */
export interface ServerData {
  readonly control: Int32Array;
  readonly facts: Uint8Array;
  readonly errors: Uint8Array;
}

/** A kernel to compile: for each binding, whether it is written. */
export interface ServedProgram {
  readonly id: number;
  readonly name: string;
  readonly code: string;
  readonly written: readonly boolean[];
}

/** A list of commands, and what they refer to. */
export interface CommandList {
  readonly programs: readonly ServedProgram[];
  readonly commands: Float64Array;
  readonly uniforms: Uint32Array;
  readonly uploads: Uint8Array;
  /** Shared memory for each read: a word for its state, then the bytes. */
  readonly reads: readonly SharedArrayBuffer[];
}

/** Source text of the worker: plain JavaScript, since Node and pages both start it from text. */
export const SERVER = `
async function serveGpu(gpu, { control, facts, errors }, listen, leave) {
  const put = (bytes, word, value) => {
    const text = new TextEncoder().encode(JSON.stringify(value)).subarray(0, bytes.length);
    bytes.set(text);
    Atomics.store(control, 2 + word, text.length);
  };
  const set = (word, state) => {
    Atomics.store(control, word, state);
    Atomics.notify(control, word);
  };
  const fail = (kind, message) => {
    if (Atomics.load(control, 1) !== 0) return;
    put(errors, 1, { kind, message: String(message).slice(0, 4000) });
    set(1, 2);
  };
  let device;
  try {
    const adapter = await gpu?.requestAdapter({ powerPreference: "high-performance" });
    if (!adapter) {
      put(facts, 0, { missing: gpu ? "adapter" : "webgpu" });
      set(0, 2);
      return;
    }
    const { info, limits } = adapter;
    const wanted = ["maxBufferSize", "maxStorageBufferBindingSize"];
    const requiredLimits = Object.fromEntries(wanted.map((name) => [name, limits[name]]));
    device = await adapter.requestDevice({ requiredLimits });
    const { vendor = "", architecture = "", device: model = "", description = "" } = info;
    put(facts, 0, {
      vendor, architecture, device: model, description,
      software: Boolean(info.isFallbackAdapter ?? adapter.isFallbackAdapter),
      features: [...adapter.features],
      limits: Object.fromEntries(wanted.map((name) => [name, device.limits[name]])),
    });
  } catch (error) {
    put(facts, 0, { missing: "device", message: String(error?.message ?? error) });
    set(0, 2);
    return;
  }
  device.lost.then(({ reason, message }) => {
    if (reason !== "destroyed") fail("lost", message || reason);
  });
  device.onuncapturederror = ({ error }) => {
    const isMemory = error.constructor.name === "GPUOutOfMemoryError";
    fail(isMemory ? "memory" : "invalid", error.message);
  };
  const [MAP_READ, COPY_SRC, COPY_DST, UNIFORM, STORAGE] = [1, 4, 8, 64, 128];
  const buffers = new Map();
  const programs = new Map();
  let groups = new Map(); // bind groups by program and bindings
  const growing = (usage) => {
    let buffer;
    return (bytes) => {
      if (!buffer || buffer.size < bytes) {
        buffer?.destroy();
        buffer = device.createBuffer({ size: 2 ** Math.ceil(Math.log2(Math.max(65536, bytes))), usage });
        groups = new Map();
      }
      return buffer;
    };
  };
  const uniformsOf = growing(UNIFORM | COPY_DST);
  const uploadsOf = growing(COPY_SRC | COPY_DST);
  const free = []; // staging buffers for reads
  const staging = (bytes) => {
    const at = free.findIndex(({ size }) => size >= bytes && size <= 4 * bytes + 65536);
    if (at >= 0) return free.splice(at, 1)[0];
    if (free.length > 8) free.shift().destroy();
    return device.createBuffer({ size: 2 ** Math.ceil(Math.log2(Math.max(256, bytes))), usage: MAP_READ | COPY_DST });
  };
  const compile = ({ id, name, code, written }) => {
    const entry = (binding, buffer) => ({ binding, visibility: 4, buffer });
    const layout = device.createBindGroupLayout({
      entries: [
        entry(0, { type: "uniform", hasDynamicOffset: true, minBindingSize: 0 }),
        ...written.map((isWritten, i) => entry(i + 1, { type: isWritten ? "storage" : "read-only-storage" })),
      ],
    });
    const pipeline = device.createComputePipeline({
      label: name,
      layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module: device.createShaderModule({ label: name, code }), entryPoint: "main" },
    });
    programs.set(id, { pipeline, layout });
  };
  const groupOf = (id, uniforms, bindings) => {
    const key = id + ":" + bindings.join();
    let group = groups.get(key);
    if (group) return group;
    const entries = [{ binding: 0, resource: { buffer: uniforms, offset: 0, size: 256 } }];
    for (let i = 0; i < bindings.length; i += 3) {
      const resource = { buffer: buffers.get(bindings[i]), offset: bindings[i + 1], size: bindings[i + 2] };
      entries.push({ binding: 1 + i / 3, resource });
    }
    group = device.createBindGroup({ layout: programs.get(id).layout, entries });
    if (groups.size > 16384) groups.clear();
    groups.set(key, group);
    return group;
  };
  const run = ({ programs: fresh, commands, uniforms, uploads, reads }) => {
    for (const program of fresh) compile(program);
    const words = uniformsOf(uniforms.byteLength);
    const bytes = uploadsOf(uploads.byteLength);
    if (uniforms.length > 0) device.queue.writeBuffer(words, 0, uniforms);
    if (uploads.length > 0) device.queue.writeBuffer(bytes, 0, uploads);
    const encoder = device.createCommandEncoder();
    const waiting = [];
    const destroyed = [];
    let pass;
    let slot = 0;
    let last;
    const end = () => {
      pass?.end();
      pass = last = undefined;
    };
    for (let i = 0; i < commands.length; ) {
      switch (commands[i++]) {
        case 0: {
          const [id, x, y, n] = commands.subarray(i, i + 4);
          i += 4;
          pass ??= encoder.beginComputePass();
          if (last !== id) pass.setPipeline(programs.get(id).pipeline);
          last = id;
          pass.setBindGroup(0, groupOf(id, words, commands.subarray(i, i + n)), [256 * slot++]);
          pass.dispatchWorkgroups(x, y);
          i += n;
          break;
        }
        case 1:
          end();
          encoder.copyBufferToBuffer(
            buffers.get(commands[i++]), commands[i++], buffers.get(commands[i++]), commands[i++], commands[i++]);
          break;
        case 2:
          end();
          encoder.copyBufferToBuffer(bytes, commands[i++], buffers.get(commands[i++]), commands[i++], commands[i++]);
          break;
        case 3:
          end();
          encoder.clearBuffer(buffers.get(commands[i++]), commands[i++], commands[i++]);
          break;
        case 4:
          buffers.set(
            commands[i++], device.createBuffer({ size: commands[i++], usage: STORAGE | COPY_SRC | COPY_DST }));
          break;
        case 5:
          destroyed.push(commands[i++]);
          break;
        case 6: {
          end();
          const [id, offset, size] = commands.subarray(i, i + 3);
          i += 3;
          const to = staging(size);
          encoder.copyBufferToBuffer(buffers.get(id), offset, to, 0, size);
          waiting.push({ to, size, shared: reads[waiting.length] });
          break;
        }
      }
    }
    end();
    device.queue.submit([encoder.finish()]);
    for (const { to, size, shared } of waiting) {
      const state = new Int32Array(shared, 0, 1);
      const finish = (value) => {
        Atomics.store(state, 0, value);
        Atomics.notify(state, 0);
      };
      to.mapAsync(1, 0, size).then(
        () => {
          new Uint8Array(shared, 8, size).set(new Uint8Array(to.getMappedRange(0, size)));
          to.unmap();
          free.push(to);
          finish(1);
        },
        (error) => {
          fail("lost", error?.message ?? error);
          finish(2);
        },
      );
    }
    if (destroyed.length > 0) {
      groups.clear();
      for (const id of destroyed) {
        buffers.get(id)?.destroy();
        buffers.delete(id);
      }
    }
  };
  // Dawn crashes if its instance is collected before its devices: this function must keep it.
  let instance = gpu;
  listen((list) => {
    if (list === "close") {
      device.destroy();
      device.lost.then(() => {
        instance = undefined;
        leave();
        set(0, 3);
      });
      return;
    }
    try {
      run(list);
    } catch (error) {
      fail("invalid", error?.message ?? error);
      for (const shared of list.reads) {
        const state = new Int32Array(shared, 0, 1);
        Atomics.store(state, 0, 2);
        Atomics.notify(state, 0);
      }
    }
  });
  set(0, 1);
}
`;
