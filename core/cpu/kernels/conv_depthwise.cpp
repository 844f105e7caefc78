// The inner loops of depthwise convolutions: Note [Depthwise convolution] in conv_depthwise.h.
#include <vesta/core/cpu/conv_depthwise.h>
#include <vesta/core/cpu/gemm_vectors.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

// Lanes [low, high) of a vector, and loads of them alone; even and odd lanes of two vectors, which in_order() sorts, as
// it unsorts what meets them; and two vectors lane by lane in turn.
#if defined(VESTA_ISA_avx512)
template <class X>
using Lanes = typename X::Mask;
template <class X>
inline Lanes<X> lanes(int low, int high) {
  return static_cast<Lanes<X>>(X::mask(high) & ~X::mask(low));
}
template <class X>
inline typename X::V load_between(const typename X::T* p, Lanes<X> m) {
  return X::load(p, m);
}
inline __m512 evens(__m512 a, __m512 b) {
  const __m512i at = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return _mm512_permutex2var_ps(a, at, b);
}
inline __m512d evens(__m512d a, __m512d b) {
  return _mm512_permutex2var_pd(a, _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), b);
}
inline __m512 odds(__m512 a, __m512 b) {
  const __m512i at = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  return _mm512_permutex2var_ps(a, at, b);
}
inline __m512d odds(__m512d a, __m512d b) {
  return _mm512_permutex2var_pd(a, _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15), b);
}
inline __m512 in_order(__m512 v) { return v; }
inline __m512d in_order(__m512d v) { return v; }
inline void weave(__m512& a, __m512& b) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512 first = a;
  a = _mm512_permutex2var_ps(first, low, b);
  b = _mm512_permutex2var_ps(first, _mm512_add_epi32(low, _mm512_set1_epi32(8)), b);
}
inline void weave(__m512d& a, __m512d& b) {
  const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
  const __m512d first = a;
  a = _mm512_permutex2var_pd(first, low, b);
  b = _mm512_permutex2var_pd(first, _mm512_add_epi64(low, _mm512_set1_epi64(4)), b);
}
#elif defined(VESTA_ISA_avx2)
template <class X>
using Lanes = __m256i;
template <class X>
inline Lanes<X> lanes(int low, int high) {
  return _mm256_andnot_si256(X::mask(low), X::mask(high));
}
template <class X>
inline typename X::V load_between(const typename X::T* p, Lanes<X> m) {
  return X::load(p, m);
}
inline __m256 evens(__m256 a, __m256 b) { return _mm256_shuffle_ps(a, b, 0x88); }
inline __m256d evens(__m256d a, __m256d b) { return _mm256_unpacklo_pd(a, b); }
inline __m256 odds(__m256 a, __m256 b) { return _mm256_shuffle_ps(a, b, 0xdd); }
inline __m256d odds(__m256d a, __m256d b) { return _mm256_unpackhi_pd(a, b); }
inline __m256d in_order(__m256d v) { return _mm256_permute4x64_pd(v, 0xd8); }
inline __m256 in_order(__m256 v) { return _mm256_castpd_ps(in_order(_mm256_castps_pd(v))); }
inline void weave(__m256& a, __m256& b) {
  const __m256 low = _mm256_unpacklo_ps(a, b), high = _mm256_unpackhi_ps(a, b);
  a = _mm256_permute2f128_ps(low, high, 0x20);
  b = _mm256_permute2f128_ps(low, high, 0x31);
}
inline void weave(__m256d& a, __m256d& b) {
  const __m256d low = _mm256_unpacklo_pd(a, b), high = _mm256_unpackhi_pd(a, b);
  a = _mm256_permute2f128_pd(low, high, 0x20);
  b = _mm256_permute2f128_pd(low, high, 0x31);
}
#else
template <class X>
struct Lanes {
  int low, high;
};
template <class X>
inline Lanes<X> lanes(int low, int high) {
  return {low, high};
}
template <class X>
inline typename X::V load_between(const typename X::T* p, Lanes<X> m) {
  typename X::T part[X::kWidth] = {};
  for (int i = m.low; i < m.high; ++i) part[i] = p[i];
  return X::load(part);
}
inline __m128 evens(__m128 a, __m128 b) { return _mm_shuffle_ps(a, b, 0x88); }
inline __m128d evens(__m128d a, __m128d b) { return _mm_unpacklo_pd(a, b); }
inline __m128 odds(__m128 a, __m128 b) { return _mm_shuffle_ps(a, b, 0xdd); }
inline __m128d odds(__m128d a, __m128d b) { return _mm_unpackhi_pd(a, b); }
inline __m128 in_order(__m128 v) { return v; }
inline __m128d in_order(__m128d v) { return v; }
inline void weave(__m128& a, __m128& b) {
  const __m128 first = a;
  a = _mm_unpacklo_ps(first, b);
  b = _mm_unpackhi_ps(first, b);
}
inline void weave(__m128d& a, __m128d& b) {
  const __m128d first = a;
  a = _mm_unpacklo_pd(first, b);
  b = _mm_unpackhi_pd(first, b);
}
#endif

