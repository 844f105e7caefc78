// Fourier transforms of a group of lines, one line to a lane: Note [Lines in lanes] in fft_lanes.h.
#include <vesta/core/cpu/fft_kernels.h>

#include <utility>

#include <vesta/core/cpu/simd.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

// ---- squares in registers ------------------------------------------------------------------------------------------

/// Where lane i of two vectors, interleaved in units of `unit` lanes within blocks of `block`, comes from: the low or
/// the high halves of the blocks.
template <int N, int block, int unit, bool high>
constexpr int interleaved(int i) {
  const int within = i % block, number = within / unit;
  return i / block * block + (high ? block / 2 : 0) + number / 2 * unit + within % unit + (number % 2 ? N : 0);
}
template <int block, int unit, bool high, class T, std::size_t... I>
VESTA_INLINE Vec<T> interleave(Vec<T> a, Vec<T> b, std::index_sequence<I...>) {
  constexpr int N = Vec<T>::N;
  return Vec<T>((typename Vec<T>::Raw)__builtin_shufflevector(a.raw, b.raw, interleaved<N, block, unit, high>(I)...));
}
template <class T>
using LaneNumbers = std::make_index_sequence<std::size_t(Vec<T>::N)>;

/// Transposes squares of block / unit vectors: in each block of lanes, of units.
template <int block, int unit, class T>
VESTA_INLINE void transpose_blocks(Vec<T>* v, int apart) {
  constexpr int count = block / unit;
  if constexpr (count >= 2) {
    static_assert(count == 2 || count == 4);
    Vec<T> w[count];
#pragma GCC unroll 4
    for (int r = 0; r < count; r += 2) {
      const Vec<T> a = v[r * apart], b = v[(r + 1) * apart];
      w[r] = interleave<block, unit, false>(a, b, LaneNumbers<T>{});
      w[r + 1] = interleave<block, unit, true>(a, b, LaneNumbers<T>{});
    }
    if constexpr (count == 2) {
      v[0] = w[0], v[apart] = w[1];
    } else {
#pragma GCC unroll 2
      for (int r = 0; r < 2; ++r) {
        v[2 * r * apart] = interleave<block, 2 * unit, false>(w[r], w[r + 2], LaneNumbers<T>{});
        v[(2 * r + 1) * apart] = interleave<block, 2 * unit, true>(w[r], w[r + 2], LaneNumbers<T>{});
      }
    }
  }
}

/// Transposes a square of N vectors: within 16 bytes, then those.
template <class T>
VESTA_INLINE void transpose(Vec<T> (&v)[Vec<T>::N]) {
  constexpr int N = Vec<T>::N, unit = 16 / int(sizeof(T));
#pragma GCC unroll 4
  for (int r = 0; r < N; r += unit) transpose_blocks<unit, 1>(v + r, 1);
#pragma GCC unroll 4
  for (int r = 0; r < unit; ++r) transpose_blocks<N, unit>(v + r, unit);
}

template <int first, class T, std::size_t... I>
VESTA_INLINE Vec<T> every_second(Vec<T> a, Vec<T> b, std::index_sequence<I...>) {
  return Vec<T>((typename Vec<T>::Raw)__builtin_shufflevector(a.raw, b.raw, (2 * int(I) + first)...));
}

// ---- complex numbers -----------------------------------------------------------------------------------------------

/// Computes a * b - c, as mul_add() does its sum.
template <class T>
VESTA_INLINE Vec<T> mul_subtract(Vec<T> a, Vec<T> b, Vec<T> c) {
  using Raw = typename Vec<T>::Raw;
#if defined(VESTA_SIMD_AVX512)
  if constexpr (sizeof(T) == 4) return Vec<T>((Raw)_mm512_fmsub_ps((__m512)a.raw, (__m512)b.raw, (__m512)c.raw));
  if constexpr (sizeof(T) == 8) return Vec<T>((Raw)_mm512_fmsub_pd((__m512d)a.raw, (__m512d)b.raw, (__m512d)c.raw));
#elif defined(VESTA_SIMD_AVX2)
  if constexpr (sizeof(T) == 4) return Vec<T>((Raw)_mm256_fmsub_ps((__m256)a.raw, (__m256)b.raw, (__m256)c.raw));
  if constexpr (sizeof(T) == 8) return Vec<T>((Raw)_mm256_fmsub_pd((__m256d)a.raw, (__m256d)b.raw, (__m256d)c.raw));
#else
  return Vec<T>((Raw)(a.raw * b.raw - c.raw));
#endif
}

