// A sparse matrix times a dimension of a tensor (core/ops/resample.h).
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <vesta/core/cpu/convert.h>
#include <vesta/core/cpu/non_temporal.h>
#include <vesta/core/cpu/isa.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/resample_kernels.h>
#include <vesta/core/cpu/scratch.h>
#include <vesta/core/cpu/tensor_memory.h>
#include <vesta/core/dtype_set.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/resample.h>

namespace vesta::cpu {
namespace {

constexpr int64_t kBlock = 512;  // elements of a sum that stay in the cache
constexpr int64_t kLeastLines = 8;  // lines that repay the making of blocks
constexpr int64_t kLeastResults = 4;  // results of a block, on average, below which elements are better read one by one

ResampleKernels<float> single_resamplers;
ResampleKernels<double> double_resamplers;
template <class T>
const ResampleKernels<T>& resample_kernels() {
  if constexpr (std::is_same_v<T, float>) return single_resamplers;
  else return double_resamplers;
}

/// The matrix and the tensor around it: [outer, in, inner] becomes [outer, size, inner].
template <class T>
struct Resampled {
  using C = compute_t<T>;
  const int64_t *starts, *places;
  const C* weights;
  int64_t in, size, inner;

  /// Writes result row `o`, elements [first, last) of the inner dimension.
  void row(const T* x, T* y, int64_t o, int64_t first, int64_t last) const {
    if constexpr (std::is_same_v<T, C>) {
      const int64_t k = starts[o];
      return resample_kernels<T>().row(x + first, inner, places + k, weights + k, starts[o + 1] - k,
                                       y + o * inner + first, last - first, 0);
    }
    C sums[kBlock];
    for (int64_t at = first; at < last; at += kBlock) {
      const int64_t n = std::min(kBlock, last - at);
      const int64_t begin = starts[o], end = starts[o + 1];
      if (end == begin) std::fill_n(sums, n, C(0));
      for (int64_t k = begin; k < end; ++k) {
        const T* from = x + places[k] * inner + at;
        const C w = weights[k];
        if (k == begin) {
          for (int64_t i = 0; i < n; ++i) sums[i] = w * static_cast<C>(from[i]);
        } else {
          for (int64_t i = 0; i < n; ++i) sums[i] += w * static_cast<C>(from[i]);
        }
      }
      T* to = y + o * inner + at;
      for (int64_t i = 0; i < n; ++i) to[i] = T(sums[i]);
    }
  }
  /// Writes results [first, last) of a line.
  void line(const T* x, T* y, int64_t first, int64_t last) const {
    for (int64_t o = first; o < last; ++o) {
      int64_t k = starts[o];
      C sum(0);
      if (k < starts[o + 1]) sum = weights[k] * static_cast<C>(x[places[k]]), ++k;
      for (; k < starts[o + 1]; ++k) sum += weights[k] * static_cast<C>(x[places[k]]);
      y[o] = T(sum);
    }
  }
};

/// The rows of a matrix as blocks, for lines of a dimension that lies innermost.
template <class T>
class Blocks {
 public:
  /// Makes the blocks of lines of which a window, and no element beyond, may be read.
  explicit Blocks(const Resampled<T>& p)
      : Blocks(p, p.in, 0, std::max<int64_t>(0, p.in - resample_kernels<T>().window)) {}
  /// Makes the blocks of `lines` lines that lie one after the other. Each is followed by a border of `border` elements,
  /// as the first one follows one, and the last one by a window.
  Blocks(const Resampled<T>& p, int64_t lines, int64_t border) : Blocks(of_several(p, lines, border), p.in, border) {}