// How a block of kWidth neighbouring outputs reads a row: x[0], x[step], .... Some inputs may lie outside the image:
// they are zeros. kStep is the step, or 0 for one that is known at run time. What was read in another order, sums of it
// and what it is multiplied with go through settle().
template <class X, int kStep>
struct Reader {
  using T = typename X::T;
  using V = typename X::V;
  static constexpr int W = X::kWidth;
  struct Edge {
    std::int64_t low, high;  // the inputs that may be read, counted from the block's first
  };
  static std::int64_t reach(std::int64_t step) { return (W - 1) * step + 1; }
  static Edge edge(std::int64_t low, std::int64_t high) { return {low, high}; }
  static V settle(V v) { return v; }
  static V load(const T* p, std::int64_t step) {
    T part[W];
    for (int l = 0; l < W; ++l) part[l] = p[l * step];
    return X::load(part);
  }
  static V load(const T* p, std::int64_t step, const Edge& e) {
    T part[W];
    for (int l = 0; l < W; ++l) part[l] = l * step >= e.low && l * step < e.high ? p[l * step] : T(0);
    return X::load(part);
  }
};

// Returns n, or the end of [0, most] that is nearer.
inline int within(std::int64_t n, int most) { return n < 0 ? 0 : n > most ? most : static_cast<int>(n); }

template <class X>
struct Reader<X, 1> {
  using T = typename X::T;
  using V = typename X::V;
  using Edge = Lanes<X>;
  static constexpr int W = X::kWidth;
  static std::int64_t reach(std::int64_t) { return W; }
  static Edge edge(std::int64_t low, std::int64_t high) { return lanes<X>(within(low, W), within(high, W)); }
  static V settle(V v) { return v; }
  static V load(const T* p, std::int64_t) { return X::load(p); }
  static V load(const T* p, std::int64_t, const Edge& e) { return load_between<X>(p, e); }
  // Reads for three taps side by side, the first at p.
  static __attribute__((always_inline)) void three(const T* p, V (&v)[3]) {
    v[0] = X::load(p), v[1] = X::load(p + 1), v[2] = X::load(p + 2);
  }
  static __attribute__((always_inline)) void three(const T* p, const Edge* e, V (&v)[3]) {
    v[0] = load_between<X>(p, e[0]), v[1] = load_between<X>(p + 1, e[1]), v[2] = load_between<X>(p + 2, e[2]);
  }
};

template <class X>
struct Reader<X, 2> {
  using T = typename X::T;
  using V = typename X::V;
  static constexpr int W = X::kWidth;
  struct Edge {
    Lanes<X> first, second;
  };
  static std::int64_t reach(std::int64_t) { return 2 * W; }
  static Edge edge(std::int64_t low, std::int64_t high) {
    return {lanes<X>(within(low, W), within(high, W)), lanes<X>(within(low - W, W), within(high - W, W))};
  }
  static V settle(V v) { return in_order(v); }
  static V load(const T* p, std::int64_t) { return evens(X::load(p), X::load(p + W)); }
  static V load(const T* p, std::int64_t, const Edge& e) {
    return evens(load_between<X>(p, e.first), load_between<X>(p + W, e.second));
  }
  // Reads for three taps side by side, the first at p, which skips what the second reads.
  static __attribute__((always_inline)) void three(const T* p, V (&v)[3]) {
    const V a = X::load(p), b = X::load(p + W);
    v[0] = evens(a, b), v[1] = odds(a, b), v[2] = load(p + 2, 2);
  }
  static __attribute__((always_inline)) void three(const T* p, const Edge* e, V (&v)[3]) {
    const V a = load_between<X>(p, e[0].first), b = load_between<X>(p + W, e[0].second);
    v[0] = evens(a, b), v[1] = odds(a, b), v[2] = load(p + 2, 2, e[2]);
  }
};