/// A complex number of each line.
template <class T>
struct Point {
  Vec<T> re, im;
  VESTA_INLINE static Point load(const T* p) { return {Vec<T>::load(p), Vec<T>::load(p + Vec<T>::N)}; }
  VESTA_INLINE void store(T* p) const { re.store(p), im.store(p + Vec<T>::N); }
  VESTA_INLINE friend Point operator+(Point a, Point b) { return {a.re + b.re, a.im + b.im}; }
  VESTA_INLINE friend Point operator-(Point a, Point b) { return {a.re - b.re, a.im - b.im}; }
  VESTA_INLINE friend Point operator*(Point a, Point b) {
    return {mul_subtract(a.re, b.re, a.im * b.im), mul_add(a.re, b.im, a.im * b.re)};
  }
  VESTA_INLINE Point times_minus_i() const { return {im, -re}; }
  VESTA_INLINE Point conjugate() const { return {re, -im}; }
};
template <class T>
constexpr int kPoint = 2 * Vec<T>::N;
template <class T>
VESTA_INLINE Point<T> root_at(const T* w) {
  return {Vec<T>(w[0]), Vec<T>(w[1])};
}

/// cos and sin of 2 pi j / r, j = 1 to r / 2, for odd r.
template <int r>
struct Circle;
template <>
struct Circle<3> {
  static constexpr double cos[] = {-0.5}, sin[] = {0.86602540378443864676};
};
template <>
struct Circle<5> {
  static constexpr double cos[] = {0.30901699437494742410, -0.80901699437494742410},
                          sin[] = {0.95105651629515357212, 0.58778525229247312917};
};
template <>
struct Circle<7> {
  static constexpr double cos[] = {0.62348980185873353053, -0.22252093395631440429, -0.90096886790241912624},
                          sin[] = {0.78183148246802980871, 0.97492791218182360702, 0.43388373911755812048};
};
template <>
struct Circle<11> {
  static constexpr double cos[] = {0.84125353283118116886, 0.41541501300188642553, -0.14231483827328514044,
                                   -0.65486073394528506406, -0.95949297361449738989},
                          sin[] = {0.54064081745559758211, 0.90963199535451837141, 0.98982144188093273238,
                                   0.75574957435425828377, 0.28173255684142969771};
};
template <>
struct Circle<13> {
  static constexpr double cos[] = {0.88545602565320989590,  0.56806474673115580251,  0.12053668025532305335,
                                   -0.35460488704253562597, -0.74851074817110109863, -0.97094181742605202716},
                          sin[] = {0.46472317204376854566, 0.82298386589365639458, 0.99270887409805399280,
                                   0.93501624268541482344, 0.66312265824079520238, 0.23931566428755776715};
};

/// Transforms r points in place.
template <int r, class T>
VESTA_INLINE void transform_points(Point<T> (&x)[r]) {
  if constexpr (r == 2) {
    const Point<T> a = x[0];
    x[0] = a + x[1], x[1] = a - x[1];
  } else if constexpr (r == 4) {
    const Point<T> a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = x[1] - x[3];
    x[0] = a + c, x[2] = a - c;
    x[1] = {b.re + d.im, b.im - d.re}, x[3] = {b.re - d.im, b.im + d.re};
  } else if constexpr (r == 8) {
    Point<T> even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]};
    transform_points(even), transform_points(odd);
    const Vec<T> c(T(0.70710678118654752440));  // odd points are turned by an eighth of the circle each
    odd[1] = {(odd[1].re + odd[1].im) * c, (odd[1].im - odd[1].re) * c};
    odd[2] = odd[2].times_minus_i();
    odd[3] = {(odd[3].im - odd[3].re) * c, -(odd[3].re + odd[3].im) * c};
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) x[k] = even[k] + odd[k], x[k + 4] = even[k] - odd[k];
  } else {
    constexpr int half = r / 2;
    Point<T> sum[half], difference[half];
    const Point<T> first = x[0];
    Point<T> all = first;
#pragma GCC unroll 8
    for (int k = 0; k < half; ++k) {
      sum[k] = x[k + 1] + x[r - 1 - k], difference[k] = x[k + 1] - x[r - 1 - k];
      all = all + sum[k];
    }
    x[0] = all;
#pragma GCC unroll 8
    for (int j = 1; j <= half; ++j) {
      Point<T> even = first, odd{};
#pragma GCC unroll 8
      for (int k = 1; k <= half; ++k) {
        const int turn = j * k % r, at = turn <= half ? turn : r - turn;
        const Vec<T> c(T(Circle<r>::cos[at - 1])),
            s(T(turn <= half ? Circle<r>::sin[at - 1] : -Circle<r>::sin[at - 1]));
        even = {mul_add(c, sum[k - 1].re, even.re), mul_add(c, sum[k - 1].im, even.im)};
        if (k == 1) odd = {s * difference[0].re, s * difference[0].im};
        else odd = {mul_add(s, difference[k - 1].re, odd.re), mul_add(s, difference[k - 1].im, odd.im)};
      }
      x[j] = {even.re + odd.im, even.im - odd.re}, x[r - j] = {even.re - odd.im, even.im + odd.re};
    }
  }
}

