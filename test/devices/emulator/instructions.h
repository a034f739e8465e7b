// The GPU instructions that kernels/attention-parts.ts uses, emulated. Included by the kernel's own source, after T and WAY are
// defined; tensor cores follow NVIDIA's documentation of fragments and swizzled tiles.
inline unsigned sharedAddress(const void* p) { return (unsigned)((const char*)p - shared); }

inline void copy16(void* to, const void* from, bool there) {
  if ((size_t)to % 16 != 0 || (there && (size_t)from % 16 != 0)) abort();
  if (there) memcpy(to, from, 16);
  else memset(to, 0, 16);
}
inline void copy4(float* to, const float* from, bool there) { *to = there ? *from : 0.0f; }
inline void commit() {}
template <int N> void waitFor() { __syncthreads(); }
inline float exp2Fast(float x) { return exp2f(x); }

#if WAY != WAY_FLOAT
inline float half(unsigned pair, int i) { return __uint_as_float(i == 0 ? pair << 16 : pair & 0xffff0000u); }

/* What a lane holds of A [16, 16] and B [16, 8]. */
struct Fragments {
  unsigned a[4], b[2];
  static float atA(unsigned warp, int row, int k) {
    return half(emulator::shown<Fragments>(warp + row % 8 * 4 + k % 8 / 2).a[row / 8 + k / 8 * 2], k & 1);
  }
  static float atB(unsigned warp, int k, int column) {
    return half(emulator::shown<Fragments>(warp + column * 4 + k % 8 / 2).b[k / 8], k & 1);
  }
};
#endif

#if WAY == WAY_MMA
inline void loadMatrices(unsigned (&r)[4], const T* p, bool transposed) {
  if ((size_t)p % 16 != 0) abort();
  const unsigned thread = emulator::now->thread, warp = thread & ~31u, lane = thread & 31;
  emulator::shown<const T*>(thread) = p;
  emulator::waitWarp();
  for (int matrix = 0; matrix < 4; matrix++) {
    unsigned short pair[2];
    for (unsigned i = 0; i < 2; i++) {
      const unsigned row = lane / 4, column = lane % 4 * 2 + i;
      pair[i] = emulator::shown<const T*>(warp + matrix * 8 + (transposed ? column : row))[transposed ? row : column].bits;
    }
    r[matrix] = pair[0] | (unsigned)pair[1] << 16;
  }
  emulator::waitWarp();
}
inline void ldmatrix(unsigned (&r)[4], const T* p) { loadMatrices(r, p, false); }
inline void ldmatrixTransposed(unsigned (&r)[4], const T* p) { loadMatrices(r, p, true); }

inline void mma(float (&r)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  const unsigned thread = emulator::now->thread, warp = thread & ~31u, lane = thread & 31;
  emulator::shown<Fragments>(thread) = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
  emulator::waitWarp();
  for (int i = 0; i < 4; i++) {
    for (int k = 0; k < 16; k++) r[i] += Fragments::atA(warp, lane / 4 + i / 2 * 8, k) * Fragments::atB(warp, k, lane % 4 * 2 + i % 2);
  }
  emulator::waitWarp();
}
#endif

#if WAY == WAY_WGMMA
inline unsigned long long descriptor(const T* p, unsigned panelBytes) {
  return (unsigned long long)(sharedAddress(p) >> 4) | (unsigned long long)(panelBytes >> 4) << 16 | 64ull << 32 | 1ull << 62;
}
inline void wgmmaFence() {}
inline void wgmmaCommit() {}
template <int N> void wgmmaWait() {}
template <int N> void waitOwn() {}
inline void pin(float&) {}

/* An element of a tile with 128-byte swizzle: rows of 64 along k, or transposed, with k down the rows. */
inline float tileAt(unsigned long long tile, int n, int k, bool transposed) {
  const unsigned start = (tile & 0x3fff) << 4, panel = (tile >> 16 & 0x3fff) << 4, eight = (tile >> 32 & 0x3fff) << 4;
  unsigned at = transposed ? start + n / 64 * panel + k / 8 * eight + k % 8 * 128 + n % 64 * 2 : start + n / 8 * eight + n % 8 * 128 + k * 2;
  at ^= (at >> 7 & 7) << 4;
  return __uint_as_float((unsigned)*(const unsigned short*)(shared + at) << 16);
}

template <int N, typename A> void multiplyGroup(float (&r)[N][4], A a, unsigned long long b, bool transposed, int add) {
  const unsigned lane = emulator::now->thread & 31;
  for (int n = 0; n < N; n++) {
    for (int i = 0; i < 4; i++) {
      float sum = add ? r[n][i] : 0.0f;
      for (int k = 0; k < 16; k++) sum += a(lane / 4 + i / 2 * 8, k) * tileAt(b, n * 8 + lane % 4 * 2 + i % 2, k, transposed);
      r[n][i] = sum;
    }
  }
  emulator::waitGroup();
}
template <int N> void wgmmaScores(float (&r)[N][4], unsigned long long a, unsigned long long b, int add) {
  const int row = emulator::now->thread / 32 % 4 * 16;
  emulator::waitGroup();
  multiplyGroup(r, [&](int m, int k) { return tileAt(a, row + m, k, false); }, b, false, add);
}
template <int N> void wgmmaGather(float (&r)[N][4], const unsigned (&a)[4], unsigned long long b, int add) {
  const unsigned thread = emulator::now->thread;
  emulator::shown<Fragments>(thread) = {{a[0], a[1], a[2], a[3]}, {}};
  emulator::waitGroup();
  multiplyGroup(r, [&](int m, int k) { return Fragments::atA(thread & ~31u, m, k); }, b, true, add);
}

struct Phases {
  unsigned short count, arrived;
  int phase;
};
inline void barrierInit(unsigned long long* b, int count) { *(Phases*)b = {(unsigned short)count, 0, 0}; }
inline void barrierArrive(unsigned long long* b) {
  Phases& barrier = *(Phases*)b;
  if (++barrier.arrived < barrier.count) return;
  barrier.arrived = 0;
  barrier.phase++;
}
inline void barrierWait(unsigned long long* b, int parity) {
  while ((((Phases*)b)->phase & 1) == parity) emulator::yield();
}
#endif