// The blocks of a row of outputs: which of them read the image alone, and what the others may read.
template <class X, int kStep>
class Blocks {
 public:
  using Read = Reader<X, kStep>;
  using Edge = typename Read::Edge;
  static constexpr int W = X::kWidth;

  explicit Blocks(const DepthwiseProduct& p) : p_(p), step_(kStep ? kStep : p.step), count_((p.columns + W - 1) / W) {
    std::int64_t low = 0, high = 0;  // the columns that the taps of output 0 reach
    for (std::int64_t t = 0; t < p.tap_count; ++t) {
      low = p.column[t] < low ? p.column[t] : low;
      high = p.column[t] > high ? p.column[t] : high;
    }
    const std::int64_t block = W * step_, last = p.width - high - Read::reach(step_);  // a block's first column
    first_ = (-low + block - 1) / block;
    end_ = last < 0 ? 0 : last / block + 1;
    end_ = end_ < p.columns / W ? end_ : p.columns / W;
    if (end_ < first_) first_ = end_ = 0;
    const std::int64_t edges = count_ - (end_ - first_);
    kept_ = edges * p.tap_count <= kMost;
    if (!kept_) return;
    Edge* to = edges_;
    for (std::int64_t b = 0; b < count_; ++b) {
      if (!inside(b)) make(b, 0, p.tap_count, to), to += p.tap_count;
    }
  }

  std::int64_t count() const { return count_; }
  std::int64_t step() const { return step_; }
  bool kept() const { return kept_; }
  // Returns whether all that block b reads lies in the image, and all that it computes is wanted.
  bool inside(std::int64_t b) const { return b >= first_ && b < end_; }
  // Returns what the taps from `tap` on may read: kept, or for `taps` of them made in `room`.
  const Edge* edges(std::int64_t b, std::int64_t tap, std::int64_t taps, Edge* room) const {
    if (kept_ && b < count_) return kept_edges(b) + tap;
    make(b, tap, taps, room);
    return room;
  }
  // Returns them for all taps, where they are kept.
  const Edge* kept_edges(std::int64_t b) const {
    return edges_ + (b < first_ ? b : b - (end_ - first_)) * p_.tap_count;
  }

 private:
  static constexpr int kMost = 128;

  void make(std::int64_t b, std::int64_t tap, std::int64_t taps, Edge* to) const {
    const std::int64_t wanted = (p_.columns - b * W) * step_;  // what is skipped behind the last may be read
    for (std::int64_t t = 0; t < taps; ++t) {
      const std::int64_t at = p_.column[tap + t] + b * W * step_, in_image = p_.width - at;
      to[t] = Read::edge(-at, in_image < wanted ? in_image : wanted);
    }
  }

  const DepthwiseProduct& p_;
  std::int64_t step_, count_, first_, end_;
  bool kept_;
  Edge edges_[kMost];
};

// Sums block b of R rows of outputs; line[k * R + r] is the row that line k of the kernel reads for row r.
template <class X, int kStep, int R>
inline __attribute__((always_inline)) void sum_block(const DepthwiseProduct& p, const Blocks<X, kStep>& blocks,
                                                     const typename X::T* const* line, const typename X::T* w,
                                                     std::int64_t b, typename X::V (&sum)[R]) {
  using T = typename X::T;
  using Read = Reader<X, kStep>;
  const std::int64_t at = b * X::kWidth * blocks.step();
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) sum[r] = X::zero();
  const bool inside = blocks.inside(b);
  for (std::int64_t k = 0; k < p.line_count; ++k, line += R) {
    const std::int64_t first = p.first_tap[k], end = p.first_tap[k + 1];
    const T* row[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) row[r] = line[r] + at;
    if (inside) {
      for (std::int64_t t = first; t < end; ++t) {
        const typename X::V weight = X::broadcast(w + p.weight[t]);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) sum[r] = X::fma(weight, Read::load(row[r] + p.column[t], blocks.step()), sum[r]);
      }
      continue;
    }
    for (std::int64_t t = first; t < end; ++t) {
      typename Read::Edge room[1];
      // A reference: a copy would be written in halves and read whole, which waits.
      const typename Read::Edge& e = *blocks.edges(b, t, 1, room);
      const typename X::V weight = X::broadcast(w + p.weight[t]);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sum[r] = X::fma(weight, Read::load(row[r] + p.column[t], blocks.step(), e), sum[r]);
    }
  }
}

