// The inner loops of depthwise convolutions: Note [Depthwise convolution] in conv_depthwise.h.
#include <vesta/core/cpu/conv_depthwise.h>
#include <vesta/core/cpu/gemm_vectors.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

// Steps that are known let the compiler use shuffles.
template <int in_step, class T>
void copy_steps(const DepthwiseRows<T>& r) {
  for (std::int64_t i = 0; i < r.rows; ++i) {
    const T* __restrict in = r.in + i * r.in_row;
    T* __restrict out = r.out + i * r.out_row;
    const std::int64_t step = in_step ? in_step : r.in_step, out_step = in_step ? 1 : r.out_step;
    for (std::int64_t j = 0; j < r.count; ++j) out[j * out_step] = in[j * step];
  }
}

// Stores element i of v at p[2 * i] and leaves what lies between.
#if defined(VESTA_ISA_avx512)
void spread(float* p, __m512 v) {
  const __m512i half = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  _mm512_mask_storeu_ps(p, 0x5555, _mm512_permutexvar_ps(half, v));
  _mm512_mask_storeu_ps(p + 16, 0x5555, _mm512_permutexvar_ps(_mm512_add_epi32(half, _mm512_set1_epi32(8)), v));
}
void spread(double* p, __m512d v) {
  const __m512i half = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
  _mm512_mask_storeu_pd(p, 0x55, _mm512_permutexvar_pd(half, v));
  _mm512_mask_storeu_pd(p + 8, 0x55, _mm512_permutexvar_pd(_mm512_add_epi64(half, _mm512_set1_epi64(4)), v));
}
#elif defined(VESTA_ISA_avx2)
void spread(float* p, __m256 v) {
  const __m256i half = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3), even = _mm256_setr_epi32(-1, 0, -1, 0, -1, 0, -1, 0);
  _mm256_maskstore_ps(p, even, _mm256_permutevar8x32_ps(v, half));
  _mm256_maskstore_ps(p + 8, even, _mm256_permutevar8x32_ps(v, _mm256_add_epi32(half, _mm256_set1_epi32(4))));
}
void spread(double* p, __m256d v) {
  const __m256i even = _mm256_setr_epi64x(-1, 0, -1, 0);
  _mm256_maskstore_pd(p, even, _mm256_permute4x64_pd(v, 0x50));      // 0, 0, 1, 1
  _mm256_maskstore_pd(p + 4, even, _mm256_permute4x64_pd(v, 0xfa));  // 2, 2, 3, 3
}
#else
template <class T>
void spread(T* p, auto v) {
  T lanes[sizeof(v) / sizeof(T)];
  __builtin_memcpy(lanes, &v, sizeof(v));
  for (unsigned i = 0; i < sizeof(v) / sizeof(T); ++i) p[2 * i] = lanes[i];
}
#endif

template <class X>
void copy_apart(const DepthwiseRows<typename X::T>& r) {
  constexpr int W = X::kWidth;
  for (std::int64_t i = 0; i < r.rows; ++i) {
    const typename X::T* in = r.in + i * r.in_row;
    typename X::T* out = r.out + i * r.out_row;
    std::int64_t j = 0;
    for (; j + W <= r.count; j += W) spread(out + 2 * j, X::load(in + j));
    for (; j < r.count; ++j) out[2 * j] = in[j];
  }
}

template <class X>
void copy(const DepthwiseRows<typename X::T>& r) {
  using T = typename X::T;
  constexpr int W = X::kWidth;
  if (r.in_step == 2 && r.out_step == 1) return copy_steps<2>(r);
  if (r.in_step == 1 && r.out_step == 2) return copy_apart<X>(r);
  if (r.in_step != 1 || r.out_step != 1) return copy_steps<0>(r);
  const std::int64_t whole = r.count / W * W;
  const int rest = static_cast<int>(r.count - whole);
  const auto mask = X::mask(rest);
  for (std::int64_t i = 0; i < r.rows; ++i) {
    const T* const in = r.in + i * r.in_row;
    T* const out = r.out + i * r.out_row;
    for (std::int64_t j = 0; j < whole; j += W) X::store(out + j, X::load(in + j));
    if (rest > 0) X::store(out + whole, X::load(in + whole, mask), mask);
  }
}

