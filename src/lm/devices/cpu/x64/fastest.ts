// Chooses among mapped codes by measuring their matmuls.

import type { Native } from "./bind.ts";
import type { InstructionSet } from "./instruction-set.ts";
import { PARAMETERS } from "./matmul.ts";

const [ROWS, K, PANELS] = [96, 256, 8];
const ROUNDS = 12; // 30 to 60 µs each
const GAIN = 1.05; // a wider instruction set must be faster by this factor

/** The instruction set with the fastest matmul; they take turns, and the best round of each counts. */
export function fastestCode(codes: readonly Native[]): InstructionSet {
  const columns = 8 * PANELS;
  const floats = new Float32Array(new ArrayBuffer(4 * (ROWS * K + K * columns + ROWS * columns))).fill(0.5);
  const [b, c] = [4 * ROWS * K, 4 * (ROWS * K + K * columns)];
  const values: Record<(typeof PARAMETERS)[number], number> = {
    a: 0,
    aTile: 16 * K,
    aRow: 4 * K,
    aK: 4,
    b,
    bPanel: 32 * K,
    panels: PANELS,
    c,
    cRow: 4 * columns,
    m: ROWS,
    k: K,
    add: 0,
    ahead: 0,
  };
  const timers = codes.map(({ koffi, code }) => {
    const parameters = new ArrayBuffer(code.parametersBytes);
    const words = new Uint32Array(parameters);
    new BigUint64Array(parameters, code.baseOffset, 1)[0] = koffi.address(floats);
    const call = koffi.decode(BigInt(code.functions.matmul), koffi.proto("void (uintptr_t parameters)"));
    const address = Number(koffi.address(words));
    const set = code.instructionSet;
    let best = Number.POSITIVE_INFINITY;
    const measure = () => {
      for (const [i, name] of PARAMETERS.entries()) words[i] = values[name];
      const start = performance.now();
      call(address);
      best = Math.min(best, performance.now() - start);
    };
    return { set, measure, best: () => best };
  });
  for (let round = 0; round < ROUNDS; round++) for (const { measure } of timers) measure();
  return timers.reduce((best, next) => (next.best() * GAIN < best.best() ? next : best)).set;
}
