// A sparse matrix times a dimension of a tensor (core/ops/resample.h).
#include <algorithm>
#include <limits>
#include <vector>

#include <vesta/core/cpu/isa.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/resample_kernels.h>
#include <vesta/core/dtype_set.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/resample.h>

namespace vesta::cpu {
namespace {

constexpr int64_t kBlock = 512;  // elements of a sum that stay in the cache
constexpr int64_t kLeastLines = 8;  // lines that repay the making of blocks
constexpr int64_t kLeastResults = 4;  // results of a block, on average, below which elements are better read one by one

ResampleKernels<float> singles;
ResampleKernels<double> doubles;
template <class T>
const ResampleKernels<T>& kernels() {
  if constexpr (std::is_same_v<T, float>) return singles;
  else return doubles;
}

/// The matrix and the tensor around it: [outer, in, inner] becomes [outer, size, inner].
template <class T>
struct Product {
  using C = compute_t<T>;
  const int64_t *starts, *places;
  const C* weights;
  int64_t in, size, inner;

  /// Writes result row `o`, elements [first, last) of the inner dimension.
  void row(const T* x, T* y, int64_t o, int64_t first, int64_t last) const {
    if constexpr (std::is_same_v<T, C>) {
      const int64_t k = starts[o];
      return kernels<T>().row(x + first, inner, places + k, weights + k, starts[o + 1] - k, y + o * inner + first,
                              last - first);
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
      C sum(0);
      for (int64_t k = starts[o]; k < starts[o + 1]; ++k) sum += weights[k] * static_cast<C>(x[places[k]]);
      y[o] = T(sum);
    }
  }
};

/// The rows of a matrix as blocks, for lines of a dimension that lies innermost.
template <class T>
class Blocks {
 public:
  explicit Blocks(const Product<T>& p) : window_(kernels<T>().window), in_(p.in) {
    for (int64_t o = 0; o < p.size;) {
      ResampleBlock<T> block{};
      int64_t end = o, low = std::numeric_limits<int64_t>::max(), high = -1;
      while (end < p.size && end - o < kernels<T>().lanes) {
        const int64_t terms = p.starts[end + 1] - p.starts[end];
        if (terms > kResampleTerms) return;
        int64_t least = low, most = high;
        for (int64_t k = p.starts[end]; k < p.starts[end + 1]; ++k) {
          least = std::min(least, p.places[k]), most = std::max(most, p.places[k]);
        }
        if (most >= least + window_) break;
        low = least, high = most, block.terms = std::max(block.terms, int(terms)), ++end;
      }
      if (end == o) return;
      block.count = int(end - o);
      block.base = high < 0 ? 0 : std::max<int64_t>(0, std::min(low, in_ - window_));
      fill(block, p, o);
      blocks_.push_back(block);
      o = end;
    }
    fit_ = int64_t(blocks_.size()) * kLeastResults <= p.size;
  }

  /// Whether every row is in a block, and there are few enough blocks.
  bool fit() const { return fit_; }
  /// Computes a line. `room` is for `window` elements.
  void line(const T* x, T* y, T* room) const {
    if (in_ < window_) x = std::copy_n(x, in_, room) - in_;
    kernels<T>().line(x, blocks_.data(), int64_t(blocks_.size()), y);
  }

 private:
  static void fill(ResampleBlock<T>& block, const Product<T>& p, int64_t o) {
    using Place = typename ResampleBlock<T>::Place;
    for (auto& places : block.at) std::fill(std::begin(places), std::end(places), Place(-1));
    for (int i = 0; i < block.count; ++i) {
      const int64_t first = p.starts[o + i], terms = p.starts[o + i + 1] - first;
      for (int64_t k = 0; k < terms; ++k) {
        block.at[k][i] = Place(p.places[first + k] - block.base);
        block.weights[k][i] = p.weights[first + k];
      }
    }
  }

  std::vector<ResampleBlock<T>> blocks_;
  int64_t window_, in_;
  bool fit_ = false;
};

/// Computes [outer, size] from [outer, in] where blocks pay; returns whether they do.
template <class T>
bool run_lines(const Product<T>& p, const T* x, T* y, int64_t outer, int64_t grain) {
  if constexpr (std::is_same_v<T, compute_t<T>>) {
    if (kernels<T>().lanes == 0 || outer < kLeastLines || p.in == 0) return false;
    const Blocks<T> blocks(p);
    if (!blocks.fit()) return false;
    parallel_for(outer, std::max<int64_t>(1, grain / p.size), [&](int64_t b, int64_t e) {
      T room[2 * kResampleLanes] = {};
      for (int64_t line = b; line < e; ++line) blocks.line(x + line * p.in, y + line * p.size, room);
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
  const Tensor x = contiguous(input);
  Dims sizes(x.sizes());
  sizes[size_t(d)] = size;
  Tensor y = empty_tensor(sizes, x.dtype());
  const int64_t in = x.size(d);
  int64_t outer = 1, inner = 1;
  for (int64_t i = 0; i < d; ++i) outer *= x.size(i);
  for (int64_t i = d + 1; i < x.dim(); ++i) inner *= x.size(i);
  const int64_t* starts = rows.data_ptr<int64_t>();
  check_rows(starts, starts + size + 1, size, weights.numel(), in);
  if (y.numel() == 0) return y;
  const int64_t work = std::max<int64_t>(1, inner * (1 + weights.numel() / size));  // per row
  visit<kFloats>(x.dtype(), [&]<class T>() {
    const Product<T> p{starts, starts + size + 1, weights.data_ptr<compute_t<T>>(), in, size, inner};
    const T* from = x.data_ptr<T>();
    T* to = y.data_ptr<T>();
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

}  // namespace

void register_resample() {
  VESTA_ON_ISA(register_resample_kernels, singles, doubles);
  ops::_resample.set_kernel(DeviceType::cpu, resample_kernel);
}

}  // namespace vesta::cpu
