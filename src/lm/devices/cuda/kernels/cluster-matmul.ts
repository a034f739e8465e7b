// Matmul of 17 to 64 rows with a bf16 weight, as in decoding a batch; still bound by reading the weight once. A block
// takes NT weight rows and KS elements of k, all of which it prefetches into shared memory before the previous kernel
// has ended. The blocks of a cluster hold the pieces of one sum (split k): each sends its partial sums to the shared
// memory of the block that owns these outputs, which adds up the pieces in order. Few blocks thus read the same row of
// x.
//
// Compiled per size. Hopper only, for clusters and wgmma; weight rows are its 64 rows, and the batch its columns.
import type { KernelSource } from "../launch.ts";
import { COMMON } from "./common.ts";
import { COPIES, WGMMA, wgmma } from "./hopper.ts";
import type { SkinnyEnd } from "./skinny-matmul.ts";

/** The epilogue, as in skinny-matmul.ts, but without adding to the residual stream: the next norm does that as fast. */
export type ClusteredEnd = Exclude<SkinnyEnd, "added">;

/** The sizes a kernel is compiled for. */
export interface ClusteredShape {
  readonly end: ClusteredEnd;
  /** Maximum rows of x. */
  readonly columns: 32 | 64;
  /** Weight rows per block, in units of 64; `pieces` is the number of pieces that k is split into. */
  readonly groups: number;
  readonly pieces: number;
  readonly k: number;
}

export const CLUSTERED_ROWS = 64;
const PADDING = 4; // floats between two columns of sums, to avoid bank conflicts
/** Candidates for groups and pieces. With more pieces, traffic inside a cluster costs more than it saves. */
const CUTS = [
  [1, 1],
  [2, 1],
  [1, 2],
  [2, 2],
  [1, 4],
] as const;

/** The shape for which a multiprocessor reads the least; undefined if none fits. */
export function clusteredShape(
  rows: number,
  n: number,
  k: number,
  end: ClusteredEnd,
  gpu: { readonly multiprocessors: number; readonly sharedPerBlock: number },
): ClusteredShape | undefined {
  if (rows > CLUSTERED_ROWS) return undefined;
  const columns = rows <= 32 ? 32 : 64;
  let [best, leastCost]: [ClusteredShape | undefined, number] = [undefined, Number.POSITIVE_INFINITY];
  for (const [groups, pieces] of CUTS) {
    const shape = { end, columns, groups, pieces, k } as const;
    if (n % (64 * groups) !== 0 || k % (64 * pieces) !== 0) continue;
    if (clusteredShared(shape) > gpu.sharedPerBlock || clusteredBlocks(shape, n) > gpu.multiprocessors) continue;
    const cost = tileBytes(shape);
    if (cost < leastCost) [best, leastCost] = [shape, cost];
  }
  return best;
}

/** Outputs per block: one per weight row, or one per pair of gate and up rows. */
function outputsOf({ end, groups }: ClusteredShape): number {
  return end === "gated" ? 32 * groups : 64 * groups;
}

/** Number of blocks to launch for a weight of n rows. */
export function clusteredBlocks({ groups, pieces }: ClusteredShape, n: number): number {
  return (n / 64 / groups) * pieces;
}

function tileBytes({ columns, groups, pieces, k }: ClusteredShape): number {
  return 2 * (k / pieces) * (64 * groups + columns);
}

/** Floats per column of sums that a block receives: its share of the weight rows. */
function inboxWidth({ groups, pieces }: ClusteredShape): number {
  return (64 * groups) / pieces + PADDING;
}

/** Bytes of shared memory per block: two tiles, the sums it receives, and alignment. */
export function clusteredShared(shape: ClusteredShape): number {
  return tileBytes(shape) + 4 * shape.pieces * shape.columns * inboxWidth(shape) + 1024;
}

export function clusteredName({ end, columns, groups, pieces, k }: ClusteredShape): string {
  return `clustered_${end}_${columns}_${groups}_${pieces}_${k}`;
}

