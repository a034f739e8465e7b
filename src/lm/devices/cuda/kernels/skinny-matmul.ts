// Skinny matmul: a few rows with a bf16 weight, as in decoding; bound by reading the weight once. The weight's rows are
// the rows of the tensor core's tile, the batch its columns. The warps of a block split k, and weights are prefetched
// before the previous kernel ends.
import type { KernelSource } from "../launch.ts";
import { COMMON } from "./common.ts";
import { MMA } from "./mma.ts";

/** Maximum rows of x: with more, cuBLAS is as fast. */
export const SKINNY_ROWS = 16;

/** The epilogue: none, SwiGLU of the two halves, or adding to the residual stream. */
export type SkinnyEnd = "bf16" | "f32" | "gated" | "added";

/** Maximum rows for which the matmul also computes the norm, which every block repeats. */
export const NORMED_ROWS = 4;

/** How work is divided: columns (rows of x) in units of eight, and the number of warps that split k. */
export interface SkinnyCut {
  readonly columns: 1 | 2;
  readonly warps: 8 | 16;
}

/** The division for these sizes; undefined if there is none, since each warp needs steps of 32 k. */
export function skinnyCut(rows: number, k: number): SkinnyCut | undefined {
  // More warps for long sums, so that the whole weight is in flight at once.
  const warps = k >= 2048 && k % 512 === 0 ? 16 : 8;
  if (rows > SKINNY_ROWS || k % (32 * warps) !== 0) return undefined;
  return { columns: rows <= 8 ? 1 : 2, warps };
}

/** Tiles of 16 weight rows per block. */
function tilesOf(end: SkinnyEnd): 1 | 2 {
  return end === "gated" ? 2 : 1;
}

/** Bytes of shared memory per block. */
export function skinnyShared(end: SkinnyEnd, { columns, warps }: SkinnyCut): number {
  return 4 * warps * 16 * tilesOf(end) * (8 * columns + 1);
}

/** A kernel's name; "normed" kernels take the residual stream and compute its norm themselves. */
export function skinnyName(end: SkinnyEnd, { columns, warps }: SkinnyCut, isNormed = false): string {
  return `skinny_${end}_${columns}_${warps}${isNormed ? "_normed" : ""}`;
}

const CUTS = ([1, 2] as const).flatMap((columns) => ([8, 16] as const).map((warps): SkinnyCut => ({ columns, warps })));
const KERNELS = CUTS.flatMap((cut) => {
  const sizes = `${cut.columns}, ${cut.warps}`;
  const both = [false, ...(cut.columns === 1 ? [true] : [])].flatMap((isNormed) => {
    const x = isNormed ? "float" : "bf16";
    return [
      `PLAIN(${skinnyName("bf16", cut, isNormed)}, ${x}, bf16, ${sizes})`,
      `PLAIN(${skinnyName("f32", cut, isNormed)}, ${x}, float, ${sizes})`,
      `GATED(${skinnyName("gated", cut, isNormed)}, ${x}, ${sizes})`,
    ];
  });
  return [...both, `ADDED(${skinnyName("added", cut)}, ${sizes})`];
});

