// Random numbers in runs: words of the generator go to a buffer in the first cache and are converted to values from
// there.
#include <vesta/core/cpu/random.h>

#include <vesta/core/base/philox.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

constexpr int64_t kBlocks = 64;       // blocks of a buffer
constexpr int64_t kBuffer = 4 * kBlocks;  // words of a buffer

/// Writes words 4 * block to 4 * (block + kBlocks) - 1 of the stream.
VESTA_INLINE void fill_words(RandomStream s, uint64_t block, uint32_t* out) {
  uint32_t words[4][kBlocks];
  for (int64_t b = 0; b < kBlocks; ++b) {
    const Philox4 r = philox_block(s.seed, s.offset, block + uint64_t(b));
    words[0][b] = r.word[0], words[1][b] = r.word[1], words[2][b] = r.word[2], words[3][b] = r.word[3];
  }
  for (int64_t b = 0; b < kBlocks; ++b) {
    for (int64_t k = 0; k < 4; ++k) out[4 * b + k] = words[k][b];
  }
}

/// Calls f(i, words + j) for each element i of the run; element `first + i` has `per` words.
template <int per, class F>
VESTA_INLINE void for_words(const RandomRun& r, F f) {
  alignas(64) uint32_t words[kBuffer];
  constexpr int64_t kCount = kBuffer / per;
  for (int64_t done = 0; done < r.n; done += kCount) {
    fill_words(r.stream, uint64_t(r.first + done) * per / 4, words);
    const int64_t n = r.n - done < kCount ? r.n - done : kCount;
    for (int64_t i = 0; i < n; ++i) f(done + i, words + i * per);
  }
}

/// Calls f(i, number i) with uniform or normal numbers computed in C.
template <class C, bool Normal, class F>
VESTA_INLINE void for_numbers(const RandomRun& r, F f) {
  alignas(64) C buffer[kBuffer];
  for (int64_t done = 0; done < r.n; done += kBuffer) {
    const int64_t n = r.n - done < kBuffer ? r.n - done : kBuffer;
    random_fill<C, Normal>(r.stream.seed, r.stream.offset, r.first + done, n, buffer);
    for (int64_t i = 0; i < n; ++i) f(done + i, buffer[i]);
  }
}

template <class T>
void uniform(const RandomRun& r) {
  using C = compute_t<T>;
  T* out = reinterpret_cast<T*>(r.out);
  const C from = C(r.a), range = C(r.b - r.a), below = C(r.below);
  // As many random bits as the type has digits, so that rounding does not favour the upper end.
  constexpr int digits = sizeof(T) == 2 ? (std::is_same_v<T, Half> ? 11 : 8) : 0;
  for_numbers<C, false>(r, [=](int64_t i, C u) __attribute__((always_inline)) {
    if constexpr (digits > 0) u = C(int32_t(u * C(1 << digits))) * C(1.0 / (1 << digits));
    const C v = from + u * range;
    out[i] = T(v < below ? v : below);
  });
}

template <class T>
void normal(const RandomRun& r) {
  using C = compute_t<T>;
  T* out = reinterpret_cast<T*>(r.out);
  const C mean = C(r.a), std = C(r.b);
  for_numbers<C, true>(r, [=](int64_t i, C z) __attribute__((always_inline)) { out[i] = T(mean + z * std); });
}

template <class T>
void integers(const RandomRun& r) {
  T* out = reinterpret_cast<T*>(r.out);
  for_words<2>(r, [&](int64_t i, const uint32_t* w) __attribute__((always_inline)) {
    // The high half of a product: each value has a probability of 1 / range within 2^-64.
    const uint64_t bits = philox_join(w[0], w[1]);
    const uint64_t k = r.range ? uint64_t((unsigned __int128)(bits)*r.range >> 64) : bits;
    const int64_t v = int64_t(uint64_t(r.from) + k);
    if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>) out[i] = T(float(v));
    else out[i] = T(v);
  });
}

template <class T>
void bernoulli(const RandomRun& r) {
  T* out = reinterpret_cast<T*>(r.out);
  const uint32_t last = last_event(r.a);
  for_words<1>(r,
               [=](int64_t i, const uint32_t* w) __attribute__((always_inline)) { out[i] = *w <= last ? T(1) : T(0); });
}

template <class T>
void bernoulli_of(const RandomRun& r) {
  T* out = reinterpret_cast<T*>(r.out);
  const T* p = reinterpret_cast<const T*>(r.in);
  for_words<1>(r, [=](int64_t i, const uint32_t* w) __attribute__((always_inline)) {
    out[i] = double(*w) < double(compute_t<T>(p[i])) * 0x1p32 ? T(1) : T(0);
  });
}

template <class T>
void dropout(const RandomRun& r) {
  using C = compute_t<T>;
  T* out = reinterpret_cast<T*>(r.out);
  const T* in = reinterpret_cast<const T*>(r.in);
  bool* mask = r.mask;
  const C scale = C(r.b);
  const uint32_t last = last_event(r.a);
  for_words<1>(r, [=](int64_t i, const uint32_t* w) __attribute__((always_inline)) {
    mask[i] = *w <= last;
    out[i] = *w <= last ? T(C(in[i]) * scale) : T(C(0));
  });
}

template <class T>
void enter(RandomKernels& k) {
  if constexpr (is_float(dtype_of<T>)) {
    k.uniform = &uniform<T>;
    k.normal = &normal<T>;
    k.bernoulli_of = &bernoulli_of<T>;
    k.dropout = &dropout<T>;
  }
  if constexpr (!is_complex(dtype_of<T>)) {
    k.integers = &integers<T>;
    k.bernoulli = &bernoulli<T>;
  }
}

}  // namespace

void register_random(RandomKernels (&table)[kNumDTypes]) {
#define VESTA_X(name, type, text) enter<type>(table[int(DType::name)]);
  VESTA_DTYPES(VESTA_X)
#undef VESTA_X
}

}  // namespace vesta::cpu::VESTA_ISA_NS
