// Attention, forward and backward, by the emulated kernels and by plain sums in double; prints the relative errors of each tree as JSON.
// Compiled with FORWARD, BACKWARD and PLAN (files of kernel source), SUFFIX, ELEMENT (float, or short for bf16), HEADS_ALL, KV_HEADS
// and the cut: FORWARD_QUERIES, BACKWARD_QUERIES, BACKWARD_KEYS (rows of a block), FORWARD_HEADS, BACKWARD_HEADS.
#include "cuda.h"
#define EMULATED "instructions.h"
namespace forward {
#include FORWARD
}
constexpr int headSize = D, forwardThreads = THREADS;
#include "forget.h"
namespace backward {
#include BACKWARD
}
constexpr int backwardThreads = THREADS;
namespace plan {
#include PLAN
}

#define JOIN(a, b) a##b
#define NAMED(a, b) JOIN(a, b)

using Elements = std::vector<ELEMENT>;
using Doubles = std::vector<double>;

double valueOf(float x) { return x; }
double valueOf(short x) { return __uint_as_float((unsigned)(unsigned short)x << 16); }
void round(double x, float& to) { to = (float)x; }
void round(double x, short& to) {
  const unsigned bits = __float_as_uint((float)x);
  to = (short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double random01() {
  static unsigned long long state = 88172645463325252ull;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (double)(state >> 11) / 9007199254740992.0;
}
double drawn(ELEMENT& to) {
  round(1.5 * sqrt(-2 * log(random01() + 1e-18)) * cos(6.283185307179586 * random01()), to);
  return valueOf(to);
}

struct Span { int tokens, parent; };

/* The tables of a layout, as src/lm/model/layout.ts writes them, and the rows that each token sees. */
struct Layout {
  std::vector<int> spans, ranges, rangeRows, block, cap, index;
  std::vector<std::vector<int>> contexts;
  int stored = 0;

  explicit Layout(const std::vector<Span>& nodes) {
    std::vector<int> blocks, rows;
    int row = 0;
    for (const Span& node : nodes) {
      blocks.push_back(stored);
      rows.push_back(row);
      stored += capOf(node) * 2 * KV_HEADS * headSize;
      row += node.tokens;
    }
    for (int i = 0; i < (int)nodes.size(); i++) {
      std::vector<int> path;
      for (int at = i; at >= 0; at = nodes[at].parent) path.insert(path.begin(), at);
      std::vector<int> context;
      spans.insert(spans.end(), {rows[i], nodes[i].tokens, 0, (int)rangeRows.size()});
      for (int at : path) {
        if (at == i) spans[4 * i + 2] = (int)context.size();
        ranges.insert(ranges.end(), {blocks[at], capOf(nodes[at]), nodes[at].tokens});
        rangeRows.push_back(rows[at]);
        for (int t = 0; t < nodes[at].tokens; t++) {
          context.push_back(rows[at] + t);
          if (at != i) continue;
          contexts.push_back(context);
          block.push_back(blocks[i]);
          cap.push_back(capOf(nodes[i]));
          index.push_back(t);
        }
      }
    }
    spans.insert(spans.end(), {row, 0, 0, (int)rangeRows.size()});
  }
  static int capOf(const Span& span) { return (span.tokens + 7) & ~7; }
};

double errorOf(const Doubles& got, const Doubles& wanted) {
  double wrong = 0, size = 0;
  for (size_t i = 0; i < wanted.size(); i++) {
    wrong += (got[i] - wanted[i]) * (got[i] - wanted[i]);
    size += wanted[i] * wanted[i];
  }
  return sqrt(wrong) / (sqrt(size) + 0.1 * sqrt((double)wanted.size()));
}
Doubles valuesOf(const Elements& elements) {
  Doubles values;
  for (ELEMENT x : elements) values.push_back(valueOf(x));
  return values;
}

void check(const char* name, const std::vector<Span>& nodes) {
  constexpr int d = headSize, H = HEADS_ALL, G = KV_HEADS, group = H / G, width = (H + 2 * G) * d;
  const Layout layout(nodes);
  const int T = (int)layout.contexts.size(), S = (int)nodes.size(), R = (int)layout.rangeRows.size();
  const double scale = 1 / sqrt((double)d);
  ELEMENT nan;
  round(NAN, nan);

  Elements q(T * H * d), dOut(T * H * d), kvCache(layout.stored, nan), out(T * H * d, nan), dqkv(T * width, nan);
  Doubles qs, gs, ks, vs;
  for (ELEMENT& x : q) qs.push_back(drawn(x));
  for (ELEMENT& x : dOut) gs.push_back(drawn(x));
  for (int t = 0; t < T; t++) {
    for (int i = 0; i < G * d; i++) {
      const int at = layout.block[t] + (i / d * 2 * layout.cap[t] + layout.index[t]) * d + i % d;
      ks.push_back(drawn(kvCache[at]));
      vs.push_back(drawn(kvCache[at + layout.cap[t] * d]));
    }
  }

  /* Sizes as in src/lm/devices/cuda/attention.ts. */
  const int queryTiles = T / FORWARD_QUERIES + S, backTiles = T / BACKWARD_QUERIES + S, keyTiles = T / BACKWARD_KEYS + S;
  std::vector<int2> queryTable(queryTiles), backTable(backTiles), keyTable(keyTiles);
  std::vector<int> next(R), owner(R);
  std::vector<float> lse(T * H, NAN), dots(T * H, NAN);
  const int *spans = layout.spans.data(), *ranges = layout.ranges.data(), *rangeRows = layout.rangeRows.data();
  const auto planned = [&](int size, std::vector<int2>& tiles, int keys) {
    emulator::launch({1, 1, 1}, 1024, [&] {
      plan::attention_plan(spans, ranges, rangeRows, S, size, BACKWARD_KEYS, tiles.data(), (int)tiles.size(), keyTable.data(), keys, next.data(), owner.data());
    });
  };
  planned(FORWARD_QUERIES, queryTable, 0);
  planned(BACKWARD_QUERIES, backTable, keyTiles);
  using F = const forward::T*;
  using B = const backward::T*;
  emulator::launch({H / FORWARD_HEADS, (unsigned)queryTiles, 1}, forwardThreads, [&] {
    forward::NAMED(attention_forward_, SUFFIX)((F)q.data(), (F)kvCache.data(), (forward::T*)out.data(), lse.data(), spans, ranges, queryTable.data(), H, G, (float)scale);
  });
  emulator::launch({(unsigned)(T * H + 7) / 8, 1, 1}, 256, [&] {
    backward::NAMED(attention_dots_, SUFFIX)((B)out.data(), (B)dOut.data(), dots.data(), T * H);
  });
  emulator::launch({H / BACKWARD_HEADS, (unsigned)backTiles, 1}, backwardThreads, [&] {
    backward::NAMED(attention_queries_back_, SUFFIX)((B)q.data(), (B)kvCache.data(), (B)dOut.data(), lse.data(), dots.data(), (backward::T*)dqkv.data(), spans, ranges, backTable.data(), H, G, (float)scale);
  });
  emulator::launch({G, (unsigned)keyTiles, 1}, backwardThreads, [&] {
    backward::NAMED(attention_keys_back_, SUFFIX)((B)q.data(), (B)kvCache.data(), (B)dOut.data(), lse.data(), dots.data(), (backward::T*)dqkv.data(), spans, ranges, keyTable.data(), next.data(), owner.data(), H, G, (float)scale);
  });

  Doubles outs(T * H * d), lses(T * H), back(T * width);
  for (int t = 0; t < T; t++) {
    for (int h = 0; h < H; h++) {
      const std::vector<int>& context = layout.contexts[t];
      const int n = (int)context.size(), own = (t * H + h) * d;
      Doubles p(n), dp(n);
      double top = -1e300, sum = 0, dot = 0;
      for (int j = 0; j < n; j++) {
        for (int i = 0; i < d; i++) p[j] += scale * qs[own + i] * ks[(context[j] * G + h / group) * d + i];
        top = max(top, p[j]);
      }
      for (double& x : p) sum += x = exp(x - top);
      lses[t * H + h] = top + log(sum);
      for (int j = 0; j < n; j++) {
        p[j] /= sum;
        for (int i = 0; i < d; i++) {
          const double v = vs[(context[j] * G + h / group) * d + i];
          outs[own + i] += p[j] * v;
          dp[j] += gs[own + i] * v;
        }
        dot += p[j] * dp[j];
      }
      for (int j = 0; j < n; j++) {
        const double ds = p[j] * (dp[j] - dot) * scale;
        double* key = &back[context[j] * width + (H + h / group) * d];
        for (int i = 0; i < d; i++) {
          back[t * width + h * d + i] += ds * ks[(context[j] * G + h / group) * d + i];
          key[i] += ds * qs[own + i];
          key[G * d + i] += p[j] * gs[own + i];
        }
      }
    }
  }
  printf("{\"tree\": \"%s\", \"out\": %g, \"lse\": %g, \"dqkv\": %g}\n", name, errorOf(valuesOf(out), outs),
         errorOf(Doubles(lse.begin(), lse.end()), lses), errorOf(valuesOf(dqkv), back));
}

int main() {
  check("one token", {{1, -1}});
  check("three sequences", {{5, -1}, {1, -1}, {133, -1}});
  check("a prompt and its completions", {{70, -1}, {30, 0}, {1, 0}, {66, 0}});
  check("depth three, an empty span", {{7, -1}, {5, 0}, {0, 0}, {2, 1}, {9, 1}, {64, 0}, {1, 5}, {3, 5}, {10, -1}, {34, 8}, {2, 8}});
}