/// Combines r transforms of `length` points that lie one behind the other.
template <int r, class T>
void combine(T* buffer, std::int64_t length, const T* roots) {
  const std::int64_t apart = length * kPoint<T>;
  for (std::int64_t p = 0; p < length; ++p, buffer += kPoint<T>) {
    Point<T> x[r];
    x[0] = Point<T>::load(buffer);
    if (p == 0) {
#pragma GCC unroll 13
      for (int j = 1; j < r; ++j) x[j] = Point<T>::load(buffer + j * apart);
    } else {
#pragma GCC unroll 13
      for (int j = 1; j < r; ++j) x[j] = Point<T>::load(buffer + j * apart) * root_at(roots + 2 * (j - 1));
      roots += 2 * (r - 1);
    }
    transform_points(x);
#pragma GCC unroll 13
    for (int j = 0; j < r; ++j) x[j].store(buffer + j * apart);
  }
}

template <class T>
void combine(T* buffer, const FftPass& pass, const T* roots) {
  switch (pass.radix) {
    case 2: return combine<2>(buffer, pass.length, roots);
    case 3: return combine<3>(buffer, pass.length, roots);
    case 4: return combine<4>(buffer, pass.length, roots);
    case 5: return combine<5>(buffer, pass.length, roots);
    case 8: return combine<8>(buffer, pass.length, roots);
    case 7: return combine<7>(buffer, pass.length, roots);
    case 11: return combine<11>(buffer, pass.length, roots);
    default: return combine<13>(buffer, pass.length, roots);
  }
}

constexpr std::int64_t kNear = 16384;  // bytes: blocks up to these stay in the first cache for several passes

/// Runs passes 0 to `last` over one block: those of a part that the first cache holds before those of the next.
template <class T>
void run_passes(const FftTables<T>& tables, T* buffer, std::int64_t last) {
  const FftPass& pass = tables.passes[std::size_t(last)];
  const std::int64_t points = pass.length * pass.radix, bytes = points * kPoint<T> * std::int64_t(sizeof(T));
  if (last > 0 && bytes > kNear) {
    for (int part = 0; part < pass.radix; ++part) run_passes(tables, buffer + part * pass.length * kPoint<T>, last - 1);
  } else {
    for (std::int64_t i = 0; i < last; ++i) {
      const FftPass& earlier = tables.passes[std::size_t(i)];
      const std::int64_t step = earlier.length * earlier.radix;
      for (std::int64_t at = 0; at < points; at += step)
        combine(buffer + at * kPoint<T>, earlier, tables.roots.data() + earlier.roots);
    }
  }
  combine(buffer, pass, tables.roots.data() + pass.roots);
}

// ---- from memory to the buffer and back ----------------------------------------------------------------------------

/// Whether the lines' numbers lie `apart` from each other.
template <class P>
bool side_by_side(const FftLines<P>& lines, int count, std::int64_t apart) {
  for (int l = 1; l < count; ++l) {
    if (lines.lanes[l] != lines.lanes[0] + l * apart) return false;
  }
  return true;
}

