// Causal grouped-query attention over trees of spans, forward, with online softmax: a whole row of scores is never in
// memory.
//
// T is float or bf16. q, out [tokens, heads, D]; lse float [tokens, heads] (natural log of the sum over scaled scores);
// the KV cache is as in kernels/common.ts; spans and ranges are as in lm/devices/layout.ts (i32 × 4 and × 3):
//   spans     first row of q, rows, absolute position of the first row, first range; a final entry ends the table
//   ranges    address of the KV block (in elements, for kv head 0), cap, tokens
//
// A thread block processes HEADS heads of one kv head with ROWS / HEADS queries of one span: heads that read the same
// keys share them. Keys are processed by absolute position across the span's ranges, so a shared prompt causes no short
// tiles.
//
// The plan of a layout is an i32 table built on the device. It has the tiles of queries (span, first row in it),
// longest context first; the tiles of keys for backward, in the same form; and for each range the next range of the
// same KV block and the span it belongs to, which links all spans that see a block, in order. Unused tiles are −1.

export const PLAN = `
#define BINS 1024

/* One thread block. tiles[most] of (span, offset), the most expensive first. */
template <typename Cost> __device__ void planTiles(const int* spans, int count, int size, int2* tiles, int most, int* bins, Cost cost) {
  for (int i = threadIdx.x; i < BINS; i += blockDim.x) bins[i] = 0;
  __syncthreads();
  for (int pass = 0; pass < 2; pass++) {
    for (int g = threadIdx.x; g < count; g += blockDim.x) {
      for (int offset = 0; offset < spans[4 * g + 1]; offset += size) {
        const int bin = BINS - 1 - min(BINS - 1, cost(g, offset) / 64);
        const int at = atomicAdd(&bins[bin], 1);
        if (pass == 1) tiles[at] = make_int2(g, offset);
      }
    }
    __syncthreads();
    if (pass == 0 && threadIdx.x == 0) {
      int sum = 0;
      for (int i = 0; i < BINS; i++) {
        const int here = bins[i];
        bins[i] = sum;
        sum += here;
      }
    }
    __syncthreads();
  }
  for (int i = bins[BINS - 1] + threadIdx.x; i < most; i += blockDim.x) tiles[i] = make_int2(-1, 0);
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(1024) attention_plan(
    const int* spans, const int* ranges, const int* rangeRows, int count, int querySize, int keySize, int2* queryTiles, int queryTileMost,
    int2* keyTiles, int keyTileMost, int* next, int* owner) {
  __shared__ int bins[BINS];
  planTiles(spans, count, querySize, queryTiles, queryTileMost, bins, [&](int g, int offset) { return spans[4 * g + 2] + offset; });
  if (keyTileMost == 0) return;
  const int all = spans[4 * count + 3];
  for (int g = threadIdx.x; g < count; g += blockDim.x) {
    for (int r = spans[4 * g + 3]; r < spans[4 * g + 7]; r++) owner[r] = g;
  }
  for (int r = threadIdx.x; r < all; r += blockDim.x) {
    const int row = rangeRows[r];
    int other = r + 1;
    while (other < all && (rangeRows[other] != row || ranges[3 * other + 2] == 0)) other++;
    next[r] = other < all ? other : -1;
  }
  __syncthreads();
  planTiles(spans, count, keySize, keyTiles, keyTileMost, bins, [&](int g, int offset) {
    int rows = -offset;
    for (int r = spans[4 * g + 7] - 1; r >= 0; r = next[r]) rows += spans[4 * owner[r] + 1];
    return rows;
  });
}
`;