export function clusteredSource(shape: ClusteredShape): KernelSource {
  const { end, columns, groups, pieces, k } = shape;
  const name = clusteredName(shape);
  const output = end === "f32" ? "float" : "bf16";
  return {
    name,
    from: 90,
    code: `${COMMON}
${COPIES}
${WGMMA}
${wgmma("multiply16", columns, "shared", 0)}
#define COLUMNS ${columns}
#define GROUPS ${groups}
#define PIECES ${pieces}
#define NT (64 * GROUPS)
#define KS (${k} / PIECES)
#define OUTPUTS ${outputsOf(shape)}
#define SHARE (OUTPUTS / PIECES)
#define WIDTH ${inboxWidth(shape)}
#define THREADS (128 * GROUPS)

/* Offset of eight numbers in a tile of N rows. */
template <int N> __device__ __forceinline__ bf16* placeOf(bf16* tile, int row, int piece) {
  return tile + (piece >> 3) * (N * 64) + row * 64 + (((piece & 7) ^ (row & 7)) << 3);
}

/* An address in the shared memory of the cluster's block \`rank\`. */
__device__ __forceinline__ unsigned remote(const void* address, int rank) {
  unsigned to;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(sharedAddress(address)), "r"(rank));
  return to;
}
__device__ __forceinline__ void storeRemote(unsigned address, float v) {
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address), "f"(v) : "memory");
}
__device__ __forceinline__ void waitForCluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* Four adjacent sums of a column, over the pieces. */
__device__ __forceinline__ void total4(const float* inbox, int column, int row, float* v) {
  v[0] = v[1] = v[2] = v[3] = 0.0f;
#pragma unroll
  for (int p = 0; p < PIECES; p++) {
    float x[4];
    load4(inbox + (p * COLUMNS + column) * WIDTH + row, x);
#pragma unroll
    for (int j = 0; j < 4; j++) v[j] += x[j];
  }
}

extern __shared__ char shared[];

extern "C" __global__ void __cluster_dims__(PIECES, 1, 1) __launch_bounds__(THREADS) ${name}(
    const bf16* weight, const bf16* x, ${output}* out, int rows, int k, int stride, int width, const float*, float) {
  char* base = shared + (1024 - (sharedAddress(shared) & 1023)) % 1024;
  bf16 *weights = (bf16*)base, *given = weights + NT * KS;
  float* inbox = (float*)(given + COLUMNS * KS); /* [piece][column][share of the weight rows] */
  const int rank = blockIdx.x % PIECES, first = blockIdx.x / PIECES * OUTPUTS;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  LET_NEXT_START();
  const bf16* from = weight + rank * KS;
  for (int i = threadIdx.x; i < NT * (KS / 8); i += THREADS) {
    const int row = i / 8 % NT, piece = i / (8 * NT) * 8 + i % 8;
    const int number = row < OUTPUTS ? first + row : width + first + row - OUTPUTS; /* gate rows, then up rows */
    copy16(placeOf<NT>(weights, row, piece), from + (long long)number * k + 8 * piece, true);
  }
  commit();
  waitForCluster(); /* all blocks have started: their shared memory may be written */
  AFTER_PREVIOUS();
  for (int i = threadIdx.x; i < COLUMNS * (KS / 8); i += THREADS) {
    const int row = i / 8 % COLUMNS, piece = i / (8 * COLUMNS) * 8 + i % 8;
    copy16(placeOf<COLUMNS>(given, row, piece), x + (long long)(row < rows ? row : 0) * k + rank * KS + 8 * piece, row < rows);
  }
  commit();
  waitForCopies<0>();
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();

  float r[COLUMNS / 8][4];
  const bf16* mine = weights + (warp >> 2) * 64 * 64;
  wgmmaFence();
#pragma unroll
  for (int at = 0; at < KS; at += 16)
    multiply16(r, descriptor(mine + (at >> 6) * (NT * 64) + (at & 63), 0), descriptor(given + (at >> 6) * (COLUMNS * 64) + (at & 63), 0), at != 0);
  wgmmaCommit();
  wgmmaWait<0>();
#pragma unroll
  for (int n = 0; n < COLUMNS / 8; n++)
#pragma unroll
    for (int i = 0; i < 4; i++) asm volatile("" : "+f"(r[n][i])::"memory"); /* not read before the wait */
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int row = 16 * warp + (lane >> 2) + 8 * half, output = row % OUTPUTS, owner = output / SHARE;
    const unsigned to = remote(inbox + rank * COLUMNS * WIDTH + output % SHARE + row / OUTPUTS * SHARE, owner);
#pragma unroll
    for (int n = 0; n < COLUMNS / 8; n++)
#pragma unroll
      for (int i = 0; i < 2; i++) storeRemote(to + 4 * (8 * n + 2 * (lane & 3) + i) * WIDTH, r[n][2 * half + i]);
  }
  waitForCluster();

  for (int i = threadIdx.x; i < rows * (SHARE / 4); i += THREADS) {
    const int column = i / (SHARE / 4), row = i % (SHARE / 4) * 4;
    float v[4];
    total4(inbox, column, row, v);
    ${output}* to = out + (long long)column * stride + first + rank * SHARE + row;
${end === "gated" ? GATED : ""}
    store4(to, v);
  }
}
`,
  };
}

/** Rounds gate and up as if they had been stored. */
const GATED = `
    float up[4];
    total4(inbox, column, SHARE + row, up);
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const float gate = toFloat(fromFloat<bf16>(v[j]));
      v[j] = gate / (1.0f + expf(-gate)) * toFloat(fromFloat<bf16>(up[j]));
    }`;