// Finds the rows that R rows of outputs read, from `row` on.
template <int R, class T>
inline void find_lines(const DepthwiseProduct& p, const T* x, const T* zeros, std::int64_t row, const T** line) {
  for (std::int64_t k = 0; k < p.line_count; ++k) {
    for (int r = 0; r < R; ++r) {
      const std::int64_t at = p.lines[(row + r) * p.line_count + k];
      line[k * R + r] = at < 0 ? zeros : x + at;
    }
  }
}

template <class T>
struct Plane {
  const T *x, *w;
  T* out;
  T bias;
};

template <class X, int kStep, int R>
[[gnu::noinline]] void sum_rows(const DepthwisePlanes<typename X::T>& d, const Blocks<X, kStep>& blocks,
                                const Plane<typename X::T>& plane, std::int64_t row) {
  using T = typename X::T;
  using V = typename X::V;
  constexpr int W = X::kWidth;
  const DepthwiseProduct& p = *d.first;
  find_lines<R>(p, plane.x, d.zeros, row, d.room);
  // The next rows, or those of the next plane, are asked for meanwhile: they end before their reading is foreseen.
  std::int64_t ahead = 0;
  if (p.line_count > 0) {  // taps a step apart leave outputs between them without any
    const std::int64_t* const last = p.lines + p.line_count - 1;
    ahead = (row + R < p.rows ? last[(row + R) * p.line_count] : d.x_plane + last[0]) - last[row * p.line_count];
  }
  const std::int64_t fresh = p.line_count < blocks.step() ? 0 : (p.line_count - blocks.step()) * R;
  for (std::int64_t b = 0; b < blocks.count(); ++b) {
    for (std::int64_t k = fresh; k < p.line_count * R; ++k) {
      __builtin_prefetch(d.room[k] + ahead + b * W * blocks.step(), 0);
    }
    V sum[R];
    sum_block<X, kStep, R>(p, blocks, d.room, plane.w, b, sum);
    const std::int64_t rest = p.columns - b * W;
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      sum[r] = Blocks<X, kStep>::Read::settle(sum[r]);
      if (d.bias != nullptr) sum[r] = X::add(sum[r], X::broadcast(&plane.bias));
      T* const to = plane.out + p.out[row + r] + b * W * d.out_step;
      if (d.out_step != 1) {
        T part[W];
        X::store(part, sum[r]);
        for (int l = 0; l < W && l < rest; ++l) to[l * d.out_step] = part[l];
      } else if (rest >= W) {
        X::store(to, sum[r]);
      } else {
        X::store(to, sum[r], X::mask(static_cast<int>(rest)));
      }
    }
  }
}

// The lines that R rows of outputs of a kernel of 3 x 3 neighbours read.
template <int kStep, int R>
inline constexpr int kWindowLines = (R - 1) * kStep + 3;

