// Products of some dozen rows with a bf16 weight, as decoding of a batch has them: bound by reading the weight once, and by waiting.
// A block has 64 of the weight's rows and a piece of k; the blocks of a cluster have the pieces, and add them up in order through
// each other's shared memory. Weights go straight into registers, all of a block's at once and before the kernel before this one
// has ended; x goes through shared memory. Eight warps: four times 16 rows of the weight, by two halves of the piece of k.
import type { KernelSource } from "../launch.ts";
import { COMMON } from "./common.ts";
import { MMA } from "./mma.ts";

/** Rows of x at most. */
export const TILE_ROWS = 64;
export const TILE_THREADS = 256;
const WEIGHT_ROWS = 64;
const MOST_PIECES = 8; // blocks a cluster may have on every card

/** What follows the product, as in kernels/skinny.ts. */
export type TileEnd = "bf16" | "gated" | "added";

const PIECES = [256, 384, 512] as const; // of k, as kernels have them

/** How a product is cut: k of a block, blocks of a cluster, and rows of x in eights. */
export interface TileCut {
  readonly piece: (typeof PIECES)[number];
  readonly pieces: number;
  readonly columns: 4 | 8;
}

/** The cut for so many rows of x, or undefined where there is none: as many blocks as two on each multiprocessor, or else as few as can be. */
export function tileCut(rows: number, n: number, k: number, multiprocessors: number): TileCut | undefined {
  if (rows > TILE_ROWS || n % WEIGHT_ROWS !== 0) return undefined;
  const cuts = PIECES.filter((piece) => k % piece === 0 && [1, 2, 4, MOST_PIECES].includes(k / piece))
    .map((piece) => ({ piece, pieces: k / piece }))
    .sort((a, b) => b.pieces - a.pieces);
  const fits = cuts.find(({ pieces }) => (n / WEIGHT_ROWS) * pieces <= 2 * multiprocessors) ?? cuts.at(-1);
  return fits && { ...fits, columns: rows <= 32 ? 4 : 8 };
}

/** Blocks: tiles of the weight by pieces of k. */
export function tileGrid(n: number, { pieces }: TileCut): readonly [number, number, number] {
  return [n / WEIGHT_ROWS, pieces, 1];
}

/** Shared memory of a block, in bytes: x, then the sums in its place. */
export function tileShared({ piece, columns }: TileCut): number {
  return Math.max(8 * columns * (2 * piece + 64), 2 * 8 * columns * (WEIGHT_ROWS + 4) * 4);
}

export function tileName(end: TileEnd, { piece, columns }: TileCut): string {
  return `tile_${end}_${piece}_${columns}`;
}

const KERNELS = PIECES.flatMap((piece) =>
  ([4, 8] as const).flatMap((columns) =>
    (["bf16", "gated", "added"] as const).map(
      (end) => `${end.toUpperCase()}(${tileName(end, { piece, pieces: 1, columns })}, ${columns}, ${piece})`,
    ),
  ),
);

