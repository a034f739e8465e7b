// Matmuls: C[m, n] = A[m, k] · B[k, n], or C += … . Each workgroup computes a tile of C from slices of A and B in its
// memory, each invocation some rows by some columns of it in registers.
import { type Program, program } from "../program.ts";

/** The order of a matrix in memory: consecutive along k, or along the other dimension. */
export type Order = "alongK" | "acrossK";

export interface MatmulKind {
  readonly a: Order;
  readonly b: Order;
  readonly adds: boolean;
}

/** A tile of C: its rows and columns, and those that one invocation computes; multiples of 4. */
export interface Tile {
  readonly rows: number;
  readonly columns: number;
  readonly ownRows: number;
  readonly ownColumns: number;
}

/** Tiles by size: small matrices need small ones to occupy the GPU. */
export const TILES = {
  large: { rows: 128, columns: 128, ownRows: 8, ownColumns: 8 },
  medium: { rows: 64, columns: 64, ownRows: 4, ownColumns: 4 },
  low: { rows: 16, columns: 128, ownRows: 4, ownColumns: 4 },
} as const satisfies Record<string, Tile>;

const DEPTH = 16; // of a slice: 16 KiB for the largest tile, which every adapter has

/** Columns that one workgroup of `skinnyProgram` computes, and how many invocations share each. */
export const SKINNY_COLUMNS = 8;
const SHARES = 256 / SKINNY_COLUMNS;
/** Maximum rows of `skinnyProgram`. */
export const SKINNY_ROWS = 8;

const range = (count: number) => Array.from({ length: count }, (_, i) => i);

/** Loads a slice of A or B into workgroup memory, as vectors of four neighbours across k. */
function loadSlice(name: "a" | "b", order: Order, size: number, threads: number): string {
  const fours = size / 4;
  const across = name === "a" ? { base: "row0", end: "p.m" } : { base: "column0", end: "p.n" };
  return range(Math.ceil((fours * DEPTH) / threads))
    .map((round) => {
      const item = `item_${name}${round}`;
      const [kk, four] =
        order === "alongK"
          ? [`${item} % ${DEPTH}u`, `${item} / ${DEPTH}u`]
          : [`${item} / ${fours}u`, `${item} % ${fours}u`];
      const parts = range(4).map((i) => `load_${name}(${across.base} + 4u * (${four}) + ${i}u, k0 + ${kk})`);
      const store = `slice_${name}[(${kk}) * ${fours}u + ${four}] = vec4f(${parts.join(", ")});`;
      const isWhole = (round + 1) * threads <= fours * DEPTH;
      return `    let ${item} = lane + ${threads * round}u;
    ${isWhole ? store : `if (${item} < ${fours * DEPTH}u) { ${store} }`}`;
    })
    .join("\n");
}

/** A number of A or B by its index across k and along k; 0 outside the matrix. */
function loader(name: "a" | "b", order: Order): string {
  const end = name === "a" ? "p.m" : "p.n";
  const at = order === "alongK" ? `x * p.${name}Stride + k` : `k * p.${name}Stride + x`;
  return `fn load_${name}(x: u32, k: u32) -> f32 {
  if (x >= ${end} || k >= p.k) { return 0.0; }
  return ${name}(${at});
}`;
}

/** The tiled kernel for a kind of matmul. */
export function matmulProgram({ a, b, adds }: MatmulKind, tile: Tile): Program {
  const { rows, columns, ownRows, ownColumns } = tile;
  const [rowFours, columnFours] = [ownRows / 4, ownColumns / 4];
  const across = columns / ownColumns; // invocations per row of the tile
  const down = rows / ownRows;
  const threads = across * down;
  const sums = range(ownRows).flatMap((i) => range(columnFours).map((j) => ({ i, j, name: `c${i}_${j}` })));
  const multiply = [
    ...range(rowFours).map((i) => `let a${i} = slice_a[kk * ${rows / 4}u + ${down * i}u + down];`),
    ...range(columnFours).map((j) => `let b${j} = slice_b[kk * ${columns / 4}u + ${across * j}u + across];`),
    ...sums.map(({ i, j, name }) => `${name} = fma(vec4f(a${Math.floor(i / 4)}[${i % 4}]), b${j}, ${name});`),
  ];
  const stores = sums.map(({ i, j, name }) => {
    const row = `row0 + 4u * (${down * Math.floor(i / 4)}u + down) + ${i % 4}u`;
    return `store(${row}, column0 + 4u * (${across * j}u + across), ${name});`;
  });
  return program({
    name: `matmul_${a}_${b}${adds ? "_adds" : ""}_${rows}x${columns}`,
    reads: { a: "f32", b: "f32" },
    writes: { c: "f32" },
    ints: ["m", "n", "k", "aStride", "bStride", "cStride"],
    threads,
    top: `var<workgroup> slice_a: array<vec4f, ${(rows / 4) * DEPTH}>;
var<workgroup> slice_b: array<vec4f, ${(columns / 4) * DEPTH}>;
${loader("a", a)}
${loader("b", b)}
fn store(row: u32, column: u32, sums: vec4f) {
  if (row >= p.m) { return; }
  for (var i = 0u; i < 4u; i++) {
    if (column + i < p.n) {
      let at = row * p.cStride + column + i;
      set_c(at, ${adds ? "c(at) + " : ""}sums[i]);
    }
  }
}`,
    body: `
  let row0 = group.y * ${rows}u;
  let column0 = group.x * ${columns}u;
  let down = lane / ${across}u;
  let across = lane % ${across}u;
  ${sums.map(({ name }) => `var ${name} = vec4f();`).join("\n  ")}
  for (var k0 = 0u; k0 < p.k; k0 += ${DEPTH}u) {
    workgroupBarrier();
${loadSlice("a", a, rows, threads)}
${loadSlice("b", b, columns, threads)}
    workgroupBarrier();
    for (var kk = 0u; kk < ${DEPTH}u; kk++) {
      ${multiply.join("\n      ")}
    }
  }
  ${stores.join("\n  ")}
`,
  });
}

/**
 * C = A · Bᵀ for at most SKINNY_ROWS rows, as when decoding: B is read once, and the invocations that share a column
 * each add up a part of it.
 */
export function skinnyProgram(rows: number, adds: boolean): Program {
  const each = range(rows);
  return program({
    name: `skinny_${rows}${adds ? "_adds" : ""}`,
    reads: { a: "f32", b: "f32" },
    writes: { c: "f32" },
    ints: ["n", "k", "aStride", "bStride", "cStride"],
    top: `var<workgroup> parts: array<f32, ${256 * rows}>;`,
    body: `
  let share = lane % ${SHARES}u;
  let column = group.x * ${SKINNY_COLUMNS}u + lane / ${SHARES}u;
  ${each.map((i) => `var c${i} = 0.0;`).join("\n  ")}
  if (column < p.n) {
    for (var k = share; k < p.k; k += ${SHARES}u) {
      let w = b(column * p.bStride + k);
      ${each.map((i) => `c${i} = fma(a(${i}u * p.aStride + k), w, c${i});`).join("\n      ")}
    }
  }
  ${each.map((i) => `parts[${256 * i}u + lane] = c${i};`).join("\n  ")}
  workgroupBarrier();
  let row = share;
  if (row < ${rows}u && column < p.n) {
    var sum = 0.0;
    for (var i = 0u; i < ${SHARES}u; i++) { sum += parts[256u * row + lane - share + i]; }
    let at = row * p.cStride + column;
    set_c(at, ${adds ? "c(at) + " : ""}sum);
  }
`,
  });
}
