// Reading images at positions of a grid, and the gradients. Of planes, a vector has neighbouring positions: the two
// columns of a row lie side by side, so that one load gets both. Of pixels, a vector has channels of one position. Both
// compute an element in the same way, step by step.
#include <vesta/core/cpu/grid_sample_kernels.h>

#include <utility>

#include <vesta/core/cpu/rows.h>
#include <vesta/core/cpu/simd.h>
#include <vesta/core/cpu/simd_math.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

template <class T>
VESTA_INLINE bool is_read(const T& mask) {
  IntOf<T> bits;
  __builtin_memcpy(&bits, &mask, sizeof bits);
  return bits != 0;
}
template <class T>
VESTA_INLINE Vec<T> masked(Vec<T> v, Vec<T> mask) {
  return Vec<T>::from_bits(v.bits() & mask.bits());
}
template <class T>
VESTA_INLINE Vec<T> all_or_nothing(Mask<T> m) {
  return select(m, Vec<T>::from_bits(~typename Vec<T>::Bits{}), Vec<T>(T(0)));
}
template <class T>
VESTA_INLINE Vec<T> between(Vec<T> v, Vec<T> low, Vec<T> high) {
  return select(v > low, select(v < high, v, high), low);
}

/// Stores where the elements of a row and a column lie.
template <class T>
VESTA_INLINE void enter(Vec<T> row, Vec<T> column, const GridImage<T>& image, IntOf<T>* to) {
  using Bits = typename Vec<T>::Bits;
  const Bits at = __builtin_convertvector(row.raw, Bits) * static_cast<IntOf<T>>(image.width * image.pitch) +
                  __builtin_convertvector(column.raw, Bits) * static_cast<IntOf<T>>(image.pitch);
  __builtin_memcpy(to, &at, sizeof at);
}

/// Finds the elements nearest to the positions of a vector; returns which are inside.
template <class T>
VESTA_INLINE Mask<T> find_nearest(Vec<T> x, Vec<T> y, const GridImage<T>& image, GridBlock<T>& block, int64_t i) {
  using V = Vec<T>;
  const V zero(T(0)), last_row(image.rows.n - T(1)), last_column(image.columns.n - T(1));
  const V r = math::round(y), c = math::round(x);
  const Mask<T> read = (r >= zero) & (r <= last_row) & (c >= zero) & (c <= last_column);
  all_or_nothing(read).store(block.masks[0] + i);
  enter(between(r, zero, last_row), between(c, zero, last_column), image, block.rows[0] + i);
  return read;
}

/// Finds the four neighbours of the positions of a vector; returns of which positions all are inside.
template <class T>
VESTA_INLINE Mask<T> find_four(Vec<T> x, Vec<T> y, const GridImage<T>& image, GridBlock<T>& block, int64_t i) {
  using V = Vec<T>;
  const V zero(T(0)), one(T(1)), last_row(image.rows.n - T(1)), last_column(image.columns.n - T(1));
  const V r = math::floor(y), c = math::floor(x), down = y - r, along = x - c;
  const Mask<T> row_read[2] = {(r >= zero) & (r <= last_row), (r >= -one) & (r < last_row)};
  const V row_weight[2] = {select(row_read[0], one - down, zero), select(row_read[1], down, zero)};
  // Of a position beside the image, the two columns at its edge: one of them is a neighbour, the left or the right one.
  const V base = between(c, zero, image.width > 1 ? last_column - one : zero), next = base + one;
  enter(between(r, zero, last_row), base, image, block.rows[0] + i);
  enter(between(r + one, zero, last_row), base, image, block.rows[1] + i);
  const Mask<T> second_exists(image.width > 1);
  const Mask<T> left[2] = {c == base, (c == next) & second_exists};
  const Mask<T> right[2] = {c + one == base, (c == base) & second_exists};
  Mask<T> all(true);
#pragma GCC unroll 2
  for (int k = 0; k < 2; ++k) {
    const V weight = select(left[k], one - along, select(right[k], along, zero));
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const Mask<T> is_inside = (left[k] | right[k]) & row_read[j];
      const V read = all_or_nothing(is_inside);
      read.store(block.masks[2 * k + j] + i);
      masked(row_weight[j] * weight, read).store(block.weights[2 * k + j] + i);
      all = all & is_inside;
    }
    if (!image.slopes) continue;
    row_weight[k].store(block.row_weights[k] + i);
    weight.store(block.column_weights[k] + i);
    select(left[k], -one, select(right[k], one, zero)).store(block.column_slopes[k] + i);
  }
  return all;
}