export const TILE: KernelSource = {
  name: "tile",
  from: 90,
  code: `${COMMON}
${MMA}
#define SUMS ${WEIGHT_ROWS + 4} /* floats between columns of the sums */
extern __shared__ __align__(16) char room[];

__device__ __forceinline__ unsigned piecesOfCluster() {
  unsigned n;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(n));
  return n;
}
__device__ __forceinline__ unsigned rankInCluster() {
  unsigned n;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(n));
  return n;
}
__device__ __forceinline__ void meetCluster() {
  asm volatile("barrier.cluster.arrive;\\n barrier.cluster.wait;" ::: "memory");
}
/* Four floats at the same place in another block's shared memory. */
__device__ __forceinline__ float4 readOf(const float* mine, unsigned rank) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(mine);
  unsigned its;
  float4 v;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(its) : "r"(at), "r"(rank));
  asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(its) : "memory");
  return v;
}

/* The block's sums in shared memory: [half of k][column][row of the weight]. Row m of the block is \`rowOf(m)\` of the weight. */
template <int NT, int PIECE, typename RowOf>
__device__ __forceinline__ void multiply(const bf16* weight, const bf16* x, int rows, int k, RowOf rowOf) {
  constexpr int STEPS = PIECE / 64; /* of 32 k, a warp's */
  constexpr int STRIDE = 2 * PIECE + 64; /* bytes: lanes that read together find other banks */
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, tile = warp & 3, half = warp >> 2, at = (lane & 3) * 8;
  const int from = blockIdx.y * PIECE;
  const int m = 16 * tile + (lane >> 2);
  const bf16* low = weight + (long long)rowOf(m) * k + from + half * (PIECE / 2) + at;
  const bf16* high = weight + (long long)rowOf(m + 8) * k + from + half * (PIECE / 2) + at;
  LET_NEXT_START();
  uint4 l[STEPS], h[STEPS];
#pragma unroll
  for (int s = 0; s < STEPS; s++) {
    l[s] = loadWeight(low + 32 * s);
    h[s] = loadWeight(high + 32 * s);
  }
  AFTER_PREVIOUS();
  constexpr int PER_ROW = PIECE / 8; /* copies of 16 bytes */
#pragma unroll
  for (int i = 0; i < 8 * NT * PER_ROW / ${TILE_THREADS}; i++) {
    const int item = i * ${TILE_THREADS} + threadIdx.x, column = item / PER_ROW, part = item % PER_ROW;
    const unsigned to = (unsigned)__cvta_generic_to_shared(room + column * STRIDE + 16 * part);
    const bf16* source = x + (long long)min(column, rows - 1) * k + from + 8 * part;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(source), "r"(column < rows ? 16 : 0) : "memory");
  }
  asm volatile("cp.async.commit_group;\\n cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  float c[NT][4];
#pragma unroll
  for (int n = 0; n < NT; n++)
#pragma unroll
    for (int i = 0; i < 4; i++) c[n][i] = 0.0f;
  const char* columns = room + (lane >> 2) * STRIDE + 2 * (half * (PIECE / 2) + at);
#pragma unroll
  for (int s = 0; s < STEPS; s++)
#pragma unroll
    for (int n = 0; n < NT; n++) multiply32(c[n], l[s], h[s], *(const uint4*)(columns + 8 * n * STRIDE + 64 * s));
  __syncthreads();
  float* sums = (float*)room + half * (8 * NT * SUMS);
#pragma unroll
  for (int n = 0; n < NT; n++)
#pragma unroll
    for (int i = 0; i < 4; i++) sums[(8 * n + 2 * (lane & 3) + (i & 1)) * SUMS + m + 8 * (i >> 1)] = c[n][i];
  meetCluster();
}

/* Sums of four rows of the weight from \`row\` on for a column: pieces of k in order. */
template <int NT> __device__ __forceinline__ void total(int column, int row, unsigned pieces, float* v) {
  v[0] = v[1] = v[2] = v[3] = 0.0f;
#pragma unroll 4
  for (unsigned piece = 0; piece < 2 * pieces; piece++) {
    const float4 part = readOf((const float*)room + ((piece & 1) * 8 * NT + column) * SUMS + row, piece >> 1);
    v[0] += part.x;
    v[1] += part.y;
    v[2] += part.z;
    v[3] += part.w;
  }
}
__device__ __forceinline__ float asStored(float x) { return toFloat(fromFloat<bf16>(x)); }

/* Runs over what is this block's share of the tile's columns by fours of \`size\` rows. */
#define OVER_SHARE(size) \\
  const unsigned pieces = piecesOfCluster(), rank = rankInCluster(); \\
  for (int item = threadIdx.x + ${TILE_THREADS} * rank; item < rows * (size) / 4; item += ${TILE_THREADS} * pieces)

#define BF16(name, NT, PIECE) \\
  extern "C" __global__ void __launch_bounds__(${TILE_THREADS}, 2) name(const bf16* weight, const bf16* x, bf16* out, int rows, int k, int stride, int width) { \\
    const int first = blockIdx.x * ${WEIGHT_ROWS}; \\
    multiply<NT, PIECE>(weight, x, rows, k, [=](int m) { return first + m; }); \\
    OVER_SHARE(${WEIGHT_ROWS}) { \\
      const int column = item / ${WEIGHT_ROWS / 4}, row = item % ${WEIGHT_ROWS / 4} * 4; \\
      float v[4]; \\
      total<NT>(column, row, pieces, v); \\
      store4(out + (long long)column * stride + first + row, v); \\
    } \\
    meetCluster(); \\
  }

/* Half of the block's rows are gate's, half are those of up. */
#define GATED(name, NT, PIECE) \\
  extern "C" __global__ void __launch_bounds__(${TILE_THREADS}, 2) name(const bf16* weight, const bf16* x, bf16* out, int rows, int k, int stride, int width) { \\
    const int first = blockIdx.x * ${WEIGHT_ROWS / 2}; \\
    multiply<NT, PIECE>(weight, x, rows, k, [=](int m) { return first + m % ${WEIGHT_ROWS / 2} + (m < ${WEIGHT_ROWS / 2} ? 0 : width); }); \\
    OVER_SHARE(${WEIGHT_ROWS / 2}) { \\
      const int column = item / ${WEIGHT_ROWS / 8}, row = item % ${WEIGHT_ROWS / 8} * 4; \\
      float gate[4], up[4]; \\
      total<NT>(column, row, pieces, gate); \\
      total<NT>(column, row + ${WEIGHT_ROWS / 2}, pieces, up); \\
      for (int i = 0; i < 4; i++) { \\
        const float g = asStored(gate[i]); \\
        gate[i] = g / (1.0f + expf(-g)) * asStored(up[i]); \\
      } \\
      store4(out + (long long)column * stride + first + row, gate); \\
    } \\
    meetCluster(); \\
  }

#define ADDED(name, NT, PIECE) \\
  extern "C" __global__ void __launch_bounds__(${TILE_THREADS}, 2) name(const bf16* weight, const bf16* x, float* out, int rows, int k, int stride, int width) { \\
    const int first = blockIdx.x * ${WEIGHT_ROWS}; \\
    multiply<NT, PIECE>(weight, x, rows, k, [=](int m) { return first + m; }); \\
    OVER_SHARE(${WEIGHT_ROWS}) { \\
      const int column = item / ${WEIGHT_ROWS / 4}, row = item % ${WEIGHT_ROWS / 4} * 4; \\
      float v[4], before[4]; \\
      load4(out + (long long)column * stride + first + row, before); \\
      total<NT>(column, row, pieces, v); \\
      for (int i = 0; i < 4; i++) before[i] += asStored(v[i]); \\
      store4(out + (long long)column * stride + first + row, before); \\
    } \\
    meetCluster(); \\
  }

${KERNELS.join("\n")}
`,
};