/// Where numbers 2 k and 2 k + 1 (real and imaginary), or numbers k alone, of the lines stand in the buffer.
template <class T>
struct Slots {
  T* buffer;
  const std::int32_t* place;  // or null: in order
  bool swapped;               // the imaginary part first
  template <bool real>
  VESTA_INLINE T* at(std::int64_t i) const {
    const std::int64_t k = real ? i : i / 2;
    const bool second = real ? swapped : (i % 2 != 0) != swapped;
    return buffer + (place ? place[k] : k) * kPoint<T> + (second ? Vec<T>::N : 0);
  }
};

/// Reads dense lines of `count` numbers, a square at a time.
template <bool real, class T>
void read_rows(const FftGroup<T>& g, Slots<T> slots, std::int64_t count) {  // (a copy: stores do not reach it)
  constexpr int N = Vec<T>::N;
  const T* rows[N];
  for (int l = 0; l < N; ++l) rows[l] = g.from.data + g.from.lanes[l < g.lines ? l : 0];
  for (std::int64_t i = 0; i < count; i += N) {
    Vec<T> v[N];
    const std::int64_t left = count - i < N ? count - i : N;
    if (left == N) {
#pragma GCC unroll 16
      for (int l = 0; l < N; ++l) v[l] = Vec<T>::load(rows[l] + i);
    } else {
#pragma GCC unroll 16
      for (int l = 0; l < N; ++l) v[l] = Vec<T>::load_partial(rows[l] + i, left);
    }
    transpose(v);
    if (left == N) {
#pragma GCC unroll 16
      for (int j = 0; j < N; ++j) v[j].store(slots.template at<real>(i + j));
    } else {
#pragma GCC unroll 16
      for (int j = 0; j < N; ++j) {
        if (j < left) v[j].store(slots.template at<real>(i + j));
      }
    }
  }
}

template <bool real, class T>
void write_rows(const FftGroup<T>& g, Slots<T> slots, std::int64_t count) {
  constexpr int N = Vec<T>::N;
  const Vec<T> scale(g.scale);
  for (std::int64_t i = 0; i < count; i += N) {
    Vec<T> v[N];
    const std::int64_t left = count - i < N ? count - i : N;
#pragma GCC unroll 16
    for (int j = 0; j < N; ++j) v[j] = Vec<T>::load(slots.template at<real>(j < left ? i + j : i)) * scale;
    transpose(v);
#pragma GCC unroll 16
    for (int l = 0; l < N; ++l) {
      if (l >= g.lines) continue;
      T* const to = g.to.data + g.to.lanes[l] + i;
      if (left == N) v[l].store(to);
      else v[l].store_partial(to, left);
    }
  }
}

/// Reads `n` lanes, 1 to 2 N, into two vectors.
template <class T>
VESTA_INLINE void load_two(const T* p, int n, Vec<T>& a, Vec<T>& b) {
  constexpr int N = Vec<T>::N;
  a = n >= N ? Vec<T>::load(p) : Vec<T>::load_partial(p, n);
  b = n == 2 * N ? Vec<T>::load(p + N) : n > N ? Vec<T>::load_partial(p + N, n - N) : Vec<T>(T(0));
}
template <class T>
VESTA_INLINE Point<T> load_lanes(const T* p, int lines) {
  Vec<T> a, b;
  load_two(p, 2 * lines, a, b);
  return {every_second<0>(a, b, LaneNumbers<T>{}), every_second<1>(a, b, LaneNumbers<T>{})};
}

/// Reads `count` points of lines in any order in memory (reals: the imaginary part is left alone).
template <bool real, class T>
void read_lines(const FftGroup<T>& g, Slots<T> slots, std::int64_t count) {
  constexpr int N = Vec<T>::N;
  const FftLines<const T>& f = g.from;
  const bool beside = side_by_side(f, g.lines, 1), pairs = !real && f.imaginary == 1 && side_by_side(f, g.lines, 2);
  const T* p = f.data + f.lanes[0];
  for (std::int64_t k = 0; k < count; ++k, p += f.step) {
    T* const re = slots.template at<real>(real ? k : 2 * k);
    T* const im = real ? nullptr : slots.template at<real>(2 * k + 1);
    if (pairs) {
      const Point<T> x = load_lanes(p, g.lines);
      x.re.store(re), x.im.store(im);
    } else if (beside) {
      (g.lines == N ? Vec<T>::load(p) : Vec<T>::load_partial(p, g.lines)).store(re);
      if constexpr (!real) {
        (g.lines == N ? Vec<T>::load(p + f.imaginary) : Vec<T>::load_partial(p + f.imaginary, g.lines)).store(im);
      }
    } else {
      for (int l = 0; l < N; ++l) {
        const T* const q = f.data + f.lanes[l < g.lines ? l : 0] + k * f.step;
        re[l] = *q;
        if constexpr (!real) im[l] = q[f.imaginary];
      }
    }
  }
}

