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

// 6 rows times 4 vectors: 24 of the 32 registers hold sums, and 10 loads serve 24 multiply-adds. 12 times 2, with 14
// loads, reach 95 GFLOP/s on a Sapphire Rapids core that gives these 125 (benchmarks/cpp/dnn_bench).
struct VecF32 {
  using T = float;
  using V = __m512;
  using Mask = __mmask16;
  static constexpr int kWidth = 16, kRows = 6, kPanel = 4;
  // A matrix that is not packed, times few rows: 8 rows times 3 vectors, since batches are multiples of eight.
  static constexpr int kInPlaceRows = 8, kInPlacePanel = 3;
  static constexpr bool kFreeMask = true;  // a masked load or store takes no longer than a whole one
  static V zero() { return _mm512_setzero_ps(); }
  static Mask mask(int n) { return static_cast<Mask>((1u << n) - 1); }
  static V load(const T* p) { return _mm512_loadu_ps(p); }
  static V load(const T* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
  static void store(T* p, V v) { _mm512_storeu_ps(p, v); }
  static void store(T* p, V v, Mask m) { _mm512_mask_storeu_ps(p, m, v); }
  static V broadcast(const T* p) { return _mm512_set1_ps(*p); }
  static V add(V a, V b) { return _mm512_add_ps(a, b); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  // The vector whose 128 bits number g are at `at(g)`. A masked broadcast is a blend, which leaves the units that
  // transpose alone; an insertion would be a shuffle.
  template <class At>
  static V load_lanes(const At& at) {
    V v = _mm512_castps128_ps512(_mm_loadu_ps(at(0)));
    v = _mm512_mask_broadcast_f32x4(v, 0x00f0, _mm_loadu_ps(at(1)));
    v = _mm512_mask_broadcast_f32x4(v, 0x0f00, _mm_loadu_ps(at(2)));
    return _mm512_mask_broadcast_f32x4(v, 0xf000, _mm_loadu_ps(at(3)));
  }
  // Transposes the 128 bits at one position of all vectors, as a square matrix.
  static void transpose_lanes(V (&v)[4]) {
    const auto pair = [](V a, V b) { return _mm512_castps_pd(_mm512_unpacklo_ps(a, b)); };
    const auto high_pair = [](V a, V b) { return _mm512_castps_pd(_mm512_unpackhi_ps(a, b)); };
    const __m512d a = pair(v[0], v[1]), b = high_pair(v[0], v[1]), c = pair(v[2], v[3]), d = high_pair(v[2], v[3]);
    v[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
    v[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
    v[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
    v[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
  }
};

struct VecF64 {
  using T = double;
  using V = __m512d;
  using Mask = __mmask8;
  static constexpr int kWidth = 8, kRows = 6, kPanel = 4;
  static constexpr int kInPlaceRows = 8, kInPlacePanel = 3;
  static constexpr bool kFreeMask = true;
  static V zero() { return _mm512_setzero_pd(); }
  static Mask mask(int n) { return static_cast<Mask>((1u << n) - 1); }
  static V load(const T* p) { return _mm512_loadu_pd(p); }
  static V load(const T* p, Mask m) { return _mm512_maskz_loadu_pd(m, p); }
  static void store(T* p, V v) { _mm512_storeu_pd(p, v); }
  static void store(T* p, V v, Mask m) { _mm512_mask_storeu_pd(p, m, v); }
  static V broadcast(const T* p) { return _mm512_set1_pd(*p); }
  static V add(V a, V b) { return _mm512_add_pd(a, b); }
  static V fma(V a, V b, V c) { return _mm512_fmadd_pd(a, b, c); }
  template <class At>
  static V load_lanes(const At& at) {
    V v = _mm512_castpd128_pd512(_mm_loadu_pd(at(0)));
    v = _mm512_mask_broadcast_f64x2(v, 0x0c, _mm_loadu_pd(at(1)));
    v = _mm512_mask_broadcast_f64x2(v, 0x30, _mm_loadu_pd(at(2)));
    return _mm512_mask_broadcast_f64x2(v, 0xc0, _mm_loadu_pd(at(3)));
  }
  static void transpose_lanes(V (&v)[2]) {
    const V low = _mm512_unpacklo_pd(v[0], v[1]);
    v[1] = _mm512_unpackhi_pd(v[0], v[1]);
    v[0] = low;
  }
};

#if defined(VESTA_ISA_avx512_bf16)
// A vector of float sums, or of pairs of bfloat16 that travel as floats: they are moved and multiplied, nothing else.
struct VecPairs : VecF32 {
  static constexpr int kInPlacePanel = kPanel;
  static V fma(V a, V b, V c) {
    return _mm512_dpbf16_ps(c, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};
#endif

#elif defined(VESTA_ISA_avx2)

// 6 rows times 2 vectors: 12 of the 16 registers hold sums.
alignas(64) constexpr std::int32_t kOnes32[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
alignas(64) constexpr std::int64_t kOnes64[8] = {-1, -1, -1, -1, 0, 0, 0, 0};

struct VecF32 {
  using T = float;
  using V = __m256;
  using Mask = __m256i;
  static constexpr int kWidth = 8, kRows = 6, kPanel = 2;
  static constexpr bool kFreeMask = false;
  static V zero() { return _mm256_setzero_ps(); }
  static Mask mask(int n) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kOnes32 + 8 - n)); }
  static V load(const T* p) { return _mm256_loadu_ps(p); }
  static V load(const T* p, Mask m) { return _mm256_maskload_ps(p, m); }
  static void store(T* p, V v) { _mm256_storeu_ps(p, v); }
  static void store(T* p, V v, Mask m) { _mm256_maskstore_ps(p, m, v); }
  static V broadcast(const T* p) { return _mm256_broadcast_ss(p); }
  static V add(V a, V b) { return _mm256_add_ps(a, b); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  template <class At>
  static V load_lanes(const At& at) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(at(0))), _mm_loadu_ps(at(1)), 1);
  }
  static void transpose_lanes(V (&v)[4]) {
    const auto pair = [](V a, V b) { return _mm256_castps_pd(_mm256_unpacklo_ps(a, b)); };
    const auto high_pair = [](V a, V b) { return _mm256_castps_pd(_mm256_unpackhi_ps(a, b)); };
    const __m256d a = pair(v[0], v[1]), b = high_pair(v[0], v[1]), c = pair(v[2], v[3]), d = high_pair(v[2], v[3]);
    v[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, c));
    v[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, c));
    v[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(b, d));
    v[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(b, d));
  }
};

struct VecF64 {
  using T = double;
  using V = __m256d;
  using Mask = __m256i;
  static constexpr int kWidth = 4, kRows = 6, kPanel = 2;
  static constexpr bool kFreeMask = false;
  static V zero() { return _mm256_setzero_pd(); }
  static Mask mask(int n) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kOnes64 + 4 - n)); }
  static V load(const T* p) { return _mm256_loadu_pd(p); }
  static V load(const T* p, Mask m) { return _mm256_maskload_pd(p, m); }
  static void store(T* p, V v) { _mm256_storeu_pd(p, v); }
  static void store(T* p, V v, Mask m) { _mm256_maskstore_pd(p, m, v); }
  static V broadcast(const T* p) { return _mm256_broadcast_sd(p); }
  static V add(V a, V b) { return _mm256_add_pd(a, b); }
  static V fma(V a, V b, V c) { return _mm256_fmadd_pd(a, b, c); }
  template <class At>
  static V load_lanes(const At& at) {
    return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(at(0))), _mm_loadu_pd(at(1)), 1);
  }
  static void transpose_lanes(V (&v)[2]) {
    const V low = _mm256_unpacklo_pd(v[0], v[1]);
    v[1] = _mm256_unpackhi_pd(v[0], v[1]);
    v[0] = low;
  }
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
  static constexpr int kWidth = 4, kRows = 4, kPanel = 2;
  static constexpr bool kFreeMask = false;
  static V zero() { return _mm_setzero_ps(); }
  static Mask mask(int n) { return n; }
  static V load(const T* p) { return _mm_loadu_ps(p); }
  static V load(const T* p, Mask n) { return Tail<VecF32>::load(p, n); }
  static void store(T* p, V v) { _mm_storeu_ps(p, v); }
  static void store(T* p, V v, Mask n) { Tail<VecF32>::store(p, v, n); }
  static V broadcast(const T* p) { return _mm_set1_ps(*p); }
  static V add(V a, V b) { return _mm_add_ps(a, b); }
  static V fma(V a, V b, V c) { return _mm_add_ps(_mm_mul_ps(a, b), c); }
  template <class At>
  static V load_lanes(const At& at) {
    return load(at(0));
  }
  static void transpose_lanes(V (&v)[4]) { _MM_TRANSPOSE4_PS(v[0], v[1], v[2], v[3]); }
};