  const ResampleBlock<T>* data() const { return blocks_.data(); }
  int64_t count() const { return int64_t(blocks_.size()); }
  /// Whether every row is in a block.
  bool complete() const { return complete_; }
  /// Whether every row is in a block, and there are few enough blocks.
  bool fit() const { return fit_; }
  /// Whether all blocks have as many results as there are lanes.
  bool whole() const { return whole_; }
  /// Computes a line. `room` is for `window` elements.
  void line(const T* x, T* y, T* room, bool non_temporal) const {
    if (in_ < resample_kernels<T>().window) x = std::copy_n(x, in_, room) - in_;
    resample_kernels<T>().line(x, blocks_.data(), int64_t(blocks_.size()), y, non_temporal);
  }

 private:
  using Block = ResampleBlock<T>;
  using Place = typename Block::Place;

  /// The rows of several lines.
  struct Several {
    std::vector<int64_t> starts{0}, places;
    std::vector<typename Resampled<T>::C> weights;
    int64_t in, size;
    Resampled<T> product() const { return {starts.data(), places.data(), weights.data(), in, size, 1}; }
  };
  static Several of_several(const Resampled<T>& p, int64_t lines, int64_t border) {
    Several s;
    const int64_t pitch = p.in + border;
    s.in = lines * pitch - border, s.size = lines * p.size;
    for (int64_t l = 0; l < lines; ++l) {
      for (int64_t o = 0; o < p.size; ++o) {
        for (int64_t k = p.starts[o]; k < p.starts[o + 1]; ++k) {
          s.places.push_back(l * pitch + p.places[k]), s.weights.push_back(p.weights[k]);
        }
        s.starts.push_back(int64_t(s.places.size()));
      }
    }
    return s;
  }
  Blocks(const Several& s, int64_t line, int64_t border) : Blocks(s.product(), line, border, s.in) {}

  /// `line`: the elements of one line; a block begins at element `last` at the latest.
  Blocks(const Resampled<T>& p, int64_t line, int64_t border, int64_t last) : in_(p.in), line_(line), border_(border) {
    const int64_t window = resample_kernels<T>().window;
    for (int64_t o = 0; o < p.size;) {
      ResampleBlock<T> block{};
      int64_t end = o, low = std::numeric_limits<int64_t>::max(), high = -1;
      while (end < p.size && end - o < resample_kernels<T>().lanes) {
        const int64_t terms = p.starts[end + 1] - p.starts[end];
        if (terms > kResampleTerms) return;
        int64_t least = low, most = high;
        for (int64_t k = p.starts[end]; k < p.starts[end + 1]; ++k) {
          least = std::min(least, p.places[k]), most = std::max(most, p.places[k]);
        }
        if (most - least >= window) break;  // a row without terms has no least
        low = least, high = most, block.terms = std::max(block.terms, int(terms)), ++end;
      }
      if (end == o) return;
      block.count = int(end - o);
      whole_ = whole_ && block.count == resample_kernels<T>().lanes;
      block.base = high < 0 ? 0 : std::min(low, last);
      fill(block, p, o);
      blocks_.push_back(block);
      o = end;
    }
    complete_ = true;
    fit_ = int64_t(blocks_.size()) * kLeastResults <= p.size;
  }

  void fill(Block& block, const Resampled<T>& p, int64_t o) const {
    for (auto& places : block.at) std::fill(std::begin(places), std::end(places), Place(-1));
    for (int i = 0; i < block.count; ++i) {
      const int64_t first = p.starts[o + i], terms = p.starts[o + i + 1] - first;
      for (int64_t k = 0; k < terms; ++k) {
        block.at[k][i] = Place(p.places[first + k] - block.base);
        block.weights[k][i] = p.weights[first + k];
      }
    }
    if (block.terms == 0) return;
    for (int i = block.count; i < resample_kernels<T>().lanes;
         ++i) {  // results that nobody stores are made of what is there
      for (int k = 0; k < block.terms; ++k) block.at[k][i] = block.at[k][block.count - 1];
    }
    block.kind = kind_of(block);
    if (block.kind == Block::Terms::some && border_ > 0) reach_into_border(block);
  }

