// The bf16 tensor core step that kernels/mma.ts uses, emulated, and what else those kernels need.
inline float halfOf(unsigned pair, int i) { return __uint_as_float(i == 0 ? pair << 16 : pair & 0xffff0000u); }

inline void mma(float* c, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  struct Shown { unsigned a[4], b[2]; };
  const unsigned thread = emulator::now->thread, warp = thread & ~31u, lane = thread & 31;
  emulator::shown<Shown>(thread) = {{a0, a1, a2, a3}, {b0, b1}};
  emulator::waitWarp();
  for (int i = 0; i < 4; i++) {
    const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    for (int k = 0; k < 16; k++) {
      const float a = halfOf(emulator::shown<Shown>(warp + row % 8 * 4 + k % 8 / 2).a[row / 8 + k / 8 * 2], k & 1);
      c[i] += a * halfOf(emulator::shown<Shown>(warp + column * 4 + k % 8 / 2).b[k / 8], k & 1);
    }
  }
  emulator::waitWarp();
}

inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long both = x | (unsigned long long)y << 32;
  unsigned z = 0;
  for (int i = 0; i < 4; i++) z |= (unsigned)(both >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return z;
}

inline void copy16(void* to, const void* from, bool there) {
  if ((size_t)to % 16 != 0 || (there && (size_t)from % 16 != 0)) abort();
  if (there) memcpy(to, from, 16);
  else memset(to, 0, 16);
}
inline void commit() {}
template <int N> void waitForCopies() {}
template <typename V> V __ldcg(const V* p) { return *p; }
inline void __threadfence() {}