// Sums block b of R rows of outputs of a kernel of 3 x 3 neighbours: every row of the image is read once for the rows
// of outputs that it belongs to.
template <class X, int kStep, int R>
inline __attribute__((always_inline)) void sum_window(const DepthwiseProduct& p, const Blocks<X, kStep>& blocks,
                                                      const typename X::T* const* line, const typename X::V (&w)[9],
                                                      std::int64_t b, typename X::V (&sum)[R]) {
  using V = typename X::V;
  const std::int64_t at = b * X::kWidth * kStep + p.column[0];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) sum[r] = X::zero();
  const auto add = [&](auto read) __attribute__((always_inline)) {
#pragma GCC unroll 16
    for (int i = 0; i < kWindowLines<kStep, R>; ++i) {
      V x[3];
      read(line[i] + at, x);
#pragma GCC unroll 3
      for (int k = 0; k < 3; ++k) {
        const int r = (i - k) / kStep;
        if (i < k || (i - k) % kStep != 0 || r >= R) continue;
#pragma GCC unroll 3
        for (int t = 0; t < 3; ++t) sum[r] = X::fma(w[k * 3 + t], x[t], sum[r]);
      }
    }
  };
  using Read = Reader<X, kStep>;
  if (blocks.inside(b)) {
    add([](const typename X::T* row, V(&x)[3]) __attribute__((always_inline)) { Read::three(row, x); });
  } else {
    const typename Read::Edge* const e = blocks.kept_edges(b);
    add([&](const typename X::T* row, V(&x)[3]) __attribute__((always_inline)) { Read::three(row, e, x); });
  }
}

// sum_rows for such a kernel.
template <class X, int kStep, int R>
[[gnu::noinline]] void window_rows(const DepthwisePlanes<typename X::T>& d, const Blocks<X, kStep>& blocks,
                                   const Plane<typename X::T>& plane, std::int64_t row) {
  using T = typename X::T;
  using V = typename X::V;
  constexpr int W = X::kWidth;
  const DepthwiseProduct& p = *d.first;
  constexpr int kLines = kWindowLines<kStep, R>;
  const T* line[kLines];
#pragma GCC unroll 16
  for (int i = 0; i < kLines; ++i) {
    const int r = i / kStep < R ? i / kStep : R - 1;
    const std::int64_t at = p.lines[(row + r) * 3 + i - r * kStep];
    line[i] = at < 0 ? d.zeros : plane.x + at;
  }
  // Small planes end before their reading is foreseen; with a step the next rows are asked for, too, block by block.
  std::int64_t ahead = 0;
  if constexpr (kStep > 1)
    ahead = (row + R < p.rows ? p.lines[(row + R) * 3 + 2] : d.x_plane + p.lines[2]) - p.lines[row * 3 + 2];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    if constexpr (kStep == 1) __builtin_prefetch(line[r + 1] + d.x_plane, 0);
    __builtin_prefetch(plane.out + p.out[row + r] + d.out_plane, 1);
  }
  V w[9];
#pragma GCC unroll 9
  for (int t = 0; t < 9; ++t) w[t] = X::broadcast(plane.w + p.weight[t]);
  for (std::int64_t b = 0; b < blocks.count(); ++b) {
    if constexpr (kStep > 1) {
#pragma GCC unroll 16
      for (int i = 1; i < kLines; ++i) __builtin_prefetch(line[i] + ahead + b * W * kStep, 0);
    }
    V sum[R];
    sum_window<X, kStep, R>(p, blocks, line, w, b, sum);
    const std::int64_t rest = p.columns - b * W;
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      sum[r] = Reader<X, kStep>::settle(sum[r]);
      if (d.bias != nullptr) sum[r] = X::add(sum[r], X::broadcast(&plane.bias));
      T* const to = plane.out + p.out[row + r] + b * W;
      if (rest >= W) X::store(to, sum[r]);
      else X::store(to, sum[r], X::mask(static_cast<int>(rest)));
    }
  }
}

// The outputs of two products lie in turn, the first product's first.
template <class X, int R>
[[gnu::noinline]] void weave_rows(const DepthwisePlanes<typename X::T>& d, const Blocks<X, 1>& blocks,
                                  const Blocks<X, 1>& others, const Plane<typename X::T>& plane, std::int64_t row) {
  using T = typename X::T;
  using V = typename X::V;
  constexpr int W = X::kWidth;
  const DepthwiseProduct &p = *d.first, &q = *d.second;
  const T** const other_lines = d.room + p.line_count * R;
  find_lines<R>(p, plane.x, d.zeros, row, d.room);
  find_lines<R>(q, plane.x, d.zeros, row, other_lines);
  for (std::int64_t b = 0; b < blocks.count(); ++b) {
    V sum[R], other[R];
    sum_block<X, 1, R>(p, blocks, d.room, plane.w, b, sum);
    sum_block<X, 1, R>(q, others, other_lines, plane.w, b, other);
    const std::int64_t rest = p.columns + q.columns - 2 * b * W;
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      if (d.bias != nullptr) {
        const V bias = X::broadcast(&plane.bias);
        sum[r] = X::add(sum[r], bias), other[r] = X::add(other[r], bias);
      }
      weave(sum[r], other[r]);
      T* const to = plane.out + p.out[row + r] + 2 * b * W;
      if (rest >= 2 * W) {
        X::store(to, sum[r]);
        X::store(to + W, other[r]);
        continue;
      }
      X::store(to, sum[r], X::mask(within(rest, W)));
      X::store(to + W, other[r], X::mask(within(rest - W, W)));
    }
  }
}

