// A CPU device that decodes as a GPU does: recordings are functions called again, and the tables move between steps.
import { createCpu } from "../../src/lm/devices/cpu/start.node.ts";
import type { Buffer, Decoding, Device } from "../../src/lm/devices/index.ts";
import { uniformOfSeeds } from "../../src/lm/engine/sampling/counter-rng.ts";

/** What was asked of it, beside the device: recordings made and run, and the contexts of every sharing table. */
export function decodingCpu(): { device: Device; counts: { recorded: number; run: number; shared: number[][] } } {
  const device: Device = createCpu({ threads: 1 });
  const counts = { recorded: 0, run: 0, shared: [] as number[][] };
  const change = (buffer: Buffer, by: (data: Int32Array) => void) => {
    const data = device.read(buffer) as Int32Array;
    by(data);
    device.write(buffer, data);
  };
  const decoding: Decoding = {
    record(work) {
      counts.recorded++;
      return {
        run() {
          counts.run++;
          device.scope(work);
        },
        free() {},
      };
    },
    uniforms(seeds, positions, out, rows) {
      const [words, at] = [device.read(seeds), device.read(positions)];
      const numbers = Float32Array.from({ length: rows }, (_, t) =>
        uniformOfSeeds([words[2 * t]!, words[2 * t + 1]!])(at[t]! + 1),
      );
      device.write(out, numbers);
    },
    advance(tokens, ids, layout) {
      device.copy(tokens, ids);
      const capacities = device.read(layout.capacities);
      const indices = device.read(layout.indices) as Int32Array;
      const goesOn = Array.from({ length: layout.tokens }, (_, t) => indices[t]! + 1 < capacities[t]!);
      const each = (by: (t: number) => void) => goesOn.forEach((goes, t) => void (goes && by(t)));
      change(layout.indices, (data) => each((t) => data[t]!++));
      change(layout.positions, (data) => each((t) => data[t]!++));
      const segments = device.read(layout.segments);
      change(layout.segments, (data) => each((t) => data[4 * t + 2]!++));
      change(layout.ranges, (data) => each((t) => data[3 * (segments[4 * t + 7]! - 1) + 2]!++));
    },
    sharing: {
      length: (rows) => rows,
      /** Contexts of all rows, to be found again in the step. */
      fill(out, rows, segments, ranges) {
        const contexts: number[] = [];
        for (let t = 0; t < rows; t++) {
          let context = 0;
          for (let range = segments[4 * t + 3]!; range < segments[4 * t + 7]!; range++)
            context += ranges[3 * range + 2]!;
          if (context !== segments[4 * t + 2]! + 1) throw new Error(`row ${t}: ${context} tokens`);
          out[t] = context;
          contexts.push(context);
        }
        counts.shared.push(contexts);
      },
    },
    readLater(buffer) {
      const data = device.read(buffer) as Int32Array;
      return () => data;
    },
  };
  return { device: Object.assign(device, { decoding, moveRun: undefined }), counts };
}