export const SKINNY: KernelSource = {
  name: "skinny",
  from: 80,
  code: `${COMMON}
${MMA}
/* Eight numbers of x for the tensor core. */
__device__ __forceinline__ uint4 eightOf(const bf16* x, const float*, float&) { return *(const uint4*)x; }
/* Of the residual stream: times the norm's scale; 1/rms is applied at the end. */
__device__ __forceinline__ uint4 eightOf(const float* x, const float* scale, float& squares) {
  float v[8], w[8];
  load8(x, v);
  load8(scale, w);
#pragma unroll
  for (int j = 0; j < 8; j++) {
    squares += v[j] * v[j];
    v[j] *= w[j];
  }
  return make_uint4(packBf16(v[0], v[1]), packBf16(v[2], v[3]), packBf16(v[4], v[5]), packBf16(v[6], v[7]));
}

__shared__ float squaresOf[16][16]; /* of each warp and column */

/* Factor of a column's sums: 1/rms, or 1. */
template <int WARPS> __device__ __forceinline__ float factorOf(const bf16*, int, int, float) { return 1.0f; }
template <int WARPS> __device__ __forceinline__ float factorOf(const float*, int column, int k, float eps) {
  float squares = 0.0f;
#pragma unroll
  for (int w = 0; w < WARPS; w++) squares += squaresOf[w][column];
  return 1.0f / sqrtf(squares / k + eps);
}

/* Sums of a block in shared memory: sums[warp][weight row][column], for MT tiles of 16 weight rows that are \`apart\` apart. */
template <int NT, int MT, int WARPS, typename X>
__device__ __forceinline__ void multiply(const bf16* weight, const X* x, const float* scale, float* sums, int rows, int k, int first, int apart) {
  constexpr int AHEAD = MT == 1 ? (WARPS == 8 ? 4 : 6) : 2; /* steps of 32 k in flight */
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, row = lane >> 2, at = (lane & 3) * 8;
  const int steps = k / (32 * WARPS);
  const bf16* w = weight + (long long)(first + row) * k + warp * (k / WARPS) + at;
  const X* b = x + warp * (k / WARPS) + at;
  float squares[NT];
#pragma unroll
  for (int n = 0; n < NT; n++) squares[n] = 0.0f;
  float c[MT][NT][4];
#pragma unroll
  for (int m = 0; m < MT; m++)
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) c[m][n][i] = 0.0f;
  uint4 low[AHEAD][MT], high[AHEAD][MT];
  LET_NEXT_START();
#pragma unroll
  for (int s = 0; s < AHEAD; s++) {
    if (s >= steps) break;
#pragma unroll
    for (int m = 0; m < MT; m++) {
      low[s][m] = loadWeight(w + (long long)m * apart * k + 32 * s);
      high[s][m] = loadWeight(w + ((long long)m * apart + 8) * k + 32 * s);
    }
  }
  AFTER_PREVIOUS();
  for (int base = 0; base < steps; base += AHEAD) {
#pragma unroll
    for (int s = 0; s < AHEAD; s++) {
      if (base + s >= steps) break;
      uint4 y[NT];
#pragma unroll
      for (int n = 0; n < NT; n++) {
        const int column = 8 * n + row;
        const int offset = 32 * (base + s);
        y[n] = column < rows ? eightOf(b + (long long)column * k + offset, scale + warp * (k / WARPS) + at + offset, squares[n])
                             : make_uint4(0, 0, 0, 0);
      }
      uint4 l[MT], h[MT];
#pragma unroll
      for (int m = 0; m < MT; m++) {
        l[m] = low[s][m];
        h[m] = high[s][m];
        if (base + s + AHEAD < steps) {
          low[s][m] = loadWeight(w + (long long)m * apart * k + 32 * (base + s + AHEAD));
          high[s][m] = loadWeight(w + ((long long)m * apart + 8) * k + 32 * (base + s + AHEAD));
        }
      }
#pragma unroll
      for (int m = 0; m < MT; m++)
#pragma unroll
        for (int n = 0; n < NT; n++) multiply32(c[m][n], l[m], h[m], y[n]);
    }
  }
  if (sizeof(X) == 4) {
#pragma unroll
    for (int n = 0; n < NT; n++) {
      squares[n] += __shfl_xor_sync(0xffffffffu, squares[n], 1);
      squares[n] += __shfl_xor_sync(0xffffffffu, squares[n], 2);
      if ((lane & 3) == 0) squaresOf[warp][8 * n + row] = squares[n];
    }
  }
  constexpr int WIDTH = 8 * NT + 1;
#pragma unroll
  for (int m = 0; m < MT; m++)
#pragma unroll
    for (int n = 0; n < NT; n++) {
      float* to = sums + ((warp * MT + m) * 16 + row) * WIDTH + 8 * n + 2 * (lane & 3);
      to[0] = c[m][n][0];
      to[1] = c[m][n][1];
      to[8 * WIDTH] = c[m][n][2];
      to[8 * WIDTH + 1] = c[m][n][3];
    }
  __syncthreads();
}

/* Adds up the warps' sums of one output, in order. */
template <int NT, int MT, int WARPS> __device__ __forceinline__ float total(const float* sums, int weightRow, int column) {
  float sum = 0.0f;
#pragma unroll
  for (int w = 0; w < WARPS; w++) sum += sums[(w * MT * 16 + weightRow) * (8 * NT + 1) + column];
  return sum;
}

extern __shared__ float sums[];

/* out[rows, n] = x[rows, k] · weightᵀ. */
#define PLAIN(name, X, O, NT, WARPS) \\
  extern "C" __global__ void __launch_bounds__(32 * WARPS) name( \\
    const bf16* weight, const X* x, O* out, int rows, int k, int stride, int width, const float* scale, float eps) { \\
    const int first = blockIdx.x * 16; \\
    multiply<NT, 1, WARPS, X>(weight, x, scale, sums, rows, k, first, 16); \\
    for (int i = threadIdx.x; i < 16 * rows; i += 32 * WARPS) { \\
      const int column = i / 16, row = i % 16; \\
      out[(long long)column * stride + first + row] = fromFloat<O>(total<NT, 1, WARPS>(sums, row, column) * factorOf<WARPS>(x, column, k, eps)); \\
    } \\
  }

/* out[rows, width] = silu(gate) · up of a weight with gate rows, then up rows; both rounded as if they had been stored. */
#define GATED(name, X, NT, WARPS) \\
  extern "C" __global__ void __launch_bounds__(32 * WARPS) name( \\
    const bf16* weight, const X* x, bf16* out, int rows, int k, int stride, int width, const float* scale, float eps) { \\
    const int first = blockIdx.x * 16; \\
    multiply<NT, 2, WARPS, X>(weight, x, scale, sums, rows, k, first, width); \\
    for (int i = threadIdx.x; i < 16 * rows; i += 32 * WARPS) { \\
      const int column = i / 16, row = i % 16; \\
      const float factor = factorOf<WARPS>(x, column, k, eps); \\
      const float gate = toFloat(fromFloat<bf16>(total<NT, 2, WARPS>(sums, row, column) * factor)); \\
      const float up = toFloat(fromFloat<bf16>(total<NT, 2, WARPS>(sums, 16 + row, column) * factor)); \\
      out[(long long)column * stride + first + row] = fromFloat<bf16>(gate / (1.0f + expf(-gate)) * up); \\
    } \\
  }

/* out[rows, n] += x[rows, k] · weightᵀ, out being the residual stream; the matmul is rounded as if it had been stored. */
#define ADDED(name, NT, WARPS) \\
  extern "C" __global__ void __launch_bounds__(32 * WARPS) name( \\
    const bf16* weight, const bf16* x, float* out, int rows, int k, int stride, int width, const float* scale, float eps) { \\
    const int first = blockIdx.x * 16; \\
    multiply<NT, 1, WARPS, bf16>(weight, x, scale, sums, rows, k, first, 16); \\
    for (int i = threadIdx.x; i < 16 * rows; i += 32 * WARPS) { \\
      const int column = i / 16, row = i % 16; \\
      out[(long long)column * stride + first + row] += toFloat(fromFloat<bf16>(total<NT, 1, WARPS>(sums, row, column))); \\
    } \\
  }

${KERNELS.join("\n")}
`,
};