template <class X>
void plane(const DepthwisePlane<typename X::T>& d) {
  using V = typename X::V;
  constexpr int W = X::kWidth, kVectors = 4;  // independent chains: hide the latency of an addition
  static_assert(kVectors * W <= kDepthwiseSlack);
  for (std::int64_t p = 0; p < d.span; p += kVectors * W) {
    V sum[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[v] = X::zero();
    for (std::int64_t t = 0; t < d.tap_count; ++t) {
      const typename X::T* const x = d.x + d.taps[t] + p;
      const V w = X::broadcast(d.w + t);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[v] = X::fma(w, X::load(x + v * W), sum[v]);
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      if (d.bias != nullptr) sum[v] = X::add(sum[v], X::broadcast(d.bias));
      X::store(d.out + p + v * W, sum[v]);
    }
  }
}

// Outputs of one chain of sums.
constexpr std::int64_t kChain = 256 * kDepthwiseLanes;

// Adds outputs [begin, end) to the sums of R taps.
template <class X, int R>
void add_taps(const DepthwiseGradient<typename X::T>& d, std::int64_t first_tap, std::int64_t begin, std::int64_t end) {
  using T = typename X::T;
  using V = typename X::V;
  constexpr int W = X::kWidth, L = static_cast<int>(kDepthwiseLanes) / W;
  V sum[R][L];
  const T* x[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    x[r] = d.x + d.taps[first_tap + r];
#pragma GCC unroll 16
    for (int l = 0; l < L; ++l) sum[r][l] = X::zero();
  }
  for (std::int64_t p = begin; p < end; p += kDepthwiseLanes) {
#pragma GCC unroll 16
    for (int l = 0; l < L; ++l) {
      const V g = X::load(d.gy + p + l * W);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) sum[r][l] = X::fma(X::load(x[r] + p + l * W), g, sum[r][l]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int l = 0; l < L; ++l) {
      T* const to = d.sums + (first_tap + r) * kDepthwiseLanes + l * W;
      X::store(to, X::add(X::load(to), sum[r][l]));
    }
  }
}

template <class X>
using AddTaps = void (*)(const DepthwiseGradient<typename X::T>&, std::int64_t, std::int64_t, std::int64_t);

// add_taps for 1 to kMost taps: their sums fill the registers.
template <class X>
struct TapsTable {
  static constexpr int kMost = X::kWidth == kDepthwiseLanes ? 12 : X::kWidth * 2 == kDepthwiseLanes ? 6 : 3;
  AddTaps<X> at[kMost];
  constexpr TapsTable() : at{} { fill<1>(); }
  template <int R>
  constexpr void fill() {
    at[R - 1] = &add_taps<X, R>;
    if constexpr (R < kMost) fill<R + 1>();
  }
};

template <class X>
void gradient(const DepthwiseGradient<typename X::T>& d) {
  static constexpr TapsTable<X> table;
  constexpr int W = X::kWidth;
  for (std::int64_t begin = 0; begin < d.span; begin += kChain) {
    const std::int64_t end = begin + kChain < d.span ? begin + kChain : d.span;
    for (std::int64_t t = 0; t < d.tap_count;) {
      const std::int64_t rest = d.tap_count - t, count = rest < table.kMost ? rest : table.kMost;
      table.at[count - 1](d, t, begin, end);
      t += count;
    }
    if (d.bias_sums == nullptr) continue;
    for (std::int64_t l = 0; l < kDepthwiseLanes; l += W) {
      typename X::V sum = X::zero();
      for (std::int64_t p = begin; p < end; p += kDepthwiseLanes) sum = X::add(sum, X::load(d.gy + p + l));
      X::store(d.bias_sums + l, X::add(X::load(d.bias_sums + l), sum));
    }
  }
}

constexpr int kPixelVectors = 4;  // independent chains, as above

/// Sums kCount vectors of channels from `at` on.
template <class X, int kCount>
inline __attribute__((always_inline)) void whole(const DepthwisePixel<typename X::T>& p, std::int64_t at) {
  typename X::V sum[kCount];
#pragma GCC unroll 4
  for (int v = 0; v < kCount; ++v) sum[v] = X::zero();
  for (std::int64_t t = 0; t < p.tap_count; ++t) {
    const typename X::T *x = p.lines[t] + at, *w = p.w + t * p.w_row + at;
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) sum[v] = X::fma(X::load(w + v * X::kWidth), X::load(x + v * X::kWidth), sum[v]);
  }
#pragma GCC unroll 4
  for (int v = 0; v < kCount; ++v) {
    if (p.bias != nullptr) sum[v] = X::add(sum[v], X::load(p.bias + at + v * X::kWidth));
    X::store(p.out + at + v * X::kWidth, sum[v]);
  }
}

template <class X>
void pixel(const DepthwisePixel<typename X::T>& p) {
  constexpr int W = X::kWidth;
  std::int64_t at = 0;
  for (; at + kPixelVectors * W <= p.channels; at += kPixelVectors * W) whole<X, kPixelVectors>(p, at);
  for (; at + W <= p.channels; at += W) whole<X, 1>(p, at);
  if (at == p.channels) return;
  const auto mask = X::mask(static_cast<int>(p.channels - at));
  typename X::V sum = X::zero();
  for (std::int64_t t = 0; t < p.tap_count; ++t) {
    sum = X::fma(X::load(p.w + t * p.w_row + at, mask), X::load(p.lines[t] + at, mask), sum);
  }
  if (p.bias != nullptr) sum = X::add(sum, X::load(p.bias + at, mask));
  X::store(p.out + at, sum, mask);
}

constexpr DepthwiseKernels<float> kF32 = {&copy<VecF32>, &plane<VecF32>, &gradient<VecF32>, &pixel<VecF32>};
constexpr DepthwiseKernels<double> kF64 = {&copy<VecF64>, &plane<VecF64>, &gradient<VecF64>, &pixel<VecF64>};

}  // namespace

const DepthwiseKernels<float>& depthwise_float_kernels() { return kF32; }
const DepthwiseKernels<double>& depthwise_double_kernels() { return kF64; }

}  // namespace vesta::cpu::VESTA_ISA_NS