  bool is_border(int64_t at) const { return at < 0 ? at >= -border_ : at % (line_ + border_) >= line_; }

  /// Lets terms that are left out read a border, where every lane's terms then lie beside those of its neighbours.
  void reach_into_border(Block& block) const {
    const auto terms_of = [&](int i) {
      int n = 0;
      while (n < block.terms && block.at[n][i] >= 0) ++n;
      return n;
    };
    int all = 0;
    while (terms_of(all) < block.terms) ++all;
    Block reaching = block;
    for (int i = 0; i < resample_kernels<T>().lanes; ++i) {
      const int terms = terms_of(i);
      const auto place = [&](int k) { return Place(block.at[k][all] + (i - all)); };
      int shift = 0;
      while (terms > 0 && shift + terms <= block.terms && place(shift) != block.at[0][i]) ++shift;
      if (shift + terms > block.terms) return;
      for (int k = 0; k < block.terms; ++k) {
        const bool is_term = k >= shift && k < shift + terms;
        if (is_term && place(k) != block.at[k - shift][i]) return;
        if (!is_term && i < block.count && !is_border(block.base + place(k))) return;
        reaching.at[k][i] = place(k);
        reaching.weights[k][i] = is_term ? block.weights[k - shift][i] : T(1);
      }
    }
    reaching.kind = Block::Terms::beside;
    block = reaching;
  }

  static typename Block::Terms kind_of(const Block& block) {
    using Terms = typename Block::Terms;
    const int lanes = resample_kernels<T>().lanes;
    bool all = true, near = true, beside = true;
    for (int k = 0; k < block.terms; ++k) {
      beside = beside && block.at[k][0] + lanes <= resample_kernels<T>().window;
      for (int i = 0; i < lanes; ++i) {
        all = all && block.at[k][i] >= 0;
        near = near && block.at[k][i] < lanes;
        beside = beside && (i >= block.count || block.at[k][i] == block.at[k][0] + i);
      }
    }
    return !all ? Terms::some : beside ? Terms::beside : near ? Terms::near : Terms::all;
  }