// Calls rows.operator()<R>(row) for the rows of a product, R at a time.
template <class F>
inline void in_groups(std::int64_t count, F rows) {
  std::int64_t row = 0;
  for (; row + 4 <= count; row += 4) rows.template operator()<4>(row);
  if (row + 2 <= count) rows.template operator()<2>(row), row += 2;
  if (row < count) rows.template operator()<1>(row);
}

template <class X, class F>
void each_plane(const DepthwisePlanes<typename X::T>& d, F f) {
  for (std::int64_t i = 0; i < d.planes; ++i) {
    f(Plane<typename X::T>{d.x + i * d.x_plane, d.w + i * d.w_plane, d.out + i * d.out_plane,
                           d.bias != nullptr ? d.bias[i] : typename X::T(0)});
  }
}

template <class X, int kStep>
void planes_by_step(const DepthwisePlanes<typename X::T>& d) {
  const Blocks<X, kStep> blocks(*d.first);
  if constexpr (kStep != 0) {
    if (d.first->is_window && d.out_step == 1 && blocks.kept()) {
      each_plane<X>(d, [&](const Plane<typename X::T>& plane) {
        in_groups(d.first->rows, [&]<int R>(std::int64_t row) { window_rows<X, kStep, R>(d, blocks, plane, row); });
      });
      return;
    }
  }
  each_plane<X>(d, [&](const Plane<typename X::T>& plane) {
    in_groups(d.first->rows, [&]<int R>(std::int64_t row) { sum_rows<X, kStep, R>(d, blocks, plane, row); });
  });
}

template <class X>
void planes(const DepthwisePlanes<typename X::T>& d) {
  if (d.second != nullptr) {
    const Blocks<X, 1> blocks(*d.first), others(*d.second);
    each_plane<X>(d, [&](const Plane<typename X::T>& plane) {
      in_groups(d.first->rows, [&]<int R>(std::int64_t row) { weave_rows<X, R>(d, blocks, others, plane, row); });
    });
    return;
  }
  if (d.first->step == 1) return planes_by_step<X, 1>(d);
  if (d.first->step == 2) return planes_by_step<X, 2>(d);
  planes_by_step<X, 0>(d);
}

// Blocks of kDepthwiseLanes outputs of one chain of sums.
constexpr std::int64_t kChain = 256;

// A part of the outputs: rows, and blocks of kDepthwiseLanes of them.
struct Part {
  std::int64_t row, end_row, block, end_block;
};