struct VecF64 {
  using T = double;
  using V = __m128d;
  using Mask = int;
  static constexpr int kWidth = 2, kRows = 4, kPanel = 2;
  static constexpr bool kFreeMask = false;
  static V zero() { return _mm_setzero_pd(); }
  static Mask mask(int n) { return n; }
  static V load(const T* p) { return _mm_loadu_pd(p); }
  static V load(const T* p, Mask n) { return Tail<VecF64>::load(p, n); }
  static void store(T* p, V v) { _mm_storeu_pd(p, v); }
  static void store(T* p, V v, Mask n) { Tail<VecF64>::store(p, v, n); }
  static V broadcast(const T* p) { return _mm_set1_pd(*p); }
  static V add(V a, V b) { return _mm_add_pd(a, b); }
  static V fma(V a, V b, V c) { return _mm_add_pd(_mm_mul_pd(a, b), c); }
  template <class At>
  static V load_lanes(const At& at) {
    return load(at(0));
  }
  static void transpose_lanes(V (&v)[2]) {
    const V low = _mm_unpacklo_pd(v[0], v[1]);
    v[1] = _mm_unpackhi_pd(v[0], v[1]);
    v[0] = low;
  }
};

#else
#error "gemm_block: expected an x86-64 compiler. Write VecF32 and VecF64 for this machine here."
#endif

