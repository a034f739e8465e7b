// Attention of the next tokens by the emulated kernel and by plain sums in double; prints the relative errors as JSON. Compiled with
// NEXT (a file of kernel source), NAME (the kernel), HEADS_ALL and KV_HEADS; reads a batch from stdin, each table as its length and its
// numbers: spans, ranges, work; then the numbers a KV cache has, the tiles, how many blocks
// each may have, and whether there is a bias.
#include "cuda.h"
#define EMULATED_MMA "mma.h"
namespace kernel {
#include NEXT
}

using Doubles = std::vector<double>;

double valueOf(unsigned short x) { return __uint_as_float((unsigned)x << 16); }
unsigned short rounded(double x) {
  const unsigned bits = __float_as_uint((float)x);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
double random01() {
  static unsigned long long state = 88172645463325252ull;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (double)(state >> 11) / 9007199254740992.0;
}
double normal() { return sqrt(-2 * log(random01() + 1e-18)) * cos(6.283185307179586 * random01()); }
int word() {
  int x;
  if (scanf("%d", &x) != 1) exit(1);
  return x;
}
std::vector<int> table() {
  std::vector<int> words(word());
  for (int& x : words) x = word();
  return words;
}

constexpr int d = D, H = HEADS_ALL, G = KV_HEADS, width = H + 2 * G;

/* A head with its bias, norm and position, rounded. */
Doubles rotated(const unsigned short* from, const float* bias, const std::vector<float>& scale, int position) {
  Doubles x(d);
  double squares = 0;
  for (int i = 0; i < d; i++) x[i] = valueOf(from[i]) + bias[i];
  for (int i = 0; i < d; i++) squares += x[i] * x[i];
  for (int i = 0; i < d; i++) x[i] = x[i] / sqrt(squares / d + 1e-6) * scale[i];
  for (int i = 0; i < d / 2; i++) {
    const double angle = position * pow(1000, -2.0 * i / d), a = x[i], b = x[i + d / 2];
    x[i] = a * cos(angle) - b * sin(angle);
    x[i + d / 2] = b * cos(angle) + a * sin(angle);
  }
  for (double& y : x) y = valueOf(rounded(y));
  return x;
}

int main() {
  const std::vector<int> spans = table(), ranges = table(), work = table();
  const int stored = word(), tiles = word(), splits = word(), hasBias = word(), rows = (int)spans.size() / 4 - 1;
  std::vector<unsigned short> qkv(rows * width * d), kvCache(stored), out(rows * H * d, 0x7fff);
  for (auto& x : qkv) x = rounded(normal());
  for (auto& x : kvCache) x = rounded(normal());
  std::vector<float> qScale(d), kScale(d), bias(width * d), cosSin;
  for (float& x : qScale) x = 1 + 0.3f * normal();
  for (float& x : kScale) x = 1 + 0.3f * normal();
  for (float& x : bias) x = hasBias ? normal() : 0;
  std::vector<int> positions(rows);
  int longest = 0;
  for (int t = 0; t < rows; t++) longest = max(longest, positions[t] = spans[4 * t + 2]);
  for (int p = 0; p <= longest; p++)
    for (int i = 0; i < d; i++) {
      const double angle = p * pow(1000, -2.0 * (i % (d / 2)) / d);
      cosSin.push_back(i < d / 2 ? cos(angle) : sin(angle));
    }
  /* Rows that are the same have the same q, k and v. */
  for (int t = 0; t < rows; t++)
    for (int s = 0; s < t; s++)
      if (ranges[3 * (spans[4 * s + 7] - 1)] == ranges[3 * (spans[4 * t + 7] - 1)])
        std::copy_n(&qkv[s * width * d], width * d, &qkv[t * width * d]);

  Doubles want(rows * H * d), newKeys;
  std::vector<size_t> newPlaces;
  for (int t = 0; t < rows; t++) {
    for (int h = 0; h < H; h++) {
      const int kv = h / (H / G), last = spans[4 * t + 7] - 1;
      const Doubles q = rotated(&qkv[(t * width + h) * d], &bias[h * d], qScale, positions[t]);
      const Doubles k = rotated(&qkv[(t * width + H + kv) * d], &bias[(H + kv) * d], kScale, positions[t]);
      Doubles scores, sums(d);
      std::vector<std::pair<const unsigned short*, const unsigned short*>> context;
      for (int range = spans[4 * t + 3]; range <= last; range++) {
        const int cap = ranges[3 * range + 1], count = ranges[3 * range + 2] - (range == last);
        const unsigned short* block = &kvCache[ranges[3 * range] + 2 * kv * cap * d];
        for (int i = 0; i < count; i++) context.push_back({block + i * d, block + (cap + i) * d});
        if (range == last) newPlaces.push_back(block + count * d - kvCache.data());
      }
      double top = -1e300, weight = 0;
      for (size_t j = 0; j <= context.size(); j++) {
        double dot = 0;
        for (int i = 0; i < d; i++) dot += q[i] * (j == context.size() ? k[i] : valueOf(context[j].first[i]));
        scores.push_back(dot / sqrt((double)d));
        top = max(top, scores.back());
      }
      for (double& x : scores) weight += x = exp(x - top);
      for (size_t j = 0; j <= context.size(); j++)
        for (int i = 0; i < d; i++)
          want[(t * H + h) * d + i] += scores[j] / weight * (j == context.size() ? valueOf(qkv[(t * width + H + G + kv) * d + i]) + bias[(H + G + kv) * d + i] : valueOf(context[j].second[i]));
      newKeys.insert(newKeys.end(), k.begin(), k.end());
    }
  }
  /* Rows that are copies of an earlier one are ignored. */
  for (int t = 0; t < rows; t++)
    for (int s = 0; s < t; s++)
      if (ranges[3 * (spans[4 * s + 7] - 1)] == ranges[3 * (spans[4 * t + 7] - 1)]) std::fill_n(&want[t * H * d], H * d, 0.0);
  for (size_t at : newPlaces) std::fill_n(&kvCache[at], d, 0x7fff); /* NaN until the kernel writes it */

  std::vector<float> partials((size_t)tiles * splits * G * 16 * (d + 4), NAN);
  std::vector<int> counters(tiles * G);
  const float scale = (float)(1 / sqrt((double)d));
  emulator::launch({G, (unsigned)(tiles * splits), 1}, 32 * WARPS, [&] {
    kernel::NAME((const kernel::bf16*)qkv.data(), (kernel::bf16*)kvCache.data(), (kernel::bf16*)out.data(), partials.data(), counters.data(), work.data(), ranges.data(), positions.data(), cosSin.data(), qScale.data(), kScale.data(), hasBias ? bias.data() : 0, H, G, splits, scale, 1e-6f);
  });

  double wrong = 0, size = 0, wrongKeys = 0;
  for (size_t i = 0; i < want.size(); i++) {
    wrong += pow(valueOf(out[i]) - want[i], 2);
    size += want[i] * want[i];
  }
  for (size_t i = 0; i < newPlaces.size(); i++)
    for (int j = 0; j < d; j++) wrongKeys += pow(valueOf(kvCache[newPlaces[i] + j]) - newKeys[i * d + j], 2) / newKeys.size();
  for (int counter : counters) wrongKeys += counter; /* reset to 0 */
  printf("{\"out\": %g, \"keys\": %g}\n", sqrt(wrong / size), sqrt(wrongKeys));
}