// Adds a part of the outputs to the sums of R taps.
template <class X, int kStep, int R>
void add_taps(const DepthwiseGradient<typename X::T>& d, const Blocks<X, kStep>& blocks, const typename X::T* x,
              const typename X::T* gy, std::int64_t first_tap, const Part& part) {
  using T = typename X::T;
  using V = typename X::V;
  using Read = Reader<X, kStep>;
  constexpr int W = X::kWidth, L = static_cast<int>(kDepthwiseLanes) / W;
  const DepthwiseProduct& p = *d.product;
  const std::int64_t step = blocks.step();
  V sum[R][L];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int l = 0; l < L; ++l) sum[r][l] = X::zero();
  }
  for (std::int64_t i = part.block; i < part.end_block; ++i) {
    for (std::int64_t row = part.row; row < part.end_row; ++row) {
      const T *from[R], *const g_row = gy + p.out[row];
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const std::int64_t at = p.lines[row * p.line_count + p.line_of[first_tap + r]];
        from[r] = (at < 0 ? d.zeros : x + at) + p.column[first_tap + r];
      }
#pragma GCC unroll 16
      for (int l = 0; l < L; ++l) {
        const std::int64_t b = i * L + l;
        if (blocks.inside(b)) {
          const V g = Read::settle(X::load(g_row + b * W));
#pragma GCC unroll 16
          for (int r = 0; r < R; ++r) sum[r][l] = X::fma(Read::load(from[r] + b * W * step, step), g, sum[r][l]);
        } else if (b < blocks.count()) {
          typename Read::Edge room[R];
          const typename Read::Edge* const e = blocks.edges(b, first_tap, R, room);
          const V g = Read::settle(X::load(g_row + b * W, X::mask(within(p.columns - b * W, W))));
#pragma GCC unroll 16
          for (int r = 0; r < R; ++r) sum[r][l] = X::fma(Read::load(from[r] + b * W * step, step, e[r]), g, sum[r][l]);
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int l = 0; l < L; ++l) {
      T* const to = d.sums + (first_tap + r) * kDepthwiseLanes + l * W;
      X::store(to, X::add(X::load(to), Read::settle(sum[r][l])));
    }
  }
}

// add_taps for all taps of a window (DepthwiseProduct::is_window), one of the vectors of kDepthwiseLanes after the
// other. Where the registers hold three rows of the image beside the sums, each row is read once for the three rows of
// outputs that it belongs to.
template <class X, int kStep>
void add_window(const DepthwiseGradient<typename X::T>& d, const Blocks<X, kStep>& blocks, const typename X::T* x,
                const typename X::T* gy, const Part& part) {
  using T = typename X::T;
  using V = typename X::V;
  constexpr int W = X::kWidth, L = static_cast<int>(kDepthwiseLanes) / W;
  using Read = Reader<X, kStep>;
  constexpr bool kHoldsRows = kStep == 1 && W * sizeof(T) == 64;  // of 32 registers
  const DepthwiseProduct& p = *d.product;
  const auto line = [&](std::int64_t row, int k) __attribute__((always_inline)) {
    const std::int64_t at = p.lines[row * 3 + k];
    return (at < 0 ? d.zeros : x + at) + p.column[0];
  };
  for (int l = 0; l < L; ++l) {
    V sum[9];
#pragma GCC unroll 9
    for (V& s : sum) s = X::zero();
    for (std::int64_t b = part.block * L + l; b < part.end_block * L && b < blocks.count(); b += L) {
      const auto add = [&](auto three, auto load_g) __attribute__((always_inline)) {
        const auto read = [&](const T* row, V(&v)[3]) __attribute__((always_inline)) { three(row + b * W * kStep, v); };
        V above[3], here[3], below[3];
        if constexpr (kHoldsRows) read(line(part.row, 0), above), read(line(part.row, 1), here);
        for (std::int64_t row = part.row; row < part.end_row; ++row) {
          if constexpr (!kHoldsRows) read(line(row, 0), above), read(line(row, 1), here);
          read(line(row, 2), below);
          const V g = Read::settle(load_g(gy + p.out[row] + b * W));
#pragma GCC unroll 3
          for (int t = 0; t < 3; ++t) {
            sum[t] = X::fma(above[t], g, sum[t]);
            sum[3 + t] = X::fma(here[t], g, sum[3 + t]);
            sum[6 + t] = X::fma(below[t], g, sum[6 + t]);
            if constexpr (kHoldsRows) above[t] = here[t], here[t] = below[t];
          }
        }
      };
      if (blocks.inside(b)) {
        const auto three = [](const T* at, V(&v)[3]) __attribute__((always_inline)) { Read::three(at, v); };
        add(three, [](const T* at) __attribute__((always_inline)) { return X::load(at); });
      } else {
        const typename Read::Edge* const e = blocks.kept_edges(b);
        const auto wanted = X::mask(within(p.columns - b * W, W));
        add([&](const T* at, V(&v)[3]) __attribute__((always_inline)) { Read::three(at, e, v); },
            [&](const T* at) __attribute__((always_inline)) { return X::load(at, wanted); });
      }
    }
#pragma GCC unroll 9
    for (int t = 0; t < 9; ++t) {
      T* const to = d.sums + t * kDepthwiseLanes + l * W;
      X::store(to, X::add(X::load(to), Read::settle(sum[t])));
    }
  }
}