/// Loads the x and the y of N positions; of those from n on, the middle.
template <class T, int... I>
VESTA_INLINE void load_places(const T* grid, int64_t n, Vec<T>& x, Vec<T>& y, std::integer_sequence<int, I...>) {
  constexpr int64_t N = Vec<T>::N;
  T rest[2 * N] = {};
  if (n < N) {
    for (int64_t i = 0; i < 2 * n; ++i) rest[i] = grid[i];
    grid = rest;
  }
  const auto low = Vec<T>::load(grid).raw, high = Vec<T>::load(grid + N).raw;
  x = Vec<T>(__builtin_shufflevector(low, high, (2 * I)...));
  y = Vec<T>(__builtin_shufflevector(low, high, (2 * I + 1)...));
}

template <class T>
void find(const T* grid, int64_t count, const GridImage<T>& image, GridBlock<T>& block) {
  using V = Vec<T>;
  block.count = count, block.nearest = image.nearest, block.right = image.width > 1 ? image.pitch : 0;
  for (int64_t g = 0; g < count; g += kGridGroup) {
    bool whole = true;
    for (int64_t i = g; i < g + kGridGroup; i += V::N) {
      V x, y, slope_x, slope_y;
      load_places(grid + 2 * i, count - i, x, y, std::make_integer_sequence<int, V::N>{});
      x = image.columns.place(x, slope_x), y = image.rows.place(y, slope_y);
      if (image.slopes) slope_x.store(block.slopes[0] + i), slope_y.store(block.slopes[1] + i);
      whole = whole & all(image.nearest ? find_nearest(x, y, image, block, i) : find_four(x, y, image, block, i));
    }
    block.whole[g / kGridGroup] = whole;
  }
}

// ---- planes ----

/// Loads the elements at N positions, and their neighbours to the right. Two floats are loaded as one double, and so
/// are shuffled within each four lanes alone.
template <class T, int... I>
VESTA_INLINE void load_pairs(const T* x, const IntOf<T>* at, Vec<T>& left, Vec<T>& right,
                             std::integer_sequence<int, I...>) {
  if constexpr (sizeof(T) == 4) {
    constexpr int N = sizeof...(I), kLanes = N / 2;
    typedef double Pairs __attribute__((vector_size(kVectorBytes)));
    const auto pair = [&](int i) __attribute__((always_inline)) {
      double d;
      __builtin_memcpy(&d, x + at[i], sizeof d);
      return d;
    };
    const auto pairs = [&]<int... K>(int from, std::integer_sequence<int, K...>) __attribute__((always_inline)) {
      return (typename Vec<T>::Raw)Pairs{pair(K / 2 * 4 + K % 2 + from)...};
    };
    const auto low = pairs(0, std::make_integer_sequence<int, kLanes>{});
    const auto high = pairs(2, std::make_integer_sequence<int, kLanes>{});
    left = Vec<T>(__builtin_shufflevector(low, high, (I / 4 * 4 + I % 2 * 2 + I % 4 / 2 * N)...));
    right = Vec<T>(__builtin_shufflevector(low, high, (I / 4 * 4 + I % 2 * 2 + I % 4 / 2 * N + 1)...));
  } else {
    left = Vec<T>(typename Vec<T>::Raw{x[at[I]]...});
    right = Vec<T>(typename Vec<T>::Raw{x[at[I] + 1]...});
  }
}
template <class T, int... I>
VESTA_INLINE Vec<T> load_each(const T* x, const IntOf<T>* at, std::integer_sequence<int, I...>) {
  return Vec<T>(typename Vec<T>::Raw{x[at[I]]...});
}

/// Calls f(c: a constant) with c as given.
template <class F>
VESTA_INLINE void as_constant(bool c, F f) {
  if (c) f(std::true_type{});
  else f(std::false_type{});
}

/// Loads the four neighbours of N positions of a block; those outside are 0. `beside`: two in a row lie side by side.
template <bool beside, bool whole, class T>
VESTA_INLINE void load_four(const T* x, const GridBlock<T>& b, int64_t i, Vec<T> (&v)[4]) {
  constexpr std::make_integer_sequence<int, Vec<T>::N> lanes{};
#pragma GCC unroll 2
  for (int j = 0; j < 2; ++j) {
    if constexpr (beside) {
      load_pairs(x, b.rows[j] + i, v[j], v[2 + j], lanes);
    } else {
      v[j] = load_each(x, b.rows[j] + i, lanes), v[2 + j] = load_each(x + b.right, b.rows[j] + i, lanes);
    }
  }
  if constexpr (whole) return;
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) v[k] = masked(v[k], Vec<T>::load(b.masks[k] + i));
}

