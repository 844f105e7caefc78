// Sparse matrices times dimensions of a tensor. Where 16 bytes of neighbours lie behind the dimensions (pixels), a
// thread has these of one result and reads all its terms. Where a line lies innermost, a block makes the lines that
// its results are made of in shared memory, which are results of the first matrix, and the results from there: the
// indices and weights of a column are read once for all lines. One thread per result for what is left.
#include <vesta/cuda/kernels/resample.h>

#include <algorithm>

#include <vesta/cuda/kernels/alignment.h>
#include <vesta/cuda/kernels/packs.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kResampleThreads = 256;
constexpr int64_t kIndexes = int64_t(1) << 31;

template <class T>
constexpr int kResamplePack = int(16 / sizeof(T));

/// The row of a matrix. C is the type of computation.
template <class C>
struct ResampleTerms {
  const int64_t* places;  // null: one term, the element of the same index
  const C* weights;
  uint32_t count, own;

  VESTA_DEVICE ResampleTerms(const ResampleAxis& axis, uint32_t row)
      : places(nullptr), weights(nullptr), count(1), own(row) {
    if (!axis.rows) return;
    const uint32_t first = uint32_t(axis.rows[row]);
    count = uint32_t(axis.rows[row + 1]) - first;
    places = axis.rows + axis.size + 1 + first;
    weights = static_cast<const C*>(axis.weights) + first;
  }
  VESTA_DEVICE uint32_t place(uint32_t k) const { return places ? uint32_t(places[k]) : own; }
  VESTA_DEVICE C weight(uint32_t k) const { return places ? weights[k] : C(1); }
  /// Returns k, or the last term where there is no k-th: a load that is made in any case waits for no other.
  VESTA_DEVICE uint32_t inside(uint32_t k) const { return k < count ? k : count - 1; }
  /// Returns what a sum begins with: -0, which adds nothing, or 0 if there is no term.
  VESTA_DEVICE C start() const { return count ? C(-0.0) : C(0); }
};

/// A launch with prepared divisors. `packs` are 16 bytes of a pixel, or of an input's line.
struct ResampleArgs {
  ResampleLaunch l;
  FastDivisor packs, width, height;
  // of launches by lines
  FastDivisor items, inner;
  uint32_t lines = 0, rows = 0, groups = 0;
  bool packed = false, paired = false;
  explicit ResampleArgs(const ResampleLaunch& launch) : l(launch) {}
};

/// Computes the results of pixels. A thread has a pack of a result and loads terms x terms of its packs at a time.
template <class T, int terms>
VESTA_KERNEL void VESTA_BOUNDS(kResampleThreads, (terms == 1 ? 5 : 4) - int(sizeof(T) == 2))
    resample_pixels_kernel(ResampleArgs a, uint32_t n) {
  using C = compute_of<T>;
  constexpr int N = kResamplePack<T>;
  const uint32_t i = global_index();
  if (i >= n) return;
  const uint32_t pixel = a.packs.divide(i), line = a.width.divide(pixel), outer = a.height.divide(line);
  const ResampleTerms<C> down(a.l.down, line - outer * a.height.divisor);
  const ResampleTerms<C> along(a.l.along, pixel - line * a.width.divisor);
  const uint32_t inner = uint32_t(a.l.inner), wide = uint32_t(a.l.along.in) * inner;
  const T* const x = static_cast<const T*>(a.l.input) + int64_t(outer) * a.l.down.in * wide +
                     (i - pixel * a.packs.divisor) * uint32_t(N);
  C sum[N];
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) sum[j] = along.start();
  VESTA_ROLLED
  for (uint32_t k = 0; k < along.count; k += terms) {
    uint32_t columns[terms];
    C column_weights[terms], column[terms][N];
    VESTA_UNROLL
    for (uint32_t c = 0; c < terms; ++c) {
      const uint32_t t = along.inside(k + c);
      columns[c] = along.place(t) * inner, column_weights[c] = along.weight(t);
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) column[c][j] = down.start();
    }
    VESTA_ROLLED
    for (uint32_t m = 0; m < down.count; m += terms) {
      Elements<T, N> packs[terms][terms];
      C weights[terms];
      VESTA_UNROLL
      for (uint32_t r = 0; r < terms; ++r) {
        const uint32_t t = down.inside(m + r);
        const T* const row = x + down.place(t) * wide;
        weights[r] = down.weight(t);
        VESTA_UNROLL
        for (uint32_t c = 0; c < terms; ++c) {
          packs[r][c] = *reinterpret_cast<const Elements<T, N>*>(row + columns[c]);
        }
      }
      VESTA_UNROLL
      for (uint32_t r = 0; r < terms; ++r) {
        const bool there = m + r < down.count;  // a choice: a branch would draw the loads behind it
        VESTA_UNROLL
        for (uint32_t c = 0; c < terms; ++c) {
          C v[N];
          widen<T, N>(packs[r][c], v);
          VESTA_UNROLL
          for (int j = 0; j < N; ++j) {
            const C next = column[c][j] + weights[r] * v[j];
            column[c][j] = r == 0 || there ? next : column[c][j];
          }
        }
      }
    }
    VESTA_UNROLL
    for (uint32_t c = 0; c < terms; ++c) {
      if (k + c >= along.count) break;
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) sum[j] = sum[j] + column_weights[c] * column[c][j];
    }
  }
  store_whole(static_cast<T*>(a.l.result) + int64_t(i) * N, narrowed<T, N>(sum));
}

