// Products of a few rows with a bf16 weight, as decoding has them: bound by reading the weight once. The weight's rows are the
// tensor core's rows, the batch its columns; the warps of a block share out the sum over k, and weights are on their way before
// the kernel before this one has ended.
import type { KernelSource } from "../launch.ts";
import { COMMON } from "./common.ts";
import { MMA } from "./mma.ts";

/** Rows of x at most; for more there is kernels/tile.ts. */
export const SKINNY_ROWS = 16;

/** What follows the product: nothing, SwiGLU of its two halves, or adding it to the stream. */
export type SkinnyEnd = "bf16" | "f32" | "gated" | "added";

/** How a kernel is cut: columns (rows of x) in eights, and the warps that share out k. */
export interface SkinnyCut {
  readonly columns: 1 | 2;
  readonly warps: 8 | 16;
}

/** The cut for so many rows, or undefined where there is none: each warp needs steps of 32 k. */
export function skinnyCut(rows: number, k: number): SkinnyCut | undefined {
  const warps = k >= 2048 && k % 512 === 0 ? 16 : 8; // long sums in more pieces: all of a weight is then on its way at once
  if (rows > SKINNY_ROWS || k % (32 * warps) !== 0) return undefined;
  return { columns: rows <= 8 ? 1 : 2, warps };
}

/** Tiles of 16 weight rows a block has. */
function tilesOf(end: SkinnyEnd): 1 | 2 {
  return end === "gated" ? 2 : 1;
}

/** Shared memory of a block, in bytes. */
export function skinnyShared(end: SkinnyEnd, { columns, warps }: SkinnyCut): number {
  return 4 * warps * 16 * tilesOf(end) * (8 * columns + 1);
}

/** Kernels' names. */
export function skinnyName(end: SkinnyEnd, { columns, warps }: SkinnyCut): string {
  return `skinny_${end}_${columns}_${warps}`;
}

const CUTS = ([1, 2] as const).flatMap((columns) => ([8, 16] as const).map((warps): SkinnyCut => ({ columns, warps })));
const KERNELS = CUTS.flatMap((cut) => {
  const sizes = `${cut.columns}, ${cut.warps}`;
  return [
    `PLAIN(${skinnyName("bf16", cut)}, bf16, ${sizes})`,
    `PLAIN(${skinnyName("f32", cut)}, float, ${sizes})`,
    `GATED(${skinnyName("gated", cut)}, ${sizes})`,
    `ADDED(${skinnyName("added", cut)}, ${sizes})`,
  ];
});

export const SKINNY: KernelSource = {
  name: "skinny",
  from: 80,
  code: `${COMMON}
${MMA}
/* Sums of a block in shared memory: sums[warp][weight row][column], for MT tiles of 16 weight rows that are \`apart\` apart. */
template <int NT, int MT, int WARPS>
__device__ __forceinline__ void multiply(const bf16* weight, const bf16* x, float* sums, int rows, int k, int first, int apart) {
  constexpr int AHEAD = MT == 1 ? (WARPS == 8 ? 4 : 6) : 2; /* steps of 32 k on their way */
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, row = lane >> 2, at = (lane & 3) * 8;
  const int steps = k / (32 * WARPS);
  const bf16* w = weight + (long long)(first + row) * k + warp * (k / WARPS) + at;
  const bf16* b = x + warp * (k / WARPS) + at;
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
        y[n] = column < rows ? *(const uint4*)(b + (long long)column * k + 32 * (base + s)) : make_uint4(0, 0, 0, 0);
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

/* The warps' sums of one number, in order. */
template <int NT, int MT, int WARPS> __device__ __forceinline__ float total(const float* sums, int weightRow, int column) {
  float sum = 0.0f;
#pragma unroll
  for (int w = 0; w < WARPS; w++) sum += sums[(w * MT * 16 + weightRow) * (8 * NT + 1) + column];
  return sum;
}

extern __shared__ float sums[];

/* out[rows, n] = x[rows, k] · weightᵀ. */
#define PLAIN(name, O, NT, WARPS) \\
  extern "C" __global__ void __launch_bounds__(32 * WARPS) name( \\
    const bf16* weight, const bf16* x, O* out, int rows, int k, int stride, int width) { \\
    const int first = blockIdx.x * 16; \\
    multiply<NT, 1, WARPS>(weight, x, sums, rows, k, first, 16); \\
    for (int i = threadIdx.x; i < 16 * rows; i += 32 * WARPS) { \\
      const int column = i / 16, row = i % 16; \\
      out[(long long)column * stride + first + row] = fromFloat<O>(total<NT, 1, WARPS>(sums, row, column)); \\
    } \\
  }

/* out[rows, width] = silu(gate) · up of a weight with gate rows, then up rows; both rounded as if they had been stored. */
#define GATED(name, NT, WARPS) \\
  extern "C" __global__ void __launch_bounds__(32 * WARPS) name( \\
    const bf16* weight, const bf16* x, bf16* out, int rows, int k, int stride, int width) { \\
    const int first = blockIdx.x * 16; \\
    multiply<NT, 2, WARPS>(weight, x, sums, rows, k, first, width); \\
    for (int i = threadIdx.x; i < 16 * rows; i += 32 * WARPS) { \\
      const int column = i / 16, row = i % 16; \\
      const float gate = toFloat(fromFloat<bf16>(total<NT, 2, WARPS>(sums, row, column))); \\
      const float up = toFloat(fromFloat<bf16>(total<NT, 2, WARPS>(sums, 16 + row, column))); \\
      out[(long long)column * stride + first + row] = fromFloat<bf16>(gate / (1.0f + expf(-gate)) * up); \\
    } \\
  }

/* out[rows, n] += x[rows, k] · weightᵀ, out being the stream; the product rounded as if it had been stored. */
#define ADDED(name, NT, WARPS) \\
  extern "C" __global__ void __launch_bounds__(32 * WARPS) name( \\
    const bf16* weight, const bf16* x, float* out, int rows, int k, int stride, int width) { \\
    const int first = blockIdx.x * 16; \\
    multiply<NT, 1, WARPS>(weight, x, sums, rows, k, first, 16); \\
    for (int i = threadIdx.x; i < 16 * rows; i += 32 * WARPS) { \\
      const int column = i / 16, row = i % 16; \\
      out[(long long)column * stride + first + row] += toFloat(fromFloat<bf16>(total<NT, 1, WARPS>(sums, row, column))); \\
    } \\
  }

${KERNELS.join("\n")}
`,
};
