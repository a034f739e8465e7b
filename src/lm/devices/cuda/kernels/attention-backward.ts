// Attention backward in two kernels. Each writes only its own outputs, so sums have a fixed order and need no atomics:
// one computes dq in blocks of queries that loop over their context; the other computes dk and dv in blocks of keys
// that loop over the queries that see them.
//
// dqkv [tokens, heads + 2·kvHeads, D]: all three parts are written, none is accumulated. dOut and out have the shape of
// q; dots, float [tokens, heads], is Σ out · dOut and computed first. The layout must consist of whole spans, as in
// training: nothing is cached, and ancestors are seen to their end.

export const backwardKernels = (suffix: string): string => `
/* One warp per row and head. */
extern "C" __global__ void __launch_bounds__(256) attention_dots_${suffix}(const T* out, const T* dOut, float* dots, int count) {
  const int at = blockIdx.x * 8 + (threadIdx.x >> 5);
  if (at >= count) return;
  float sum = 0.0f;
  for (int i = LANE * 8; i < D; i += 256) {
    float a[8], b[8];
    load8(out + (long long)at * D + i, a);
    load8(dOut + (long long)at * D + i, b);
    for (int k = 0; k < 8; k++) sum += a[k] * b[k];
  }
  sum = warpSum(sum);
  if (LANE == 0) dots[at] = sum;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) attention_queries_back_${suffix}(
    const T* q, const T* kvCache, const T* dOut, const float* lse, const float* dots, T* dqkv, const int* spans, const int* ranges, const int2* tiles,
    int heads, int kvHeads, float scale) {
  extern __shared__ __align__(1024) char shared[];
  T* own = (T*)shared;
  T* ownGrad = own + TILE_ELEMENTS(ROWS);
  T* stream = ownGrad + TILE_ELEMENTS(ROWS);
  const int2 tile = tiles[blockIdx.y];
  if (tile.x < 0) return;
  clearShared(shared, (2 * TILE_ELEMENTS(ROWS) + STAGES * 2 * TILE_ELEMENTS(TILE)) * (int)sizeof(T));
  const int* span = spans + 4 * tile.x;
  const int rows = min(ROWS / HEADS, span[1] - tile.y);
  const int position = span[2] + tile.y;
  const int limit = position + rows;
  const int kv = blockIdx.x * HEADS / (heads / kvHeads);
  const long long stride = (long long)heads * D;
  const long long corner = (span[0] + tile.y) * stride + blockIdx.x * HEADS * D;
  for (int i = threadIdx.x; i < ROWS * PIECES; i += THREADS) {
    const int row = i / PIECES, column = i % PIECES * (16 / (int)sizeof(T));
    const int head = row / (ROWS / HEADS), at = row % (ROWS / HEADS);
    const long long from = at < rows ? corner + at * stride + head * D + column : 0;
    copy16(own + tileOffset<ROWS>(row, column), q + from, at < rows);
    copy16(ownGrad + tileOffset<ROWS>(row, column), dOut + from, at < rows);
  }
  Pipe pipe(stream + STAGES * 2 * TILE_ELEMENTS(TILE));
  Context context(ranges, span[3]);
#pragma unroll
  for (int ahead = 0; ahead < AHEAD; ahead++) {
    T* to = stream + ahead * 2 * TILE_ELEMENTS(TILE);
    if (ahead * TILE < limit) loadContext(to, to + TILE_ELEMENTS(TILE), kvCache, context, kv, ahead * TILE, limit);
    commit();
  }

  const int row = WARP * 16;
  const int first = row % (ROWS / HEADS);
  const int unit = first & ~(UNIT - 1);
  const int head = blockIdx.x * HEADS + row / (ROWS / HEADS);
  const int upper = position + first + (LANE >> 2);
  const float factor = scale * LOG2E;
  float shift[2], dot[2];
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int at = first + (LANE >> 2) + 8 * half;
    const long long where = (long long)(span[0] + tile.y + at) * heads + head;
    shift[half] = at < rows ? lse[where] * LOG2E : 0.0f;
    dot[half] = at < rows ? dots[where] : 0.0f;
  }
  float r[NC][4];
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
    if (j < position + unit + UNIT && unit < rows) {
      float s[TILE / 8][4], g[TILE / 8][4];
      scores(s, own, row, keys);
      scores(g, ownGrad, row, keys + TILE_ELEMENTS(TILE));
      loadAhead(); /* while the matmuls run */
      settle<1>(s);
      const bool edge = j + TILE > position + first + 1;
#pragma unroll
      for (int n = 0; n < TILE / 8; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
          s[n][i] = exp2Fast(s[n][i] * factor - shift[i >> 1]);
          if (edge && j + n * 8 + 2 * (LANE & 3) + (i & 1) > upper + 8 * (i >> 1)) s[n][i] = 0.0f;
        }
      }
      settle<0>(g);
#pragma unroll
      for (int n = 0; n < TILE / 8; n++) {
#pragma unroll
        for (int i = 0; i < 4; i++) s[n][i] *= g[n][i] - dot[i >> 1];
      }
      gather(r, s, keys);
      settle<0>(r);
    } else {
      loadAhead();
    }
    pipe.done(number);
    if (STAGES == 1) {
      __syncthreads();
      if (j + TILE < limit) loadContext(stream, stream + TILE_ELEMENTS(TILE), kvCache, context, kv, j + TILE, limit);
      commit();
    }
  }
  __syncthreads(); /* own rows may be overwritten */
  const long long wide = (long long)(heads + 2 * kvHeads) * D;
  T* to = dqkv + (span[0] + tile.y + first) * wide + head * D;
  storeRows(r, scale, scale, own, row, to, wide, rows - first);
}

/* Rows of q that see a span from its token \`offset\` on: the span's own, then those of every descendant. */
struct QueryRows {
  const int *spans, *next, *owner;
  int range, begin, end, row;
  __device__ __forceinline__ QueryRows(const int* s, const int* n, const int* o, int span, int offset)
      : spans(s), next(n), owner(o), range(s[4 * span + 7] - 1), begin(0), end(s[4 * span + 1] - offset), row(s[4 * span] + offset) {}
  __device__ __forceinline__ int rowOf(int i) {
    while (i >= end) {
      range = next[range];
      const int* span = spans + 4 * owner[range];
      begin = end;
      end += span[1];
      row = span[0];
    }
    return row + i - begin;
  }
};

/* Loads rows first … first + TILE of them into tiles, with their log-sum-exps and dots; zeros from limit on, which add nothing. */
__device__ __forceinline__ void loadQueries(T* queries, T* grads, float* lses, float* dotted, const T* q, const T* dOut, const float* lse,
    const float* dots, QueryRows& queryRows, int heads, int head, int first, int limit) {
#pragma unroll
  for (int step = 0; step < (TILE * PIECES + THREADS - 1) / THREADS; step++) {
    const int i = step * THREADS + threadIdx.x;
    if (TILE * PIECES % THREADS != 0 && i >= TILE * PIECES) break;
    const int row = i / PIECES, column = i % PIECES * (16 / (int)sizeof(T));
    const bool there = first + row < limit;
    const long long at = there ? (long long)queryRows.rowOf(first + row) * heads + head : 0;
    copy16(queries + tileOffset<TILE>(row, column), q + at * D + column, there);
    copy16(grads + tileOffset<TILE>(row, column), dOut + at * D + column, there);
    if (column == 0) {
      copy4(lses + row, lse + at, there);
      copy4(dotted + row, dots + at, there);
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) attention_keys_back_${suffix}(
    const T* q, const T* kvCache, const T* dOut, const float* lse, const float* dots, T* dqkv, const int* spans, const int* ranges, const int2* tiles,
    const int* next, const int* owner, int heads, int kvHeads, float scale) {
  extern __shared__ __align__(1024) char shared[];
  T* own = (T*)shared; /* keys, then values */
  T* ownValues = own + TILE_ELEMENTS(ROWS);
  T* stream = ownValues + TILE_ELEMENTS(ROWS); /* STAGES × (q, dOut) */
  float* sums = (float*)(stream + STAGES * 2 * TILE_ELEMENTS(TILE)); /* STAGES × (lse, dots) */
  const int2 tile = tiles[blockIdx.y];
  if (tile.x < 0) return;
  clearShared(shared, (2 * TILE_ELEMENTS(ROWS) + STAGES * 2 * TILE_ELEMENTS(TILE)) * (int)sizeof(T));
  const int* span = spans + 4 * tile.x;
  const int keys = min(ROWS, span[1] - tile.y);
  const int kv = blockIdx.x, group = heads / kvHeads;
  const int mine = span[7] - 1; /* the span's own range is its last */
  const int cap = ranges[3 * mine + 1];
  const T* block = kvCache + ranges[3 * mine] + ((long long)kv * 2 * cap + tile.y) * D;
  for (int i = threadIdx.x; i < ROWS * PIECES; i += THREADS) {
    const int row = i / PIECES, column = i % PIECES * (16 / (int)sizeof(T));
    const T* from = row < keys ? block + row * D + column : kvCache;
    copy16(own + tileOffset<ROWS>(row, column), from, row < keys);
    copy16(ownValues + tileOffset<ROWS>(row, column), row < keys ? from + (long long)cap * D : kvCache, row < keys);
  }
  const int ownRows = span[1] - tile.y;
  int limit = ownRows;
  for (int r = next[mine]; r >= 0; r = next[r]) limit += spans[4 * owner[r] + 1];
  const int perHead = (limit + TILE - 1) / TILE, total = perHead * group;
  Pipe pipe(sums + STAGES * 2 * TILE);
  QueryRows queryRows(spans, next, owner, tile.x, tile.y);
  int coming = 0, comingHead = kv * group; /* the next tile to load */
  const auto load = [&](int stage) {
    T* to = stream + stage * 2 * TILE_ELEMENTS(TILE);
    float* with = sums + stage * 2 * TILE;
    loadQueries(to, to + TILE_ELEMENTS(TILE), with, with + TILE, q, dOut, lse, dots, queryRows, heads, comingHead, coming, limit);
    coming += TILE;
    if (coming < limit) return;
    coming = 0;
    comingHead++;
    queryRows = QueryRows(spans, next, owner, tile.x, tile.y);
  };
#pragma unroll
  for (int ahead = 0; ahead < AHEAD; ahead++) {
    if (ahead < total) load(ahead);
    commit();
  }

  const int row = WARP * 16;
  const int unit = row & ~(UNIT - 1);
  const int upper = row + (LANE >> 2); /* this lane's keys, counted in the tile */
  const float factor = scale * LOG2E;
  float dk[NC][4], dv[NC][4];
  clear(dk);
  clear(dv);
  pipe.start();
  for (int number = 0, j = 0; number < total; number++) {
    const int stage = number % STAGES;
    const T* queries = stream + stage * 2 * TILE_ELEMENTS(TILE);
    const T* grads = queries + TILE_ELEMENTS(TILE);
    const float* lses = sums + stage * 2 * TILE;
    const auto loadAhead = [&] {
      if (STAGES == 1) return;
      pipe.write(number);
      if (number + AHEAD < total) load((number + AHEAD) % STAGES);
      commit();
    };
    pipe.read(number);
    /* Queries j … j + TILE, if all of the span itself, may come before every key of the unit. */
    if (unit < keys && !(j + TILE <= unit && j + TILE <= ownRows)) {
      float s[TILE / 8][4], g[TILE / 8][4];
      scores(s, own, row, queries);
      scores(g, ownValues, row, grads);
      loadAhead();
      settle<1>(s);
      const bool edge = j < row + 16 && j < ownRows;
#pragma unroll
      for (int n = 0; n < TILE / 8; n++) {
        const int at = n * 8 + 2 * (LANE & 3);
        const float2 shift = *(const float2*)(lses + at);
#pragma unroll
        for (int i = 0; i < 4; i++) {
          s[n][i] = exp2Fast(s[n][i] * factor - (i & 1 ? shift.y : shift.x) * LOG2E);
          const int query = j + at + (i & 1);
          if (edge && query < ownRows && query < upper + 8 * (i >> 1)) s[n][i] = 0.0f;
        }
      }
      gather(dv, s, grads);
      settle<1>(g);
#pragma unroll
      for (int n = 0; n < TILE / 8; n++) {
        const float2 dot = *(const float2*)(lses + TILE + n * 8 + 2 * (LANE & 3));
#pragma unroll
        for (int i = 0; i < 4; i++) g[n][i] = s[n][i] * (g[n][i] - (i & 1 ? dot.y : dot.x));
      }
      gather(dk, g, queries);
      settle<0>(dv);
      settle<0>(dk);
    } else {
      loadAhead();
    }
    pipe.done(number);
    if (STAGES == 1) {
      __syncthreads();
      if (number + 1 < total) load(0);
      commit();
    }
    j = j + TILE < limit ? j + TILE : 0;
  }
  __syncthreads();
  const long long wide = (long long)(heads + 2 * kvHeads) * D;
  T* to = dqkv + (span[0] + tile.y + row) * wide;
  storeRows(dk, scale, scale, own, row, to + (heads + kv) * D, wide, keys - row);
  storeRows(dv, 1.0f, 1.0f, ownValues, row, to + (heads + kvHeads + kv) * D, wide, keys - row);
}
`;