// Adds a part of the outputs to the sums of gy.
template <class X>
void add_outputs(const DepthwiseGradient<typename X::T>& d, const typename X::T* gy, const Part& part) {
  constexpr int W = X::kWidth;
  const DepthwiseProduct& p = *d.product;
  for (int l = 0; l < kDepthwiseLanes; l += W) {
    typename X::V sum = X::zero();
    for (std::int64_t row = part.row; row < part.end_row; ++row) {
      for (std::int64_t i = part.block; i < part.end_block; ++i) {
        const std::int64_t at = i * kDepthwiseLanes + l;
        const int n = within(p.columns - at, W);
        if (n > 0) sum = X::add(sum, X::load(gy + p.out[row] + at, X::mask(n)));
      }
    }
    X::store(d.bias_sums + l, X::add(X::load(d.bias_sums + l), sum));
  }
}

template <class X, int kStep>
using AddTaps = void (*)(const DepthwiseGradient<typename X::T>&, const Blocks<X, kStep>&, const typename X::T*,
                         const typename X::T*, std::int64_t, const Part&);

// add_taps for 1 to kMost taps: their sums fill the registers.
template <class X, int kStep>
struct TapsTable {
  static constexpr int kMost = X::kWidth == kDepthwiseLanes ? 12 : X::kWidth * 2 == kDepthwiseLanes ? 6 : 3;
  AddTaps<X, kStep> at[kMost];
  constexpr TapsTable() : at{} { fill<1>(); }
  template <int R>
  constexpr void fill() {
    at[R - 1] = &add_taps<X, kStep, R>;
    if constexpr (R < kMost) fill<R + 1>();
  }
};

template <class X, int kStep>
void gradient_by_step(const DepthwiseGradient<typename X::T>& d) {
  static constexpr TapsTable<X, kStep> table;
  const DepthwiseProduct& p = *d.product;
  const Blocks<X, kStep> blocks(p);
  const std::int64_t row_blocks = (p.columns + kDepthwiseLanes - 1) / kDepthwiseLanes;
  const std::int64_t rows = row_blocks < kChain ? kChain / row_blocks : 1;
  for (std::int64_t i = 0; i < d.planes; ++i) {
    const typename X::T *const x = d.x + i * d.x_plane, *const gy = d.gy + i * d.gy_plane;
    for (std::int64_t row = 0; row < p.rows; row += rows) {
      for (std::int64_t block = 0; block < row_blocks; block += kChain) {
        const Part part{row, row + rows < p.rows ? row + rows : p.rows, block,
                        block + kChain < row_blocks ? block + kChain : row_blocks};
        if constexpr (kStep != 0) {
          if (p.is_window && blocks.kept()) {
            add_window<X, kStep>(d, blocks, x, gy, part);
            if (d.bias_sums != nullptr) add_outputs<X>(d, gy, part);
            continue;
          }
        }
        for (std::int64_t t = 0; t < p.tap_count;) {
          const std::int64_t rest = p.tap_count - t, count = rest < table.kMost ? rest : table.kMost;
          table.at[count - 1](d, blocks, x, gy, t, part);
          t += count;
        }
        if (d.bias_sums != nullptr) add_outputs<X>(d, gy, part);
      }
    }
  }
}

template <class X>
void gradient(const DepthwiseGradient<typename X::T>& d) {
  if (d.product->columns == 0) return;
  if (d.product->step == 1) return gradient_by_step<X, 1>(d);
  if (d.product->step == 2) return gradient_by_step<X, 2>(d);
  gradient_by_step<X, 0>(d);
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

constexpr DepthwiseKernels<float> kF32 = {&planes<VecF32>, &gradient<VecF32>, &pixel<VecF32>};
constexpr DepthwiseKernels<double> kF64 = {&planes<VecF64>, &gradient<VecF64>, &pixel<VecF64>};

}  // namespace

const DepthwiseKernels<float>& depthwise_float_kernels() { return kF32; }
const DepthwiseKernels<double>& depthwise_double_kernels() { return kF64; }

}  // namespace vesta::cpu::VESTA_ISA_NS
