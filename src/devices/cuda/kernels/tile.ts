// Products of some dozen rows with a bf16 weight, as decoding of a batch has them: bound by reading the weight once, and by waiting.
// A block has 64 or 128 of the weight's rows and a piece of k; the blocks of a cluster have the pieces, and add them up in order
// through each other's shared memory. Weights go straight into registers, all of a block's at once and before the kernel before
// this one has ended; x goes through shared memory. Eight warps: four by 16 rows of the weight (or twice 16), by two halves of the
// piece of k.
import type { KernelSource } from "../launch.ts";
import { COMMON } from "./common.ts";
import { MMA } from "./mma.ts";

/** Rows of x at most. */
export const TILE_ROWS = 64;
export const TILE_THREADS = 256;
const MOST_PIECES = 8; // blocks a cluster may have on every card

/** What follows the product, as in kernels/skinny.ts. */
export type TileEnd = "bf16" | "gated" | "added";

/** How a product is cut: the weight's rows and k of a block, blocks of a cluster, and rows of x in eights. */
export interface TileCut {
  readonly height: 64 | 128;
  readonly piece: 256 | 384 | 512;
  readonly pieces: number;
  readonly columns: 4 | 8;
}

type Block = Pick<TileCut, "height" | "piece">;
const BLOCKS: readonly Block[] = [
  { height: 128, piece: 256 },
  { height: 128, piece: 512 },
  { height: 64, piece: 256 },
  { height: 64, piece: 384 },
  { height: 64, piece: 512 },
];

/** The cut for so many rows of x, or undefined where there is none: as many blocks as there are multiprocessors, or the next more. */
export function tileCut(rows: number, n: number, k: number, multiprocessors: number): TileCut | undefined {
  if (rows > TILE_ROWS) return undefined;
  const cuts = BLOCKS.filter(({ height, piece }) => n % height === 0 && [1, 2, 4, MOST_PIECES].includes(k / piece))
    .map((block) => ({ ...block, pieces: k / block.piece }))
    .map((cut) => ({ cut, blocks: (n / cut.height) * cut.pieces }))
    .sort((a, b) => a.blocks - b.blocks || a.cut.height - b.cut.height);
  const best = cuts.findLast(({ blocks }) => blocks <= multiprocessors) ?? cuts[0];
  return best && { ...best.cut, columns: rows <= 32 ? 4 : 8 };
}

/** Blocks: tiles of the weight by pieces of k. */
export function tileGrid(n: number, { height, pieces }: TileCut): readonly [number, number, number] {
  return [n / height, pieces, 1];
}

/** Shared memory of a block, in bytes: x, then the sums in its place. */
export function tileShared({ height, piece, columns }: TileCut): number {
  return 8 * columns * Math.max(2 * piece + 64, 4 * (height + 4));
}

export function tileName(end: TileEnd, { height, piece, columns }: Omit<TileCut, "pieces">): string {
  return `tile_${end}_${height}_${piece}_${columns}`;
}

const KERNELS = BLOCKS.flatMap((block) =>
  ([4, 8] as const).flatMap((columns) =>
    (["bf16", "gated", "added"] as const).map(
      (end) =>
        `${end.toUpperCase()}(${tileName(end, { ...block, columns })}, ${columns}, ${block.height}, ${block.piece})`,
    ),
  ),
);