/** CUDA source of the forward kernels; their names end in `suffix`, one per head shape. */
export const forwardKernel = (suffix: string): string => `
/* Masks keys after the last that each of a lane's two rows sees. */
__device__ __forceinline__ void mask(float (&s)[TILE / 8][4], int first, int upper) {
#pragma unroll
  for (int n = 0; n < TILE / 8; n++) {
    const int at = first + n * 8 + 2 * (LANE & 3);
    if (at > upper) s[n][0] = -1e30f;
    if (at + 1 > upper) s[n][1] = -1e30f;
    if (at > upper + 8) s[n][2] = -1e30f;
    if (at + 1 > upper + 8) s[n][3] = -1e30f;
  }
}

/* Online softmax: scores to exponentials relative to the highest so far; earlier sums are rescaled. */
__device__ __forceinline__ void weigh(float (&s)[TILE / 8][4], float (&r)[NC][4], float (&top)[2], float (&sum)[2], float factor) {
#pragma unroll
  for (int half = 0; half < 2; half++) {
    float highest = top[half];
#pragma unroll
    for (int n = 0; n < TILE / 8; n++) highest = fmaxf(highest, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
    highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 1));
    highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, 2));
    const float shrink = exp2Fast((top[half] - highest) * factor);
    const float shift = highest * factor;
    float part = 0.0f;
#pragma unroll
    for (int n = 0; n < TILE / 8; n++) {
      s[n][2 * half] = exp2Fast(s[n][2 * half] * factor - shift);
      s[n][2 * half + 1] = exp2Fast(s[n][2 * half + 1] * factor - shift);
      part += s[n][2 * half] + s[n][2 * half + 1];
    }
    top[half] = highest;
    sum[half] = sum[half] * shrink + part;
    if (__any_sync(0xffffffffu, shrink != 1.0f)) {
#pragma unroll
      for (int n = 0; n < NC; n++) {
        r[n][2 * half] *= shrink;
        r[n][2 * half + 1] *= shrink;
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, FORWARD_BLOCKS) attention_forward_${suffix}(
    const T* q, const T* kvCache, T* out, float* lse, const int* spans, const int* ranges, const int2* tiles, int heads, int kvHeads, float scale) {
  extern __shared__ __align__(1024) char shared[];
  T* own = (T*)shared;
  T* stream = own + TILE_ELEMENTS(ROWS); /* STAGES × (keys, values) */
  const int2 tile = tiles[blockIdx.y];
  if (tile.x < 0) return;
  clearShared(shared, (TILE_ELEMENTS(ROWS) + STAGES * 2 * TILE_ELEMENTS(TILE)) * (int)sizeof(T));
  const int* span = spans + 4 * tile.x;
  const int rows = min(ROWS / HEADS, span[1] - tile.y);
  const int position = span[2] + tile.y; /* of the first query */
  const int limit = position + rows;
  const int kv = blockIdx.x * HEADS / (heads / kvHeads);
  const long long stride = (long long)heads * D;
  const T* queries = q + (span[0] + tile.y) * stride + blockIdx.x * HEADS * D;
  for (int i = threadIdx.x; i < ROWS * PIECES; i += THREADS) {
    const int row = i / PIECES, column = i % PIECES * (16 / (int)sizeof(T));
    const int head = row / (ROWS / HEADS), at = row % (ROWS / HEADS);
    copy16(own + tileOffset<ROWS>(row, column), at < rows ? queries + at * stride + head * D + column : q, at < rows);
  }
  Pipe pipe(stream + STAGES * 2 * TILE_ELEMENTS(TILE));
  Context context(ranges, span[3]);
#pragma unroll
  for (int ahead = 0; ahead < AHEAD; ahead++) {
    T* to = stream + ahead * 2 * TILE_ELEMENTS(TILE);
    if (ahead * TILE < limit) loadContext(to, to + TILE_ELEMENTS(TILE), kvCache, context, kv, ahead * TILE, limit);
    commit();
  }

  const int row = WARP * 16; /* of the block, then of its head */
  const int first = row % (ROWS / HEADS);
  const int unit = first & ~(UNIT - 1);
  const int unitLimit = unit < rows ? min(limit, position + unit + UNIT) : 0; /* keys that the unit sees */
  float r[NC][4], s[TILE / 8][4], top[2] = {-1e30f, -1e30f}, sum[2] = {0.0f, 0.0f};
  clear(r);
  pipe.start();
  for (int j = 0, number = 0; j < limit; j += TILE, number++) {
    T* keys = stream + number % STAGES * 2 * TILE_ELEMENTS(TILE);
    const auto loadAhead = [&] {
      if (STAGES == 1) return;
      pipe.write(number);
      T* to = stream + (number + AHEAD) % STAGES * 2 * TILE_ELEMENTS(TILE);
      if (j + AHEAD * TILE < limit) loadContext(to, to + TILE_ELEMENTS(TILE), kvCache, context, kv, j + AHEAD * TILE, limit);
      commit();
    };
    pipe.read(number);
    if (j < unitLimit) {
      scores(s, own, row, keys);
      loadAhead(); /* while the matmul runs */
      settle<0>(s);
      if (j + TILE > position + first + 1) mask(s, j, position + first + (LANE >> 2));
      weigh(s, r, top, sum, scale * LOG2E);
      gather(r, s, keys + TILE_ELEMENTS(TILE));
      settle<0>(r);
    } else {
      loadAhead();
    }
    pipe.done(number);
    if (STAGES == 1) {
      __syncthreads(); /* the tile may be overwritten */
      if (j + TILE < limit) loadContext(stream, stream + TILE_ELEMENTS(TILE), kvCache, context, kv, j + TILE, limit);
      commit();
    }
  }
#pragma unroll
  for (int half = 0; half < 2; half++) {
    sum[half] += __shfl_xor_sync(0xffffffffu, sum[half], 1);
    sum[half] += __shfl_xor_sync(0xffffffffu, sum[half], 2);
    const int at = first + (LANE >> 2) + 8 * half;
    const int head = blockIdx.x * HEADS + row / (ROWS / HEADS);
    if ((LANE & 3) == 0 && at < rows) lse[(long long)(span[0] + tile.y + at) * heads + head] = top[half] * scale + logf(sum[half]);
  }
  __syncthreads(); /* own rows may be overwritten */
  T* to = out + (span[0] + tile.y + first) * stride + (blockIdx.x * HEADS + row / (ROWS / HEADS)) * D;
  storeRows(r, 1.0f / sum[0], 1.0f / sum[1], own, row, to, stride, rows - first);
}
`;
