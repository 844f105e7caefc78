// The inner loops of resampling: rows that lie side by side, and lines whose elements are picked from a window by a
// shuffle. Products and sums are rounded each, in the order of the terms, as everywhere else.
#include <vesta/core/cpu/resample_kernels.h>

#include <vesta/core/cpu/simd.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

/// Adds up `terms` rows, known to the compiler, or any number of them (0); `expects`: asks for those that lie `ahead`.
template <int known, bool expects, class T>
void add_rows(const T* x, int64_t inner, const int64_t* places, const T* weights, int64_t any, T* y, int64_t n,
              int64_t ahead) {
  using V = Vec<T>;
  constexpr int kKept = known ? known : 1;  // which the compiler would read again for each vector, as y may be anywhere
  const T* rows[kKept];
  V factors[kKept];
  for (int k = 0; k < kKept; ++k) rows[k] = x + places[k] * inner, factors[k] = V(weights[k]);
  auto at = [&](int64_t i, auto load) __attribute__((always_inline)) {
    if constexpr (expects) {
      for (int64_t k = 0; k < (known ? known : any); ++k) __builtin_prefetch(x + places[k] * inner + ahead + i, 0, 2);
    }
    V sum = factors[0] * load(rows[0] + i);
    for (int k = 1; k < kKept; ++k) sum = sum + factors[k] * load(rows[k] + i);
    for (int64_t k = kKept; !known && k < any; ++k) sum = sum + V(weights[k]) * load(x + places[k] * inner + i);
    return sum;
  };
  int64_t i = 0;
  for (; i + V::N <= n; i += V::N) {
    at(i, [](const T* p) __attribute__((always_inline)) { return V::load(p); }).store(y + i);
  }
  if (const int64_t rest = n - i; rest > 0) {
    at(i, [&](const T* p) __attribute__((always_inline)) {
      return V::load_partial(p, rest);
    }).store_partial(y + i, rest);
  }
}

template <bool expects, class T>
void any_row(const T* x, int64_t inner, const int64_t* places, const T* weights, int64_t terms, T* y, int64_t n,
             int64_t ahead) {
  switch (terms) {
    case 0:
      for (int64_t i = 0; i < n; ++i) y[i] = T(0);
      return;
    case 1: return add_rows<1, expects>(x, inner, places, weights, terms, y, n, ahead);
    case 2: return add_rows<2, expects>(x, inner, places, weights, terms, y, n, ahead);
    case 3: return add_rows<3, expects>(x, inner, places, weights, terms, y, n, ahead);
    case 4: return add_rows<4, expects>(x, inner, places, weights, terms, y, n, ahead);
    default: return add_rows<0, expects>(x, inner, places, weights, terms, y, n, ahead);
  }
}
template <class T>
void row(const T* x, int64_t inner, const int64_t* places, const T* weights, int64_t terms, T* y, int64_t n,
         int64_t ahead) {
  if (ahead) any_row<true>(x, inner, places, weights, terms, y, n, ahead);
  else any_row<false>(x, inner, places, weights, terms, y, n, 0);
}