export const TILE: KernelSource = {
  name: "tile",
  from: 90,
  code: `${COMMON}
${MMA}
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

/* The block's sums in shared memory: [column][row of the weight]. Row m of the block is \`rowOf(m)\` of the weight. */
template <int NT, int HEIGHT, int PIECE, typename RowOf>
__device__ __forceinline__ void multiply(const bf16* weight, const bf16* x, int rows, int k, RowOf rowOf) {
  constexpr int MT = HEIGHT / 64; /* tiles of 16 rows a warp has */
  constexpr int STEPS = PIECE / 64; /* of 32 k, a warp's */
  constexpr int STRIDE = 2 * PIECE + 64; /* bytes: lanes that read together find other banks */
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, half = warp >> 2, at = (lane & 3) * 8;
  const int from = blockIdx.y * PIECE, inWeight = from + half * (PIECE / 2) + at;
  const int m = 16 * (warp & 3) + (lane >> 2); /* and that + 8, and all again 64 further */
  LET_NEXT_START();
  uint4 l[MT][STEPS], h[MT][STEPS];
#pragma unroll
  for (int t = 0; t < MT; t++) {
    const bf16 *low = weight + (long long)rowOf(m + 64 * t) * k + inWeight, *high = weight + (long long)rowOf(m + 64 * t + 8) * k + inWeight;
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
      l[t][s] = loadWeight(low + 32 * s);
      h[t][s] = loadWeight(high + 32 * s);
    }
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
  float c[MT][NT][4];
#pragma unroll
  for (int t = 0; t < MT; t++)
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
      for (int i = 0; i < 4; i++) c[t][n][i] = 0.0f;
  const char* columns = room + (lane >> 2) * STRIDE + 2 * (half * (PIECE / 2) + at);
#pragma unroll
  for (int s = 0; s < STEPS; s++)
#pragma unroll
    for (int n = 0; n < NT; n++) {
      const uint4 y = *(const uint4*)(columns + 8 * n * STRIDE + 64 * s);
#pragma unroll
      for (int t = 0; t < MT; t++) multiply32(c[t][n], l[t][s], h[t][s], y);
    }
  /* The second half of k, and the first on top of it. */
  for (int turn = 1; turn >= 0; turn--) {
    __syncthreads();
    if (half != turn) continue;
#pragma unroll
    for (int t = 0; t < MT; t++)
#pragma unroll
      for (int n = 0; n < NT; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
          float* sum = (float*)room + (8 * n + 2 * (lane & 3) + (i & 1)) * (HEIGHT + 4) + m + 64 * t + 8 * (i >> 1);
          *sum = turn == 1 ? c[t][n][i] : c[t][n][i] + *sum;
        }
  }
  meetCluster();
}

/* Sums of four rows of the weight from \`row\` on for a column: pieces of k in order. */
template <int HEIGHT> __device__ __forceinline__ void total(int column, int row, unsigned pieces, float* v) {
  v[0] = v[1] = v[2] = v[3] = 0.0f;
#pragma unroll 4
  for (unsigned piece = 0; piece < pieces; piece++) {
    const float4 part = readOf((const float*)room + column * (HEIGHT + 4) + row, piece);
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

#define BF16(name, NT, HEIGHT, PIECE) \\
  extern "C" __global__ void __launch_bounds__(${TILE_THREADS}) name(const bf16* weight, const bf16* x, bf16* out, int rows, int k, int stride, int width) { \\
    const int first = blockIdx.x * HEIGHT; \\
    multiply<NT, HEIGHT, PIECE>(weight, x, rows, k, [=](int m) { return first + m; }); \\
    OVER_SHARE(HEIGHT) { \\
      const int column = item / (HEIGHT / 4), row = item % (HEIGHT / 4) * 4; \\
      float v[4]; \\
      total<HEIGHT>(column, row, pieces, v); \\
      store4(out + (long long)column * stride + first + row, v); \\
    } \\
    meetCluster(); \\
  }

/* Half of the block's rows are gate's, half are those of up. */
#define GATED(name, NT, HEIGHT, PIECE) \\
  extern "C" __global__ void __launch_bounds__(${TILE_THREADS}) name(const bf16* weight, const bf16* x, bf16* out, int rows, int k, int stride, int width) { \\
    const int first = blockIdx.x * (HEIGHT / 2); \\
    multiply<NT, HEIGHT, PIECE>(weight, x, rows, k, [=](int m) { return first + m % (HEIGHT / 2) + (m < HEIGHT / 2 ? 0 : width); }); \\
    OVER_SHARE(HEIGHT / 2) { \\
      const int column = item / (HEIGHT / 8), row = item % (HEIGHT / 8) * 4; \\
      float gate[4], up[4]; \\
      total<HEIGHT>(column, row, pieces, gate); \\
      total<HEIGHT>(column, row + HEIGHT / 2, pieces, up); \\
      for (int i = 0; i < 4; i++) { \\
        const float g = asStored(gate[i]); \\
        gate[i] = g / (1.0f + expf(-g)) * asStored(up[i]); \\
      } \\
      store4(out + (long long)column * stride + first + row, gate); \\
    } \\
    meetCluster(); \\
  }

#define ADDED(name, NT, HEIGHT, PIECE) \\
  extern "C" __global__ void __launch_bounds__(${TILE_THREADS}) name(const bf16* weight, const bf16* x, float* out, int rows, int k, int stride, int width) { \\
    const int first = blockIdx.x * HEIGHT; \\
    multiply<NT, HEIGHT, PIECE>(weight, x, rows, k, [=](int m) { return first + m; }); \\
    OVER_SHARE(HEIGHT) { \\
      const int column = item / (HEIGHT / 4), row = item % (HEIGHT / 4) * 4; \\
      float v[4], before[4]; \\
      load4(out + (long long)column * stride + first + row, before); \\
      total<HEIGHT>(column, row, pieces, v); \\
      for (int i = 0; i < 4; i++) before[i] += asStored(v[i]); \\
      store4(out + (long long)column * stride + first + row, before); \\
    } \\
    meetCluster(); \\
  }

${KERNELS.join("\n")}
`,
};
