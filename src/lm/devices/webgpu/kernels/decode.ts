// Kernels between two decoding steps, which let steps follow each other without the host.
import { elementwise } from "../program.ts";

/** The random number of each row's seeds for the position after its own, as in lm/engine/sampling/counter-rng.ts. */
export const UNIFORMS = elementwise({
  name: "uniforms",
  reads: { seeds: "u32", positions: "i32" },
  writes: { out: "f32" },
  top: `
fn mix_bits(x: u32) -> u32 {
  var h = (x ^ (x >> 16u)) * 0x21f0aaadu;
  h = (h ^ (h >> 15u)) * 0x735a2d97u;
  return h ^ (h >> 15u);
}`,
  each: `
    let word = mix_bits(mix_bits(u32(positions(i) + 1) + seeds(2u * i)) ^ seeds(2u * i + 1u));
    set_out(i, f32(word >> 8u) / 16777216.0);
  `,
});

/**
 * Each row continues with its token, one further in its KV block; when the block is full it stays where it is. All
 * tables are parts of one buffer.
 */
export const ADVANCE = elementwise({
  name: "advance",
  reads: { tokens: "i32" },
  writes: { tables: "i32" },
  ints: ["ids", "positions", "capacities", "indices", "spans", "ranges"],
  top: "fn grow(at: u32) { set_tables(at, tables(at) + 1); }",
  each: `
    set_tables(p.ids + i, tokens(i));
    if (tables(p.indices + i) + 1 >= tables(p.capacities + i)) { continue; }
    grow(p.indices + i);
    grow(p.positions + i);
    grow(p.spans + 4u * i + 2u);
    grow(p.ranges + 3u * u32(tables(p.spans + 4u * i + 7u) - 1) + 2u);
  `,
});