  std::vector<Block> blocks_;
  int64_t in_, line_, border_;
  bool complete_ = false, fit_ = false, whole_ = true;
};

/// Computes [outer, size] from [outer, in] where blocks pay; returns whether they do.
template <class T>
bool run_lines(const Resampled<T>& p, const T* x, T* y, int64_t outer, int64_t grain) {
  if constexpr (std::is_same_v<T, compute_t<T>>) {
    if (resample_kernels<T>().lanes == 0 || outer < kLeastLines || p.in == 0) return false;
    const Blocks<T> blocks(p);
    if (!blocks.fit()) return false;
    const bool non_temporal = blocks.whole() && rows_bypass_caches(y, outer, p.size * int64_t(sizeof(T)));
    parallel_for(outer, std::max<int64_t>(1, grain / p.size), [&](int64_t b, int64_t e) {
      T room[2 * kResampleLanes] = {};
      for (int64_t line = b; line < e; ++line) blocks.line(x + line * p.in, y + line * p.size, room, non_temporal);
      if (non_temporal) finish_non_temporal();
    });
    return true;
  }
  return false;
}

/// Checks that the matrix reads only what is there.
void check_rows(const int64_t* starts, const int64_t* places, int64_t size, int64_t count, int64_t in) {
  bool good = starts[0] == 0 && starts[size] == count;
  for (int64_t o = 0; o < size; ++o) good = good && starts[o] <= starts[o + 1];
  for (int64_t k = 0; k < count; ++k) good = good && places[k] >= 0 && places[k] < in;
  VESTA_CHECK(good, index, "_resample: rows that read outside of a dimension of ", in, " elements.");
}

/// Computes the product for an input whose memory is in the order of its dimensions; d counts from 0.
Tensor resample_dense(const Tensor& input, int64_t d, int64_t size, const Tensor& rows, const Tensor& weights) {
  const Tensor x = contiguous_values(input);
  Dims sizes(x.sizes());
  sizes[size_t(d)] = size;
  Tensor y = empty_tensor(sizes, x.dtype());
  const int64_t in = x.size(d);
  int64_t outer = 1, inner = 1;
  for (int64_t i = 0; i < d; ++i) outer *= x.size(i);
  for (int64_t i = d + 1; i < x.dim(); ++i) inner *= x.size(i);
  const int64_t* starts = elements<int64_t>(rows);
  check_rows(starts, starts + size + 1, size, weights.numel(), in);
  if (y.numel() == 0) return y;
  const int64_t work = std::max<int64_t>(1, inner * (1 + weights.numel() / size));  // per row
  visit<kFloats>(x.dtype(), [&]<class T>() {
    const Resampled<T> p{starts, starts + size + 1, elements<compute_t<T>>(weights), in, size, inner};
    const T* from = elements<T>(x);
    T* to = elements<T>(y);
    if (inner == 1 && run_lines(p, from, to, outer, std::max<int64_t>(1, 16384 / work))) return;
    parallel_for(outer * size, std::max<int64_t>(1, 16384 / work), [&](int64_t b, int64_t e) {
      while (b < e) {
        const int64_t line = b / size, first = b - line * size, last = std::min(size, first + e - b);
        const T* a = from + line * in * inner;
        T* r = to + line * size * inner;
        if (inner == 1) p.line(a, r, first, last);
        else
          for (int64_t o = first; o < last; ++o) p.row(a, r, o, 0, inner);
        b += last - first;
      }
    });
  });
  return y;
}

Tensor resample_kernel(const Tensor& input, int64_t dim, int64_t size, const Tensor& rows, const Tensor& weights,
                       MaybeTensor, MaybeTensor) {
  const int64_t d = check_resample(input, dim, size, rows, weights);
  if (suggests_channels_last(input)) {  // the same product in the order of the memory
    const int64_t at = d == 0 ? 0 : d == 1 ? input.dim() - 1 : d - 1;
    const Tensor pixels = channels_behind(dense_image(input, true));
    return channels_second(resample_dense(pixels, at, size, rows, weights));
  }
  return resample_dense(input, d, size, rows, weights);
}

/// Two matrices for two neighbouring dimensions of [outer, in, width, inner]: a result's row is made of a row that
/// stays in the cache. T is float or double.
template <class T>
class ResampledPlanes {
 public:
  ResampledPlanes(const Resampled<T>& down, const Resampled<T>& along)
      : down_(down),
        along_(along),
        border_(border_of(along)),
        lines_(lines_together(down, along, border_)),
        line_(along, 1, border_),
        together_(along, lines_, border_) {
    blocks_ = along.inner == 1 && resample_kernels<T>().lanes > 0 && line_.complete() && together_.fit();
  }

  int64_t in() const { return down_.in * down_.inner; }
  int64_t out() const { return down_.size * along_.size * along_.inner; }
  /// Returns rows [first, last) of the input that rows [begin, end) of the result are made of.
  std::pair<int64_t, int64_t> sources(int64_t begin, int64_t end) const {
    int64_t first = down_.in, last = 0;
    for (int64_t k = down_.starts[begin]; k < down_.starts[end]; ++k) {
      first = std::min(first, down_.places[k]), last = std::max(last, down_.places[k] + 1);
    }
    return {std::min(first, last), last};
  }

  /// Whether `planes` results at y bypass the caches.
  bool bypasses_caches(const T* y, int64_t planes) const {
    return blocks_ && line_.whole() && together_.whole() &&
           rows_bypass_caches(y, planes * down_.size, along_.size * int64_t(sizeof(T)));
  }