/// Writes to `held` the lines that the block's results are made of, N elements at a time.
template <int N, class T, class C = compute_of<T>>
VESTA_DEVICE void hold_lines(const ResampleArgs& a, uint32_t first, uint32_t rows, uint32_t wide, C* held) {
  for (uint32_t i = threadIdx.x; i < rows * a.packs.divisor; i += blockDim.x) {
    const uint32_t row = a.packs.divide(i), at = (i - row * a.packs.divisor) * N;
    const uint32_t line = first + row, outer = a.height.divide(line);
    const ResampleTerms<C> down(a.l.down, line - outer * a.height.divisor);
    const T* const x = static_cast<const T*>(a.l.input) + int64_t(outer) * a.l.down.in * wide + at;
    C sum[N];
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) sum[j] = down.start();
    VESTA_ROLLED
    for (uint32_t k = 0; k < down.count; k += 2) {
      const bool two = k + 1 < down.count;
      const uint32_t other = down.inside(k + 1), place = down.place(k), next_place = down.place(other);
      const C weight = down.weight(k), next_weight = down.weight(other);
      const auto pack = *reinterpret_cast<const Elements<T, N>*>(x + int64_t(place) * wide);
      const auto next = *reinterpret_cast<const Elements<T, N>*>(x + int64_t(next_place) * wide);
      C v[N];
      widen<T, N>(pack, v);
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) sum[j] = sum[j] + weight * v[j];
      if (!two) continue;
      widen<T, N>(next, v);
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) sum[j] = sum[j] + next_weight * v[j];
    }
    constexpr int M = N * sizeof(C) <= 16 ? N : int(16 / sizeof(C));
    VESTA_UNROLL
    for (int j = 0; j < N; j += M) {
      Elements<C, M> part;
      VESTA_UNROLL
      for (int m = 0; m < M; ++m) part.v[m] = sum[j + m];
      *reinterpret_cast<Elements<C, M>*>(held + row * wide + at + j) = part;
    }
  }
}

/// A result's terms along a line; the first `kept` in registers.
template <class C, int kept>
struct HeldTerms {
  ResampleTerms<C> terms;
  uint32_t inner, channel, places[kept];
  C weights[kept];

  VESTA_DEVICE HeldTerms(const ResampleAxis& axis, uint32_t row, uint32_t step, uint32_t c)
      : terms(axis, row), inner(step), channel(c) {
    const auto keep = [&](uint32_t k) {
      const uint32_t t = terms.inside(k);
      places[k] = at(t), weights[k] = terms.weight(t);
    };
    if (terms.count == 0) return;
    keep(0), keep(1);
    if (terms.count <= 2) return;
    VESTA_UNROLL
    for (uint32_t k = 2; k < kept; ++k) keep(k);
  }
  VESTA_DEVICE uint32_t at(uint32_t k) const { return terms.place(k) * inner + channel; }
  VESTA_DEVICE C sum_of(const C* line) const {
    C sum = terms.start();
    const auto add_kept = [&](uint32_t k) {
      if (k < terms.count) sum = sum + weights[k] * line[places[k]];
    };
    add_kept(0), add_kept(1);
    if (terms.count <= 2) return sum;
    add_kept(2), add_kept(3);
    if constexpr (kept > 4) {
      if (terms.count <= 4) return sum;
      VESTA_UNROLL
      for (uint32_t k = 4; k < kept; ++k) add_kept(k);
    }
    VESTA_ROLLED
    for (uint32_t k = kept; k < terms.count; ++k) sum = sum + terms.weight(k) * line[at(k)];
    return sum;
  }
};