// The elements of one line in 128 bits: the depth of the blocks that load_lines transposes.
template <class X>
constexpr int kLineDepth = 16 / static_cast<int>(sizeof(typename X::T));

// The number of blocks read together: a line of the cache with AVX-512, half of one elsewhere.
template <class X>
constexpr int kLineBlocks = X::kWidth * sizeof(typename X::T) == 64 ? 4 : 2;

// Reads kLineDepth elements of each of kWidth lines, kBlocks times side by side; the lines start at at(0), at(1), ...
// out[b][d] gets element b * kLineDepth + d of every line. A line's elements are read one right after the other: lines
// that lie a power of two apart share one set of the cache, which does not hold kWidth of them.
template <class X, int kBlocks, class At>
inline void load_lines(const At& at, typename X::V (&out)[kBlocks][kLineDepth<X>]) {
  constexpr int kDepth = kLineDepth<X>;
#pragma GCC unroll 4
  for (int d = 0; d < kDepth; ++d) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      out[b][d] = X::load_lanes([&](int lane) { return at(lane * kDepth + d) + b * kDepth; });
    }
  }
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) X::transpose_lanes(out[b]);
}

// The starts of kWidth lines that lie `line` elements apart, advanced together. A pointer to each line of a first lane
// and two steps reach all of them: a pointer per line does not fit in the registers.
template <class X>
struct EvenLines {
  using T = typename X::T;
  const T* first[kLineDepth<X>];
  std::int64_t lane, lanes3;
  EvenLines(const T* in, std::int64_t line) : lane(line * kLineDepth<X>), lanes3(3 * lane) {
    for (int d = 0; d < kLineDepth<X>; ++d) first[d] = in + d * line;
  }
  const T* operator()(int l) const {
    const T* const p = first[l % kLineDepth<X>];
    const int at = l / kLineDepth<X>;
    return at == 3 ? p + lanes3 : p + at * lane;
  }
  void advance(int by) {
    for (const T*& p : first) p += by;
  }
};

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
// free part of a smaller last group may hold anything: tiles of fewer rows and masked loads never read it.
template <class X, int kGroup>
void pack(std::int64_t lines, std::int64_t k_end, const typename X::T* in, std::int64_t line, std::int64_t step,
          typename X::T* out) {
  using T = typename X::T;
  constexpr int W = X::kWidth;
  constexpr bool kWhole = kGroup % W == 0;  // groups of whole vectors
  if (line == 1) {  // k outside: rows are read in one go, for as many groups as L1 can take in
    constexpr std::int64_t kSpan = 16 * kGroup, kAhead = 4, kLine = 64 / sizeof(T);
    for (std::int64_t l0 = 0; l0 < lines; l0 += kSpan, in += kSpan, out += kSpan * k_end) {
      const std::int64_t count = lines - l0 < kSpan ? lines - l0 : kSpan, full = count / kGroup * kGroup;
      const typename X::Mask mask = X::mask(static_cast<int>((count - full) % W));
      const T* row = in;
      for (std::int64_t k = 0; k < k_end; ++k, row += step) {
        // Rows may lie pages apart, where the processor foresees nothing.
        for (std::int64_t l = 0; l < count; l += kLine) __builtin_prefetch(row + kAhead * step + l, 0, 2);
        T* to = out + k * kGroup;
        for (std::int64_t l = 0; l < full; l += kGroup, to += kGroup * k_end) {
          __builtin_memcpy(to, row + l, kGroup * sizeof(T));
        }
        std::int64_t l = full;
        if constexpr (kWhole) {
          for (; l + W <= count; l += W, to += W) X::store(to, X::load(row + l));
          if (l < count) X::store(to, X::load(row + l, mask));
        } else {
          for (; l < count; ++l) *to++ = row[l];
        }
      }
    }
    return;
  }
  for (std::int64_t l0 = 0; l0 < lines; l0 += kGroup, out += kGroup * k_end) {
    const int count = static_cast<int>(lines - l0 < kGroup ? lines - l0 : kGroup);
    const T* const group = in + l0 * line;
    int l = 0;
    if (kWhole && step == 1) {
      for (; l + W <= count; l += W) {
        EvenLines<X> lines_at(group + l * line, line), next_at(group + (l + W) * line, line);
        T* to = out + l;
        std::int64_t k = 0;
        const auto store_blocks = [&]<int kBlocks>() {
          constexpr int kDepth = kLineDepth<X>, kSpan = kBlocks * kDepth;
          for (; k + kSpan <= k_end; k += kSpan, lines_at.advance(kSpan)) {
            typename X::V v[kBlocks][kDepth];
            if (kSpan * sizeof(T) == 64) {  // short pieces of many lines are no streams that the processor foresees
#pragma GCC unroll 16
              for (int r = 0; r < W; ++r) __builtin_prefetch(next_at(r), 0, 2);
              next_at.advance(kSpan);
            }
            load_lines<X, kBlocks>(lines_at, v);
#pragma GCC unroll 16
            for (int d = 0; d < kSpan; ++d, to += kGroup) X::store(to, v[d / kDepth][d % kDepth]);
          }
        };
        store_blocks.template operator()<kLineBlocks<X>>();
        store_blocks.template operator()<1>();
        for (; k < k_end; ++k, to += kGroup) {
          for (int r = 0; r < W; ++r) to[r] = group[(l + r) * line + k];
        }
      }
    }
    if (step == 1) {
      for (; count >= 4 && l < count; l += 4) {
        if (l + 4 > count) l = count - 4;  // the last four once more, with those that are left
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