  /// Writes rows [begin, end) of the result; x and y are where the plane begins.
  void run(const T* x, T* y, int64_t begin, int64_t end, bool non_temporal) const {
    const int64_t width = down_.inner, window = resample_kernels<T>().window;  // 0 where there are no blocks
    const int64_t pitch = width + border_;
    constexpr int64_t kRows = 8, kRoom = 4096;  // elements that stay in the first cache
    const int64_t rows =
        blocks_ ? lines_ * std::clamp<int64_t>(kRoom / std::max<int64_t>(1, lines_ * width), 1, kRows) : 1;
    const int64_t size = border_ + rows * pitch + window;
    T* const scratch = static_cast<T*>(thread_scratch(Scratch::operand_a, sizeof(T) * size_t(size)));
    T* const room = scratch + border_;
    if (blocks_) {
      for (int64_t r = 0; r <= rows && border_ > 0; ++r) std::fill_n(scratch + r * pitch, border_, T(-0.0));
      std::fill_n(room + rows * pitch, window, T(0));
      const ResamplePlane<T> p{x,
                               y,
                               width,
                               along_.size,
                               down_.starts,
                               down_.places,
                               down_.weights,
                               line_.data(),
                               together_.data(),
                               line_.count(),
                               together_.count(),
                               lines_,
                               rows,
                               pitch,
                               room,
                               non_temporal};
      resample_kernels<T>().plane(p, begin, end);
      if (non_temporal) finish_non_temporal();
      return;
    }
    for (int64_t o = begin; o < end; ++o) {
      // What the next row is made of is asked for (build/bin/bandwidth 'avg_pool2d, pixels').
      const int64_t k = down_.starts[o], terms = down_.starts[o + 1] - k;
      const bool more = o + 1 < down_.size && terms > 0 && down_.starts[o + 2] > k + terms;
      const int64_t ahead = more ? (down_.places[k + terms] - down_.places[k]) * width : 0;
      resample_kernels<T>().row(x, width, down_.places + k, down_.weights + k, terms, room, width, ahead);
      T* const to = y + o * along_.size * along_.inner;
      if (along_.inner == 1) along_.line(room, to, 0, along_.size);
      else
        for (int64_t c = 0; c < along_.size; ++c) along_.row(room, to, c, 0, along_.inner);
    }
  }

 private:
  /// Returns the elements beside a line that its first and last results would read if they had all terms.
  static int64_t border_of(const Resampled<T>& along) {
    int64_t least = kResampleTerms, most = 0;
    for (int64_t o = 0; o < along.size; ++o) {
      const int64_t terms = along.starts[o + 1] - along.starts[o];
      least = std::min(least, terms), most = std::max(most, terms);
    }
    if (least == 0 || most > kResampleTerms || least >= most) return 0;
    // Lines that are long enough begin at whole vectors.
    return along.in >= resample_kernels<T>().window ? kResampleLanes : most - least;
  }
  /// Returns how many lines fill the lanes of a block.
  static int64_t lines_together(const Resampled<T>& down, const Resampled<T>& along, int64_t border) {
    return std::clamp<int64_t>(std::min(resample_kernels<T>().lanes / std::max<int64_t>(1, along.size),
                                        resample_kernels<T>().window / std::max<int64_t>(1, along.in + border)),
                               1, std::max<int64_t>(1, down.size));
  }