/// Adds up four products, in order.
template <class T>
VESTA_INLINE Vec<T> weighted(const Vec<T> (&v)[4], const Vec<T> (&w)[4]) {
  return ((v[0] * w[0] + v[1] * w[1]) + v[2] * w[2]) + v[3] * w[3];
}

/// Calls f(i, n, v) for each vector of a block's positions, v being their neighbours in a plane; n = N but at the end.
template <bool beside, class T, class F>
VESTA_INLINE void each_four(const T* x, const GridBlock<T>& b, F f) {
  constexpr int64_t N = Vec<T>::N;
  const int64_t count = b.count;
  Vec<T> v[4];
  for (int64_t g = 0; g < count; g += kGridGroup) {
    as_constant(b.whole[g / kGridGroup] && g + kGridGroup <= count, [&](auto whole) __attribute__((always_inline)) {
      for (int64_t i = g; i < g + kGridGroup && (whole.value || i < count); i += N) {
        load_four<beside, whole.value>(x, b, i, v);
        f(i, whole.value || i + N <= count ? N : count - i, v);
      }
    });
  }
}

template <class T>
void read_planes(const GridPlanes<const T>& x, const GridBlock<T>& b, const GridPlanes<T>& y) {
  using V = Vec<T>;
  for (int64_t p = 0; p < x.count; ++p) {
    const T* const from = x.data + p * x.step;
    T* const to = y.data + p * y.step;
    if (b.nearest) {
      each_vector<T>(b.count, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
        const V v = load_each(from, b.rows[0] + i, std::make_integer_sequence<int, V::N>{});
        store_row<T>(masked(v, V::load(b.masks[0] + i)), to + i, n);
      });
      continue;
    }
    as_constant(b.right == 1, [&](auto beside) __attribute__((always_inline)) {
      each_four<beside.value>(from, b, [&](int64_t i, int64_t n, const V(&v)[4]) __attribute__((always_inline)) {
        const V w[4] = {V::load(b.weights[0] + i), V::load(b.weights[1] + i), V::load(b.weights[2] + i),
                        V::load(b.weights[3] + i)};
        store_row<T>(weighted<T>(v, w), to + i, n);
      });
    });
  }
}

/// Adds to `count` planes at once: sums that follow each other at one element, which wait for each other, are as many.
template <int count, class T>
VESTA_INLINE void add_some_planes(const T* g, int64_t g_step, const GridBlock<T>& b, T* gx, int64_t step) {
  const auto add = [&](int64_t i, int k, int64_t at) __attribute__((always_inline)) {
    const T w = b.weights[k][i];
#pragma GCC unroll 4
    for (int p = 0; p < count; ++p) gx[p * step + at] += g[p * g_step + i] * w;
  };
  for (int64_t i = 0; i < b.count; ++i) {
    const int64_t first = b.rows[0][i], second = b.rows[1][i];
    if (b.whole[i / kGridGroup]) {
      add(i, 0, first), add(i, 1, second), add(i, 2, first + b.right), add(i, 3, second + b.right);
      continue;
    }
    if (is_read(b.masks[0][i])) add(i, 0, first);
    if (is_read(b.masks[1][i])) add(i, 1, second);
    if (is_read(b.masks[2][i])) add(i, 2, first + b.right);
    if (is_read(b.masks[3][i])) add(i, 3, second + b.right);
  }
}

template <class T>
void add_planes(const GridPlanes<const T>& g, const GridBlock<T>& b, const GridPlanes<T>& gx) {
  int64_t p = 0;
  if (b.nearest) {
    for (; p < g.count; ++p) {
      for (int64_t i = 0; i < b.count; ++i) {
        if (is_read(b.masks[0][i])) gx.data[p * gx.step + b.rows[0][i]] += g.data[p * g.step + i];
      }
    }
    return;
  }
  const auto some = [&]<int count>(std::integral_constant<int, count>) __attribute__((always_inline)) {
    for (; p + count <= g.count; p += count) {
      add_some_planes<count>(g.data + p * g.step, g.step, b, gx.data + p * gx.step, gx.step);
    }
  };
  some(std::integral_constant<int, 4>{}), some(std::integral_constant<int, 3>{});
  some(std::integral_constant<int, 2>{}), some(std::integral_constant<int, 1>{});
}

