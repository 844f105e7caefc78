// Vectors of the product and convolution kernels: the same small set of operations for every instruction set. Include
// it only in files of kernels/: everything here lives in the namespace of one instruction set.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <cstdint>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

#if defined(VESTA_ISA_avx512)

// 12 rows times 2 vectors: 24 of the 32 registers hold sums.
struct VecF32 {
  using T = float;
  using V = __m512;
  using Mask = __mmask16;
  static constexpr int kWidth = 16, kRows = 12;
  static V zero() { return _mm512_setzero_ps(); }
  static Mask mask(int n) { return static_cast<Mask>((1u << n) - 1); }
  static V load(const T* p) { return _mm512_loadu_ps(p); }
  static V load(const T* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
  static void store(T* p, V v) { _mm512_storeu_ps(p, v); }
  static void store(T* p, V v, Mask m) { _mm512_mask_storeu_ps(p, m, v); }
  static V broadcast(const T* p) { return _mm512_set1_ps(*p); }
  static V add(V a, V b) { return _mm512_add_ps(a, b); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
};

struct VecF64 {
  using T = double;
  using V = __m512d;
  using Mask = __mmask8;
  static constexpr int kWidth = 8, kRows = 12;
  static V zero() { return _mm512_setzero_pd(); }
  static Mask mask(int n) { return static_cast<Mask>((1u << n) - 1); }
  static V load(const T* p) { return _mm512_loadu_pd(p); }
  static V load(const T* p, Mask m) { return _mm512_maskz_loadu_pd(m, p); }
  static void store(T* p, V v) { _mm512_storeu_pd(p, v); }
  static void store(T* p, V v, Mask m) { _mm512_mask_storeu_pd(p, m, v); }
  static V broadcast(const T* p) { return _mm512_set1_pd(*p); }
  static V add(V a, V b) { return _mm512_add_pd(a, b); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_pd(a, b, c); }
};

#elif defined(VESTA_ISA_avx2)

// 6 rows times 2 vectors: 12 of the 16 registers hold sums.
alignas(64) constexpr std::int32_t kOnes32[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
alignas(64) constexpr std::int64_t kOnes64[8] = {-1, -1, -1, -1, 0, 0, 0, 0};

struct VecF32 {
  using T = float;
  using V = __m256;
  using Mask = __m256i;
  static constexpr int kWidth = 8, kRows = 6;
  static V zero() { return _mm256_setzero_ps(); }
  static Mask mask(int n) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kOnes32 + 8 - n)); }
  static V load(const T* p) { return _mm256_loadu_ps(p); }
  static V load(const T* p, Mask m) { return _mm256_maskload_ps(p, m); }
  static void store(T* p, V v) { _mm256_storeu_ps(p, v); }
  static void store(T* p, V v, Mask m) { _mm256_maskstore_ps(p, m, v); }
  static V broadcast(const T* p) { return _mm256_broadcast_ss(p); }
  static V add(V a, V b) { return _mm256_add_ps(a, b); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
};

struct VecF64 {
  using T = double;
  using V = __m256d;
  using Mask = __m256i;
  static constexpr int kWidth = 4, kRows = 6;
  static V zero() { return _mm256_setzero_pd(); }
  static Mask mask(int n) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kOnes64 + 4 - n)); }
  static V load(const T* p) { return _mm256_loadu_pd(p); }
  static V load(const T* p, Mask m) { return _mm256_maskload_pd(p, m); }
  static void store(T* p, V v) { _mm256_storeu_pd(p, v); }
  static void store(T* p, V v, Mask m) { _mm256_maskstore_pd(p, m, v); }
  static V broadcast(const T* p) { return _mm256_broadcast_sd(p); }
  static V add(V a, V b) { return _mm256_add_pd(a, b); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_pd(a, b, c); }
};

#elif defined(__SSE2__)

// 4 rows times 2 vectors. SSE has no masked load or store: the columns of a tail are handled one by one.
template <class X>
struct Tail {
  using T = typename X::T;
  static typename X::V load(const T* p, int n) {
    alignas(16) T part[X::kWidth] = {};
    for (int i = 0; i < n; ++i) part[i] = p[i];
    return X::load(part);
  }
  static void store(T* p, typename X::V v, int n) {
    alignas(16) T part[X::kWidth];
    X::store(part, v);
    for (int i = 0; i < n; ++i) p[i] = part[i];
  }
};