  Resampled<T> down_, along_;
  int64_t border_, lines_;
  Blocks<T> line_, together_;
  bool blocks_;
};

/// Computes both products for an input whose memory is in the order of its dimensions. 16-bit floats are widened where
/// they are needed, row by row of a plane, and rounded once.
Tensor resample_planes_dense(const Tensor& input, int64_t d, IntList size, const Tensor& rows, const Tensor& weights,
                             const Tensor& columns, const Tensor& column_weights) {
  const Tensor x = contiguous_values(input);
  Dims sizes(x.sizes());
  sizes[size_t(d)] = size[0], sizes[size_t(d + 1)] = size[1];
  Tensor y = empty_tensor(sizes, x.dtype());
  const int64_t high = x.size(d), wide = x.size(d + 1);
  const int64_t *const starts = elements<int64_t>(rows), *const column_starts = elements<int64_t>(columns);
  check_rows(starts, starts + size[0] + 1, size[0], weights.numel(), high);
  check_rows(column_starts, column_starts + size[1] + 1, size[1], column_weights.numel(), wide);
  if (y.numel() == 0) return y;
  int64_t outer = 1, inner = 1;
  for (int64_t i = 0; i < d; ++i) outer *= x.size(i);
  for (int64_t i = d + 2; i < x.dim(); ++i) inner *= x.size(i);
  visit<kFloats>(x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const ResampledPlanes<C> p(
        {starts, starts + size[0] + 1, elements<C>(weights), high, size[0], wide * inner},
        {column_starts, column_starts + size[1] + 1, elements<C>(column_weights), wide, size[1], inner});
    const T* const from = elements<T>(x);
    T* const to = elements<T>(y);
    const int64_t out_row = size[1] * inner;
    bool non_temporal = false;
    if constexpr (std::is_same_v<T, C>) non_temporal = p.bypasses_caches(to, outer);
    const int64_t work = inner * (wide * (1 + weights.numel() / size[0]) + size[1] + column_weights.numel());  // a row
    parallel_for(outer * size[0], std::max<int64_t>(1, 32768 / std::max<int64_t>(work, 1)), [&](int64_t b, int64_t e) {
      while (b < e) {
        const int64_t plane = b / size[0], first = b - plane * size[0], last = std::min(size[0], first + e - b);
        const T* const a = from + plane * p.in();
        T* const r = to + plane * p.out();
        if constexpr (std::is_same_v<T, C>) {
          p.run(a, r, first, last, non_temporal);
        } else {
          const auto [low, top] = p.sources(first, last);
          const int64_t row = wide * inner, n = (top - low) * row, results = (last - first) * out_row;
          C* const widened = static_cast<C*>(thread_scratch(Scratch::input, sizeof(C) * size_t(n + 1)));
          C* const sums = static_cast<C*>(thread_scratch(Scratch::output, sizeof(C) * size_t(results)));
          convert(x.dtype(), dtype_of<C>)(reinterpret_cast<const char*>(a + low * row), sizeof(T),
                                          reinterpret_cast<char*>(widened), sizeof(C), n);
          p.run(widened - low * row, sums - first * out_row, first, last, false);
          convert(dtype_of<C>, x.dtype())(reinterpret_cast<const char*>(sums), sizeof(C),
                                          reinterpret_cast<char*>(r + first * out_row), sizeof(T), results);
        }
        b += last - first;
      }
    });
  });
  return y;
}

Tensor resample_planes_kernel(const Tensor& input, int64_t dim, IntList size, const Tensor& rows, const Tensor& weights,
                              const Tensor& columns, const Tensor& column_weights, MaybeTensor, MaybeTensor,
                              MaybeTensor, MaybeTensor) {
  const int64_t d = check_resample_planes(input, dim, size, rows, weights, columns, column_weights);
  if (d >= 2 && suggests_channels_last(input)) {
    const Tensor pixels = channels_behind(dense_image(input, true));
    return channels_second(resample_planes_dense(pixels, d - 1, size, rows, weights, columns, column_weights));
  }
  const Tensor y = resample_planes_dense(input, d, size, rows, weights, columns, column_weights);
  return suggests_channels_last(input) ? dense_image(y, true) : y;
}

}  // namespace

void register_resample() {
  VESTA_ON_ISA(register_resample_kernels, single_resamplers, double_resamplers);
  ops::_resample.set_kernel(DeviceType::cpu, resample_kernel);
  ops::_resample_planes.set_kernel(DeviceType::cpu, resample_planes_kernel);
}

}  // namespace vesta::cpu