/// The numbers by which neighbours make the slopes of an output along the columns and along the rows.
template <class T>
struct Slopes {
  Vec<T> rows[2], columns[2], signs[2];
  VESTA_INLINE Vec<T> along_columns(const Vec<T> (&v)[4]) const {
    return rows[0] * (signs[0] * v[0] + signs[1] * v[2]) + rows[1] * (signs[0] * v[1] + signs[1] * v[3]);
  }
  VESTA_INLINE Vec<T> along_rows(const Vec<T> (&v)[4]) const {
    return (columns[0] * v[1] + columns[1] * v[3]) - (columns[0] * v[0] + columns[1] * v[2]);
  }
};

template <class T>
void slopes_of_planes(const GridPlanes<const T>& g, const GridPlanes<const T>& x, const GridBlock<T>& b, T* grad_grid) {
  using V = Vec<T>;
  alignas(64) T sums[2][kGridChains][kGridPlaces];
  int64_t chains = kGridChains;  // the others are 0, and zeros change nothing
  while (chains / 2 >= x.count && chains > 1) chains /= 2;
  const int64_t all = (b.count + kGridGroup - 1) / kGridGroup * kGridGroup;
  for (int64_t k = 0; k < chains; ++k) {
    for (int64_t i = 0; i < all; ++i) sums[0][k][i] = sums[1][k][i] = T(0);
  }
  for (int64_t p = 0; p < x.count; ++p) {
    T *const to_x = sums[0][p % kGridChains], *const to_y = sums[1][p % kGridChains];
    as_constant(b.right == 1, [&](auto beside) __attribute__((always_inline)) {
      each_four<beside.value>(
          x.data + p * x.step, b, [&](int64_t i, int64_t n, const V(&v)[4]) __attribute__((always_inline)) {
            const auto two = [&](const T(&from)[2][kGridPlaces], V(&to)[2]) __attribute__((always_inline)) {
              to[0] = V::load(from[0] + i), to[1] = V::load(from[1] + i);
            };
            Slopes<T> s;
            two(b.row_weights, s.rows), two(b.column_weights, s.columns), two(b.column_slopes, s.signs);
            const V slope = load_row<T>(g.data + p * g.step + i, n);
            (V::load(to_x + i) + slope * s.along_columns(v)).store(to_x + i);
            (V::load(to_y + i) + slope * s.along_rows(v)).store(to_y + i);
          });
    });
  }
  for (int64_t half = chains / 2; half; half /= 2) {
    for (int d = 0; d < 2; ++d) {
      for (int64_t k = 0; k < half; ++k) {
        for (int64_t i = 0; i < all; ++i) sums[d][k][i] += sums[d][k + half][i];
      }
    }
  }
  for (int64_t i = 0; i < b.count; ++i) {
    grad_grid[2 * i] = sums[0][0][i] * b.slopes[0][i], grad_grid[2 * i + 1] = sums[1][0][i] * b.slopes[1][i];
  }
}

// ---- pixels ----

/// The four pixels that a position reads; null for those outside.
template <class T>
struct FourPixels {
  T* at[4];
  VESTA_INLINE FourPixels(const GridPixels<T>& x, const GridBlock<std::remove_const_t<T>>& b, int64_t i) {
    for (int k = 0; k < 4; ++k) {
      const bool read = is_read(b.masks[k][i]);
      at[k] = read ? x.data + b.rows[k % 2][i] + k / 2 * b.right : nullptr;
    }
  }
  /// Loads n channels of each; those outside are 0.
  template <bool whole, class V>
  VESTA_INLINE void load(int64_t c, int64_t n, V (&v)[4]) const {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      v[k] = whole || at[k] ? load_row<typename V::value_type>(at[k] + c, n) : V(typename V::value_type(0));
    }
  }
};

template <class T>
void read_pixels(const GridPixels<const T>& x, const GridBlock<T>& b, T* y) {
  using V = Vec<T>;
  for (int64_t i = 0; i < b.count; ++i, y += x.count) {
    if (b.nearest) {
      const bool read = is_read(b.masks[0][i]);
      const T* const from = x.data + b.rows[0][i];
      each_vector<T>(x.count,
                     [&](int64_t c, int64_t n) { store_row<T>(read ? load_row<T>(from + c, n) : V(T(0)), y + c, n); });
      continue;
    }
    const FourPixels<const T> four(x, b, i);
    const V w[4] = {b.weights[0][i], b.weights[1][i], b.weights[2][i], b.weights[3][i]};
    as_constant(b.whole[i / kGridGroup], [&](auto whole) __attribute__((always_inline)) {
      each_vector<T>(x.count, [&](int64_t c, int64_t n) __attribute__((always_inline)) {
        V v[4];
        four.template load<whole.value>(c, n, v);
        store_row<T>(weighted<T>(v, w), y + c, n);
      });
    });
  }
}