template <bool real, class T>
void write_lines(const FftGroup<T>& g, Slots<T> slots, std::int64_t count) {
  constexpr int N = Vec<T>::N;
  const FftLines<T>& t = g.to;
  const bool beside = side_by_side(t, g.lines, 1), pairs = !real && t.imaginary == 1 && side_by_side(t, g.lines, 2);
  const Vec<T> scale(g.scale);
  T* p = t.data + t.lanes[0];
  for (std::int64_t k = 0; k < count; ++k, p += t.step) {
    const Vec<T> re = Vec<T>::load(slots.template at<real>(real ? k : 2 * k)) * scale;
    const Vec<T> im = real ? Vec<T>(T(0)) : Vec<T>::load(slots.template at<real>(2 * k + 1)) * scale;
    if (pairs) {
      const Vec<T> a = interleave<N, 1, false>(re, im, LaneNumbers<T>{});
      const Vec<T> b = interleave<N, 1, true>(re, im, LaneNumbers<T>{});
      const int n = 2 * g.lines;
      if (n >= N) a.store(p);
      else a.store_partial(p, n);
      if (n == 2 * N) b.store(p + N);
      else if (n > N) b.store_partial(p + N, n - N);
    } else if (beside) {
      if (g.lines == N) re.store(p);
      else re.store_partial(p, g.lines);
      if constexpr (!real) {
        if (g.lines == N) im.store(p + t.imaginary);
        else im.store_partial(p + t.imaginary, g.lines);
      }
    } else {
      alignas(kVectorBytes) T two[2 * N];
      re.store(two), im.store(two + N);
      for (int l = 0; l < g.lines; ++l) {
        T* const q = t.data + t.lanes[l] + k * t.step;
        *q = two[l];
        if constexpr (!real) q[t.imaginary] = two[N + l];
      }
    }
  }
}

template <bool real, class T>
void read_points(const FftGroup<T>& g, Slots<T> slots, std::int64_t count) {
  const bool dense = real ? g.from.step == 1 : g.from.step == 2 && g.from.imaginary == 1;
  if (dense) read_rows<real>(g, slots, real ? count : 2 * count);
  else read_lines<real>(g, slots, count);
}
template <bool real, class T>
void write_points(const FftGroup<T>& g, Slots<T> slots, std::int64_t count) {
  const bool dense = real ? g.to.step == 1 : g.to.step == 2 && g.to.imaginary == 1;
  if (dense) write_rows<real>(g, slots, real ? count : 2 * count);
  else write_lines<real>(g, slots, count);
}

// ---- real lines ----------------------------------------------------------------------------------------------------

/// Turns the transform z of pairs into the spectrum of their points. Even and odd points are the two parts of z, whose
/// transform holds both: that of the even ones is (z[k] + conj(z[-k])) / 2, that of the odd ones (z[k] - conj(z[-k])) /
/// 2i.
template <class T>
void unpack_pairs(const FftTables<T>& tables, T* buffer) {
  const std::int64_t n = tables.n;
  const Vec<T> zero(T(0)), half(T(0.5));
  const Point<T> first = Point<T>::load(buffer);
  Point<T>{first.re + first.im, zero}.store(buffer);
  Point<T>{first.re - first.im, zero}.store(buffer + n * kPoint<T>);
  for (std::int64_t k = 1; 2 * k <= n; ++k) {
    T* const here = buffer + k * kPoint<T>;
    T* const there = buffer + (n - k) * kPoint<T>;
    // halved first: their sum would overflow at half the range
    const auto halved = [&](const Point<T>& p) { return Point<T>{p.re * half, p.im * half}; };
    const Point<T> z = halved(Point<T>::load(here)), mirrored = halved(Point<T>::load(there)).conjugate();
    const Point<T> sum = z + mirrored,
                   difference = (z - mirrored).times_minus_i() * root_at(&tables.halves[2 * std::size_t(k)]);
    (sum - difference).conjugate().store(there);
    (sum + difference).store(here);
  }
}