/// Computes `rows` lines of results. A thread has one or two neighbours (4 bytes) in each of some lines.
template <class T>
VESTA_KERNEL void resample_lines_kernel(ResampleArgs a) {
  using C = compute_of<T>;
  constexpr uint32_t V = sizeof(T) >= 4 ? 1 : 2;
  VESTA_DYNAMIC_SHARED(C, held);
  const uint32_t first = blockIdx.x * a.rows, rows = a.lines - first < a.rows ? a.lines - first : a.rows;
  const uint32_t inner = a.inner.divisor, wide = uint32_t(a.l.along.in) * inner;
  const uint32_t out_wide = uint32_t(a.l.along.size) * inner;
  if (a.packed) hold_lines<kResamplePack<T>, T>(a, first, rows, wide, held);
  else hold_lines<1, T>(a, first, rows, wide, held);
  block_barrier();
  const uint32_t items = a.items.divisor, group = a.groups == 1 ? 0 : a.items.divide(threadIdx.x);
  if (group >= a.groups) return;
  for (uint32_t q = threadIdx.x - group * items; q < items; q += blockDim.x) {
    const uint32_t e = q * V, p = a.inner.divide(e);
    const bool two = V == 2 && e + 1 < out_wide;
    const uint32_t other = two ? e + 1 : e, other_p = a.inner.divide(other);
    constexpr int kKept = V == 1 ? 8 : 4;
    const HeldTerms<C, kKept> terms(a.l.along, p, inner, e - p * inner);
    const HeldTerms<C, kKept> other_terms(a.l.along, other_p, inner, other - other_p * inner);
    T* y = static_cast<T*>(a.l.result) + int64_t(first + group) * out_wide + e;
    const C* line = held + group * wide;
    for (uint32_t r = group; r < rows; r += a.groups, y += a.groups * out_wide, line += a.groups * wide) {
      if constexpr (V == 1) {
        *y = convert<T>(terms.sum_of(line));
      } else {
        const C sums[] = {terms.sum_of(line), other_terms.sum_of(line)};
        const Elements<T, 2> pair = narrowed<T, 2>(sums);
        if (a.paired) {
          *reinterpret_cast<Elements<T, 2>*>(y) = pair;
        } else {
          y[0] = pair.v[0];
          if (two) y[1] = pair.v[1];
        }
      }
    }
  }
}

/// One matrix, any sizes: [outer, in, inner], a thread per result.
template <class T>
VESTA_KERNEL void resample_kernel(ResampleLaunch l, int64_t n) {
  using C = compute_of<T>;
  const int64_t* const places = l.down.rows + l.down.size + 1;
  const C* const weights = static_cast<const C*>(l.down.weights);
  for (int64_t i = int64_t(global_index()); i < n; i += int64_t(gridDim.x) * blockDim.x) {
    const int64_t line = i / l.inner, at = i - line * l.inner, outer = line / l.down.size;
    const int64_t row = line - outer * l.down.size, first = l.down.rows[row], last = l.down.rows[row + 1];
    const T* const x = static_cast<const T*>(l.input) + outer * l.down.in * l.inner + at;
    C sum = first < last ? C(-0.0) : C(0);
    VESTA_ROLLED
    for (int64_t k = first; k < last; ++k) sum = sum + weights[k] * convert<C>(x[places[k] * l.inner]);
    static_cast<T*>(l.result)[i] = convert<T>(sum);
  }
}