template <class T>
void add_pixels(const T* g, const GridBlock<T>& b, const GridPixels<T>& gx) {
  using V = Vec<T>;
  for (int64_t i = 0; i < b.count; ++i, g += gx.count) {
    const auto add = [&](T* to, V w, bool times) __attribute__((always_inline)) {
      each_vector<T>(gx.count, [&](int64_t c, int64_t n) __attribute__((always_inline)) {
        const V v = load_row<T>(g + c, n);
        store_row<T>(load_row<T>(to + c, n) + (times ? v * w : v), to + c, n);
      });
    };
    if (b.nearest) {
      if (is_read(b.masks[0][i])) add(gx.data + b.rows[0][i], V(T(1)), false);
      continue;
    }
    const FourPixels<T> four(gx, b, i);
    for (int k = 0; k < 4; ++k) {
      if (four.at[k]) add(four.at[k], V(b.weights[k][i]), true);
    }
  }
}

template <class T>
void add_slopes_of_pixels(const T* g, const GridPixels<const T>& x, const GridBlock<T>& b, T* sums) {
  using V = Vec<T>;
  constexpr int kVectors = static_cast<int>(kGridChains) / V::N;
  for (int64_t i = 0; i < b.count; ++i, g += x.count) {
    const FourPixels<const T> four(x, b, i);
    Slopes<T> s;
    for (int k = 0; k < 2; ++k) {
      s.rows[k] = V(b.row_weights[k][i]), s.columns[k] = V(b.column_weights[k][i]);
      s.signs[k] = V(b.column_slopes[k][i]);
    }
    T *const to_x = sums + i * kGridChains, *const to_y = to_x + kGridPlaces * kGridChains;
    as_constant(b.whole[i / kGridGroup], [&](auto whole) __attribute__((always_inline)) {
      V along_x[kVectors], along_y[kVectors];
      for (int k = 0; k < kVectors; ++k) along_x[k] = V::load(to_x + k * V::N), along_y[k] = V::load(to_y + k * V::N);
      for (int64_t begin = 0; begin < x.count; begin += kGridChains) {
#pragma GCC unroll 8
        for (int k = 0; k < kVectors; ++k) {
          const int64_t c = begin + k * V::N, n = x.count - c < V::N ? x.count - c : V::N;
          if (n <= 0) break;
          V v[4];
          four.template load<whole.value>(c, n, v);
          const V slope = load_row<T>(g + c, n);
          along_x[k] = along_x[k] + slope * s.along_columns(v);
          along_y[k] = along_y[k] + slope * s.along_rows(v);
        }
      }
      for (int k = 0; k < kVectors; ++k) along_x[k].store(to_x + k * V::N), along_y[k].store(to_y + k * V::N);
    });
  }
}

template <class T>
void slopes_of_sums(T* sums, const GridBlock<T>& b, T* grad_grid) {
  for (int64_t i = 0; i < b.count; ++i) {
    for (int d = 0; d < 2; ++d) {
      T* const s = sums + (d * kGridPlaces + i) * kGridChains;
      for (int64_t half = kGridChains / 2; half; half /= 2) {
        for (int64_t k = 0; k < half; ++k) s[k] += s[k + half];
      }
      grad_grid[2 * i + d] = s[0] * b.slopes[d][i];
    }
  }
}

template <class T>
void enter_grid_sample(GridSampleKernels<T>& k) {
  static_assert(kGridGroup % Vec<T>::N == 0 && kGridChains % Vec<T>::N == 0);
  k = {&find<T>,       &read_planes<T>,      &read_pixels<T>,          &add_planes<T>,
       &add_pixels<T>, &slopes_of_planes<T>, &add_slopes_of_pixels<T>, &slopes_of_sums<T>};
}

}  // namespace

void register_grid_sample(GridSampleKernels<float>& singles, GridSampleKernels<double>& doubles) {
  enter_grid_sample(singles);
  enter_grid_sample(doubles);
}

}  // namespace vesta::cpu::VESTA_ISA_NS