struct VecF32 {
  using T = float;
  using V = __m128;
  using Mask = int;
  static constexpr int kWidth = 4, kRows = 4;
  static V zero() { return _mm_setzero_ps(); }
  static Mask mask(int n) { return n; }
  static V load(const T* p) { return _mm_loadu_ps(p); }
  static V load(const T* p, Mask n) { return Tail<VecF32>::load(p, n); }
  static void store(T* p, V v) { _mm_storeu_ps(p, v); }
  static void store(T* p, V v, Mask n) { Tail<VecF32>::store(p, v, n); }
  static V broadcast(const T* p) { return _mm_set1_ps(*p); }
  static V add(V a, V b) { return _mm_add_ps(a, b); }
  static V fma(V a, V b, V c) { return _mm_add_ps(_mm_mul_ps(a, b), c); }
};

struct VecF64 {
  using T = double;
  using V = __m128d;
  using Mask = int;
  static constexpr int kWidth = 2, kRows = 4;
  static V zero() { return _mm_setzero_pd(); }
  static Mask mask(int n) { return n; }
  static V load(const T* p) { return _mm_loadu_pd(p); }
  static V load(const T* p, Mask n) { return Tail<VecF64>::load(p, n); }
  static void store(T* p, V v) { _mm_storeu_pd(p, v); }
  static void store(T* p, V v, Mask n) { Tail<VecF64>::store(p, v, n); }
  static V broadcast(const T* p) { return _mm_set1_pd(*p); }
  static V add(V a, V b) { return _mm_add_pd(a, b); }
  static V fma(V a, V b, V c) { return _mm_add_pd(_mm_mul_pd(a, b), c); }
};

#else
#error "gemm_block: expected an x86-64 compiler. Write VecF32 and VecF64 for this machine here."
#endif

// Writes the transpose of a 4 x 4 (float) corner read from four lines; doubles go one by one.
inline void transpose4(const float* in, std::int64_t in_row, float* out, std::int64_t out_row) {
  __m128 r0 = _mm_loadu_ps(in), r1 = _mm_loadu_ps(in + in_row), r2 = _mm_loadu_ps(in + 2 * in_row),
         r3 = _mm_loadu_ps(in + 3 * in_row);
  _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
  _mm_storeu_ps(out, r0);
  _mm_storeu_ps(out + out_row, r1);
  _mm_storeu_ps(out + 2 * out_row, r2);
  _mm_storeu_ps(out + 3 * out_row, r3);
}

inline void transpose4(const double* in, std::int64_t in_row, double* out, std::int64_t out_row) {
  for (int half = 0; half < 4; half += 2) {
    const double* const top = in + half * in_row;
    for (int k = 0; k < 4; k += 2) {
      const __m128d r0 = _mm_loadu_pd(top + k), r1 = _mm_loadu_pd(top + in_row + k);
      _mm_storeu_pd(out + k * out_row + half, _mm_unpacklo_pd(r0, r1));
      _mm_storeu_pd(out + (k + 1) * out_row + half, _mm_unpackhi_pd(r0, r1));
    }
  }
}

// Packs `lines` lines of length k (element (l, k) at in[l * line + k * step]) k-major in groups of kGroup lines. The
// free part of a smaller last group is not written: tiles of fewer rows and masked loads never read it.
template <class T, int kGroup>
void pack(std::int64_t lines, std::int64_t k_end, const T* in, std::int64_t line, std::int64_t step, T* out) {
  if (line == 1) {  // k outside: whole rows are read in one go
    const std::int64_t full = lines / kGroup * kGroup;
    for (std::int64_t k = 0; k < k_end; ++k) {
      for (std::int64_t l = 0; l < full; l += kGroup) {
        __builtin_memcpy(out + l * k_end + k * kGroup, in + k * step + l, kGroup * sizeof(T));
      }
    }
    lines -= full;
    in += full;
    out += full * k_end;
  }
  for (std::int64_t l0 = 0; l0 < lines; l0 += kGroup, out += kGroup * k_end) {
    const int count = static_cast<int>(lines - l0 < kGroup ? lines - l0 : kGroup);
    const T* const group = in + l0 * line;
    int l = 0;
    if (step == 1) {
      for (; l + 4 <= count; l += 4) {
        std::int64_t k = 0;
        for (; k + 4 <= k_end; k += 4) transpose4(group + l * line + k, line, out + k * kGroup + l, kGroup);
        for (; k < k_end; ++k) {
          for (int r = 0; r < 4; ++r) out[k * kGroup + l + r] = group[(l + r) * line + k];
        }
      }
    }
    for (; l < count; ++l) {
      for (std::int64_t k = 0; k < k_end; ++k) out[k * kGroup + l] = group[l * line + k * step];
    }
  }
}

}  // namespace
}  // namespace vesta::cpu::VESTA_ISA_NS
