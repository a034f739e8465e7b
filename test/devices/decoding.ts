// A CPU device that decodes as a GPU does: graphs are functions that are called again, and the tables advance between steps.
import { createCpu } from "../../src/lm/devices/cpu/start.node.ts";
import type { Buffer, Decoding, Device } from "../../src/lm/devices/index.ts";
import { uniformOfSeeds } from "../../src/lm/engine/sampling/counter-rng.ts";

/** The device, with counts of graphs captured and launched and the contexts of every sharing table. */
export function decodingCpu(): { device: Device; counts: { captured: number; launched: number; shared: number[][] } } {
  const device: Device = createCpu({ threads: 1 });
  const counts = { captured: 0, launched: 0, shared: [] as number[][] };
  const change = (buffer: Buffer, by: (data: Int32Array) => void) => {
    const data = device.read(buffer) as Int32Array;
    by(data);
    device.write(buffer, data);
  };
  const decoding: Decoding = {
    capture(work) {
      counts.captured++;
      return {
        launch() {
          counts.launched++;
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
      const fits = Array.from({ length: layout.tokens }, (_, t) => indices[t]! + 1 < capacities[t]!);
      const each = (by: (t: number) => void) => fits.forEach((hasRoom, t) => void (hasRoom && by(t)));
      change(layout.indices, (data) => each((t) => data[t]!++));
      change(layout.positions, (data) => each((t) => data[t]!++));
      const spans = device.read(layout.spans);
      change(layout.spans, (data) => each((t) => data[4 * t + 2]!++));
      change(layout.ranges, (data) => each((t) => data[3 * (spans[4 * t + 7]! - 1) + 2]!++));
    },
    sharing: {
      length: (rows) => rows,
      /** Contexts of all rows, for comparison in the step. */
      fill(out, rows, spans, ranges) {
        const contexts: number[] = [];
        for (let t = 0; t < rows; t++) {
          let context = 0;
          for (let range = spans[4 * t + 3]!; range < spans[4 * t + 7]!; range++) context += ranges[3 * range + 2]!;
          if (context !== spans[4 * t + 2]! + 1) throw new Error(`row ${t}: ${context} tokens`);
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
  return { device: Object.assign(device, { decoding, moveBlock: undefined }), counts };
}