/// Whether `pick` exists for T: it picks lanes of a vector, or of two, by number, the second one's counted from N on.
template <class T>
constexpr bool kPicks = false;
#if defined(VESTA_SIMD_AVX512)
template <>
constexpr bool kPicks<float> = true;
template <>
constexpr bool kPicks<double> = true;
VESTA_INLINE Vec<float> pick(Vec<float> low, Vec<float> high, Vec<float>::Bits at) {
  return Vec<float>((Vec<float>::Raw)_mm512_permutex2var_ps((__m512)low.raw, (__m512i)at, (__m512)high.raw));
}
VESTA_INLINE Vec<double> pick(Vec<double> low, Vec<double> high, Vec<double>::Bits at) {
  return Vec<double>((Vec<double>::Raw)_mm512_permutex2var_pd((__m512d)low.raw, (__m512i)at, (__m512d)high.raw));
}
VESTA_INLINE Vec<float> pick(Vec<float> low, Vec<float>::Bits at) {
  return Vec<float>((Vec<float>::Raw)_mm512_maskz_permutexvar_ps(0xffff, (__m512i)at, (__m512)low.raw));
}
VESTA_INLINE Vec<double> pick(Vec<double> low, Vec<double>::Bits at) {
  return Vec<double>((Vec<double>::Raw)_mm512_maskz_permutexvar_pd(0xff, (__m512i)at, (__m512d)low.raw));
}
#elif defined(VESTA_SIMD_AVX2)
template <>
constexpr bool kPicks<float> = true;
VESTA_INLINE Vec<float> pick(Vec<float> low, Vec<float> high, Vec<float>::Bits at) {
  const __m256 a = _mm256_permutevar8x32_ps((__m256)low.raw, (__m256i)at);
  const __m256 b = _mm256_permutevar8x32_ps((__m256)high.raw, (__m256i)at);
  return Vec<float>((Vec<float>::Raw)_mm256_blendv_ps(a, b, (__m256)(at << 28)));  // bit 3 decides
}
VESTA_INLINE Vec<float> pick(Vec<float> low, Vec<float>::Bits at) {
  return Vec<float>((Vec<float>::Raw)_mm256_permutevar8x32_ps((__m256)low.raw, (__m256i)at));
}
#endif

/// Lines that go through the same blocks: `in` and `out` elements from one to the next.
template <class T>
struct Lines {
  const T* x;
  std::int64_t in;
  T* y;
  std::int64_t out;
  bool non_temporal;
};

template <class T>
VESTA_INLINE void store_block(Vec<T> v, T* y, int64_t count, bool non_temporal) {
  if (non_temporal) v.stream(y);
  else if (count == Vec<T>::N) [[likely]] v.store(y);
  else v.store_partial(y, count);
}

/// Computes the results of `lines` lines for the blocks from b on that have this kind, and `known` terms if that is not
/// 0; returns the first block that is of another kind.
template <int lines, int known, auto kind, class T>
const ResampleBlock<T>* blocks_of(const Lines<T>& l, const ResampleBlock<T>* b, const ResampleBlock<T>* end, T* y) {
  using V = Vec<T>;
  using Terms = typename ResampleBlock<T>::Terms;
  const T* const x = l.x;
  const int64_t in = l.in, out = l.out;
  const bool non_temporal = l.non_temporal;
  for (; b < end && b->kind == kind && (known == 0 || b->terms == known); y += b->count, ++b) {
    const T* const base = x + b->base;
    V sum[lines];
    const auto add = [&](int k, bool first) __attribute__((always_inline)) {
      const V weight = V::load(b->weights[k]);
#pragma GCC unroll 2
      for (int i = 0; i < lines; ++i) {
        V term;
        if constexpr (kind == Terms::beside) {
          term = V::load(base + i * in + b->at[k][0]);
        } else {
          const auto places = V::load(reinterpret_cast<const T*>(b->at[k])).bits();
          if constexpr (kind == Terms::near) term = pick(V::load(base + i * in), places);
          else term = pick(V::load(base + i * in), V::load(base + i * in + V::N), places);
        }
        sum[i] = first ? weight * term : sum[i] + weight * term;
      }
    };
    add(0, true);
#pragma GCC unroll 4
    for (int k = 1; k < (known ? known : b->terms); ++k) add(k, false);
#pragma GCC unroll 2
    for (int i = 0; i < lines; ++i) store_block(sum[i], y + i * out, b->count, non_temporal);
  }
  return b;
}