/// Turns half a spectrum, whose points stand in their places, into what transforms back to pairs, twice as large, with
/// its parts swapped.
template <class T>
void pack_pairs(const FftTables<T>& tables, T* buffer) {
  const std::int64_t n = tables.n;
  const std::int32_t* place = tables.place.data();
  T* const zeroth = buffer + place[0] * kPoint<T>;
  const Vec<T> first = Vec<T>::load(zeroth), last = Vec<T>::load(buffer + n * kPoint<T>);
  Point<T>{first - last, first + last}.store(zeroth);  // of both, PyTorch too ignores what is imaginary
  for (std::int64_t k = 1; 2 * k <= n; ++k) {
    T* const here = buffer + place[k] * kPoint<T>;
    T* const there = buffer + place[n - k] * kPoint<T>;
    const Point<T> x = Point<T>::load(here), mirrored = Point<T>::load(there).conjugate();
    const Point<T> root = root_at(&tables.halves[2 * std::size_t(k)]).conjugate();
    const Point<T> sum = x + mirrored, odd = (x - mirrored) * root;  // i odd is (-odd.im, odd.re)
    const Point<T> y{sum.re + odd.im, odd.re - sum.im};  // the conjugate of sum - i odd
    Point<T>{y.im, y.re}.store(there);
    Point<T>{sum.im + odd.re, sum.re - odd.im}.store(here);
  }
}

/// Completes half a spectrum of an odd number of points, which stand in their places, with its parts swapped.
template <class T>
void mirror_odd(const FftTables<T>& tables, T* buffer) {
  const std::int32_t* place = tables.place.data();
  T* const zeroth = buffer + place[0] * kPoint<T>;
  Point<T>{Vec<T>(T(0)), Vec<T>::load(zeroth)}.store(zeroth);
  for (std::int64_t k = 1; 2 * k < tables.n; ++k) {
    const Point<T> x = Point<T>::load(buffer + place[k] * kPoint<T>);
    Point<T>{x.im, x.re}.store(buffer + place[k] * kPoint<T>);
    Point<T>{-x.im, x.re}.store(buffer + place[tables.n - k] * kPoint<T>);
  }
}

// ---- a group -------------------------------------------------------------------------------------------------------

/// Multiplies point k of the lines by their numbers in row k.
template <class T>
void turn_points(const FftGroup<T>& g) {
  for (std::int64_t k = 0; k < g.tables->n; ++k) {
    T* const at = g.buffer + k * kPoint<T>;
    Point<T> w = load_lanes(g.turns + k * g.turns_row, g.lines);
    (Point<T>::load(at) * w).store(at);
  }
}

/// Transforms a group of lines. A backward transform is a forward one of points whose parts are swapped.
template <class T>
void transform_group(const FftGroup<T>& g) {
  const FftTables<T>& tables = *g.tables;
  const std::int64_t n = tables.n;
  const bool swapped = !g.forward;
  const Slots<T> places{g.buffer, tables.place.data(), swapped}, raw{g.buffer, tables.place.data(), false};
  switch (g.kind) {
    case FftKind::complex:
    case FftKind::from_pairs: read_points<false>(g, places, n); break;
    case FftKind::from_real:
      read_points<true>(g, places, n);
      for (std::int64_t k = 0; k < n; ++k) Vec<T>(T(0)).store(g.buffer + k * kPoint<T> + (swapped ? 0 : Vec<T>::N));
      break;
    case FftKind::to_pairs:
      read_points<false>(g, raw, n + 1);
      pack_pairs(tables, g.buffer);
      break;
    case FftKind::to_odd_reals:
      read_points<false>(g, raw, n / 2 + 1);
      mirror_odd(tables, g.buffer);
      break;
  }
  if (!tables.passes.empty()) run_passes(tables, g.buffer, std::int64_t(tables.passes.size()) - 1);
  if (g.kind == FftKind::from_pairs) unpack_pairs(tables, g.buffer);
  if (g.turns) turn_points(g);
  const Slots<T> results{g.buffer, nullptr, swapped};
  if (g.kind == FftKind::to_odd_reals) write_points<true>(g, results, g.out);
  else write_points<false>(g, results, g.out);
}

}  // namespace

void register_fft_kernels(FftKernels& k) { k = {&transform_group<float>, &transform_group<double>, Vec<float>::N}; }

}  // namespace vesta::cpu::VESTA_ISA_NS