/// Queues a launch over pixels, if sizes and alignment allow it and it does not read much more than it must.
template <class T>
bool run_pixels(const ResampleLaunch& l) {
  constexpr int N = kResamplePack<T>;
  const ResampleAxis &down = l.down, &along = l.along;
  const int64_t packs = l.inner / N, n = l.outer * down.size * along.size * packs;
  const bool is_packed = l.inner % N == 0 && is_aligned(l.input, 16) && is_aligned(l.result, 16);
  if (!is_packed || n >= kIndexes || down.in * along.in * l.inner >= kIndexes) return false;
  // Windows that lie apart read each element once, however many there are.
  const double reads = double(down.terms) * double(along.terms);
  if (down.rows && along.rows && reads > 16.0 * double(down.size) * double(along.size) &&
      reads > 2.0 * double(down.in) * double(along.in))
    return false;
  ResampleArgs a(l);
  a.packs = FastDivisor(uint32_t(packs));
  a.width = FastDivisor(uint32_t(along.size)), a.height = FastDivisor(uint32_t(down.size));
  const LaunchShape shape = linear_shape(uint64_t(n), kResampleThreads, l.stream);
  const bool is_single = down.terms <= down.size && along.terms <= along.size;
  if (is_single) launch_independent(l.name, resample_pixels_kernel<T, 1>, shape, a, uint32_t(n));
  else launch_independent(l.name, resample_pixels_kernel<T, 2>, shape, a, uint32_t(n));
  return true;
}

/// Queues a launch over lines, if a line fits into shared memory.
template <class T>
bool run_lines(const ResampleLaunch& l) {
  using C = compute_of<T>;
  constexpr int64_t V = sizeof(T) >= 4 ? 1 : 2, kShared = 48 * 1024, kUsual = 24 * 1024, kBlocks = 1024, kEach = 8;
  const int64_t wide = l.along.in * l.inner, out_wide = l.along.size * l.inner, lines = l.outer * l.down.size;
  if (wide * int64_t(sizeof(C)) > kShared || out_wide >= kIndexes || lines >= kIndexes) return false;
  ResampleArgs a(l);
  a.packed = wide % kResamplePack<T> == 0 && is_aligned(l.input, 16);
  a.paired = out_wide % V == 0 && is_aligned(l.result, sizeof(T) * V);
  a.packs = FastDivisor(uint32_t(a.packed ? wide / kResamplePack<T> : wide));
  a.height = FastDivisor(uint32_t(l.down.size)), a.inner = FastDivisor(uint32_t(l.inner));
  const int64_t items = (out_wide + V - 1) / V, rounds = (items + kResampleThreads - 1) / kResampleThreads;
  a.items = FastDivisor(uint32_t(items)), a.groups = uint32_t(std::max<int64_t>(1, kResampleThreads / items));
  const int64_t threads = rounds > 1 ? (items + rounds - 1) / rounds : a.groups * items;
  // Lines of a block: some for each thread, but little memory, and blocks for all multiprocessors.
  int64_t rows = std::min<int64_t>(a.groups * kEach, std::max<int64_t>(1, kUsual / (wide * int64_t(sizeof(C)))));
  rows = std::clamp<int64_t>(lines / kBlocks, std::min<int64_t>(rows, a.groups), rows);
  a.lines = uint32_t(lines), a.rows = uint32_t(rows);
  LaunchShape shape;
  shape.stream = l.stream, shape.grid[0] = unsigned((lines + rows - 1) / rows);
  shape.block[0] = unsigned((threads + 31) / 32 * 32), shape.shared_bytes = unsigned(rows * wide * int64_t(sizeof(C)));
  launch_block(l.name, resample_lines_kernel<T>, shape, a);
  return true;
}

}  // namespace

bool run_resample(const ResampleLaunch& l) {
  const bool both = l.down.rows && l.along.rows;
  const auto is_small = [](const ResampleAxis& axis) {
    return axis.terms < kIndexes && axis.size < kIndexes && axis.in > 0 && axis.in < kIndexes;
  };
  bool queued = false;
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    queued = is_small(l.down) && is_small(l.along) && (run_pixels<T>(l) || run_lines<T>(l));
    if (queued || both) return;
    ResampleLaunch one = l;
    if (l.along.rows) one.down = l.along, one.outer *= l.down.size;
    else one.inner *= l.along.in;
    const int64_t n = one.outer * one.down.size * one.inner;
    const LaunchShape shape = linear_shape(uint64_t(std::min<int64_t>(n, 1 << 30)), kResampleThreads, l.stream);
    launch_independent(l.name, resample_kernel<T>, shape, one, n);
  });
  return queued || !both;
}

}  // namespace vesta::cuda