/// Computes one block of a line some of whose results leave terms out.
template <class T>
void some_terms(const T* x, const ResampleBlock<T>& b, T* y, bool non_temporal) {
  using V = Vec<T>;
  using Bits = typename V::Bits;
  const V low = V::load(x + b.base), high = V::load(x + b.base + V::N);
  V sum(T(0));
  for (int k = 0; k < b.terms; ++k) {
    const Bits at = V::load(reinterpret_cast<const T*>(b.at[k])).bits();
    const V term = V::load(b.weights[k]) * pick(low, high, at);
    // as bits: a term that is left out must not turn an infinity beside it into NaN
    const Bits left_out = at >> (8 * static_cast<int>(sizeof(T)) - 1);
    const V next = k == 0 ? term : sum + term;
    sum = V::from_bits((sum.bits() & left_out) | (next.bits() & ~left_out));
  }
  store_block(sum, y, b.count, non_temporal);
}

template <int lines, class T>
void lines_of(const Lines<T>& l, const ResampleBlock<T>* blocks, int64_t count) {
  using Terms = typename ResampleBlock<T>::Terms;
  T* y = l.y;
  for (const ResampleBlock<T>*b = blocks, *const end = blocks + count; b < end;) {
    const ResampleBlock<T>* next = b + 1;
    switch (b->kind) {
      case Terms::beside:
        next = b->terms == 3 ? blocks_of<lines, 3, Terms::beside>(l, b, end, y)
                             : blocks_of<lines, 0, Terms::beside>(l, b, end, y);
        break;
      case Terms::near:
        next = b->terms == 2 ? blocks_of<lines, 2, Terms::near>(l, b, end, y)
                             : blocks_of<lines, 0, Terms::near>(l, b, end, y);
        break;
      case Terms::all:
        next = b->terms == 2 ? blocks_of<lines, 2, Terms::all>(l, b, end, y)
                             : blocks_of<lines, 0, Terms::all>(l, b, end, y);
        break;
      case Terms::some:
        for (int i = 0; i < lines; ++i) some_terms(l.x + i * l.in, *b, y + i * l.out, l.non_temporal);
    }
    for (; b < next; ++b) y += b->count;
  }
}

template <class T>
void line(const T* x, const ResampleBlock<T>* blocks, int64_t count, T* y, bool non_temporal) {
  lines_of<1, T>({x, 0, y, 0, non_temporal}, blocks, count);
}

template <class T>
void plane(const ResamplePlane<T>& p, int64_t first, int64_t last) {
  for (int64_t o = first; o < last;) {
    const int64_t rows = p.rows < last - o ? p.rows : last - o;
    for (int64_t l = 0; l < rows; ++l) {
      const int64_t k = p.starts[o + l], terms = p.starts[o + l + 1] - k;
      row(p.x, p.width, p.places + k, p.weights + k, terms, p.room + l * p.pitch, p.width, 0);
    }
    T* const y = p.y + o * p.out_width;
    int64_t l = 0;
    const auto lines_at = [&](int64_t apart) {
      return Lines<T>{p.room + l * p.pitch, apart * p.pitch, y + l * p.out_width, apart * p.out_width, p.non_temporal};
    };
    for (; l + 2 * p.lines <= rows; l += 2 * p.lines) {
      lines_of<2>(lines_at(p.lines), p.lines_together, p.together_blocks);
    }
    for (; l + p.lines <= rows; l += p.lines) lines_of<1>(lines_at(0), p.lines_together, p.together_blocks);
    for (; l < rows; ++l) lines_of<1>(lines_at(0), p.line, p.line_blocks);
    o += rows;
  }
}

template <class T>
void enter(ResampleKernels<T>& k) {
  k.row = &row<T>;
  if constexpr (kPicks<T>) {
    static_assert(Vec<T>::N <= kResampleLanes);
    k.line = &line<T>;
    k.plane = &plane<T>;
    k.lanes = Vec<T>::N;
    k.window = 2 * Vec<T>::N;
  }
}

}  // namespace

void register_resample_kernels(ResampleKernels<float>& singles, ResampleKernels<double>& doubles) {
  enter(singles);
  enter(doubles);
}

}  // namespace vesta::cpu::VESTA_ISA_NS
