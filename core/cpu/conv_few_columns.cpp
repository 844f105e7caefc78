// Convolutions with one tap over few outputs: Note [Few columns] in conv_few_columns.h.
#include <vesta/core/cpu/conv_few_columns.h>
#include <vesta/core/cpu/gemm.h>
#include <vesta/core/cpu/gemm_kernel.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/scratch.h>

#include <algorithm>
#include <type_traits>

namespace vesta::cpu {
namespace {

using std::int64_t;

// Tuned with the convolutions of ResNet-50, 1 to 8 images.
constexpr int64_t kFewColumns = 1024;
constexpr int64_t kWholeImage = 128;  // outputs from which an image that lies ready is multiplied by itself
constexpr int64_t kManyWeights = 32 * 1024;  // below, packing costs nothing
constexpr int64_t kMovedElements = 16 * 1024;  // elements moved that make a task worthwhile

template <class E>
struct FewColumns {
  using T = typename E::T;

  const Correlated<E>& c;
  int64_t kernel;  // elements of the kernel, which lie side by side in the weights
  int64_t outputs = c.outputs(), columns = c.batch * outputs;

  static void multiply(const Gemm& g) {
    if constexpr (std::is_same_v<E, Paired>) return pair_gemm(g);
    else return gemm(std::is_same_v<T, double> ? Elem::f64 : Elem::f32, g);
  }

  int64_t grain() const { return std::max<int64_t>(1, kMovedElements / columns); }

  /// Gathers the columns: [channels, columns].
  void gather(T* out) const {
    parallel_for(c.from_channels, grain(), [&](int64_t begin, int64_t end) {
      std::fill_n(out + begin * columns, (end - begin) * columns, T(0));
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t n = 0; n < c.batch; ++n) {
          fill_canvas<E>(c.canvas, c.from_size, 1, c.from_image(n, 0) + i * c.from_strides.channel, c.from_strides,
                         out + i * columns + n * outputs);
        }
      }
    });
  }

  /// Writes the sums [channels, columns] of a product, or zeros if `sums` is null, plus the bias to the images.
  void scatter(const Taps& taps, T* sums) const {
    const bool covers = c.covers_image(taps);
    parallel_for(c.to_channels, grain(), [&](int64_t begin, int64_t end) {
      T* const zeros = sums ? nullptr : static_cast<T*>(thread_scratch(Scratch::partial, sizeof(T) * columns));
      for (int64_t i = begin; i < end; ++i) {
        T* const row = sums ? sums + i * columns : zeros;
        if (!sums) std::fill_n(row, columns, T(0));
        if (c.bias) add_bias(i, columns, row);
        write_columns<E>(taps, covers, 0, columns, 1, row, columns, c.to_size,
                         c.to_image(0, 0) + i * c.to_strides.channel, c.to_strides);
      }
    });
  }

  void add_bias(int64_t channel, int64_t n, T* row) const {
    for (int64_t j = 0; j < n; ++j) row[j] += c.bias[channel];
  }

  /// Returns the product of a tap's weights, the first of which is at w, and of columns at b, [inputs, `n`].
  Gemm product(const T* w, bool backward, int64_t n, const void* b, int64_t b_row) const {
    return {.m = c.to_channels,
            .n = n,
            .k = c.from_channels,
            .a = w,
            .a_row = backward ? kernel : c.from_channels * kernel,
            .a_col = backward ? c.to_channels * kernel : kernel,
            .b = b,
            .b_row = b_row,
            .b_col = 1,
            .c = nullptr,
            .c_row = 0};
  }

  /// Returns whether images can be read and written where they lie.
  bool lies_in_place() const {
    return (c.batch == 1 || outputs >= kWholeImage) && c.products.size() == 1 && c.covers_image(c.products.front()) &&
           lies_ready(c.canvas, c.from_size, c.from_channels, c.from_strides);
  }

  void run_in_place(const T* w, bool backward) const {
    Gemm images = product(w, backward, outputs, c.from, c.from_strides.channel);
    const BatchDim batch{c.batch, 0, c.from_strides.batch, c.to_strides.batch};
    images.batch = {&batch, 1};
    images.c = c.to;
    images.c_row = c.to_strides.channel;
    multiply(images);
    if (!c.bias) return;
    parallel_for(c.batch * c.to_channels, std::max<int64_t>(1, kMovedElements / outputs),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t channel = i % c.to_channels;
                     add_bias(channel, outputs,
                              reinterpret_cast<T*>(c.to_image(i / c.to_channels, 0) + channel * c.to_strides.channel));
                   }
                 });
  }

  void run(const T* w, bool backward) const {
    if (columns <= 0 || c.to_channels <= 0) return;
    if (lies_in_place()) return run_in_place(w, backward);
    ScratchArray<T> gathered(Scratch::input, static_cast<std::size_t>(c.from_channels * columns));
    ScratchArray<T> sums(Scratch::output, static_cast<std::size_t>(c.to_channels * columns));
    gather(gathered.data());
    for (const Taps& taps : c.products) {
      if (!taps.table.empty()) {
        Gemm all = product(w + taps.tap.front(), backward, columns, gathered.data(), columns);
        all.c = sums.data();
        all.c_row = columns;
        multiply(all);
      }
      scatter(taps, taps.table.empty() ? nullptr : sums.data());
    }
  }
};

}  // namespace

template <class E>
bool has_few_columns(const Correlated<E>& c) {
  const auto one_tap = [](const Taps& taps) {
    return taps.tap.empty() || (taps.tap.size() == 1 && taps.table.front() == 0);
  };
  return c.groups == 1 && c.canvas.channel() == c.outputs() &&
         std::all_of(c.products.begin(), c.products.end(), one_tap) && c.outputs() > 0 &&
         c.batch <= kFewColumns / c.outputs() && c.from_channels * c.to_channels >= kManyWeights;
}

template <class E>
void correlate_few_columns(const Correlated<E>& c, int64_t kernel, const typename E::T* w, bool backward) {
  FewColumns<E>{c, kernel}.run(w, backward);
}

template bool has_few_columns(const Correlated<Plain<float>>&);
template bool has_few_columns(const Correlated<Plain<double>>&);
template bool has_few_columns(const Correlated<Paired>&);
template void correlate_few_columns(const Correlated<Plain<float>>&, int64_t, const float*, bool);
template void correlate_few_columns(const Correlated<Plain<double>>&, int64_t, const double*, bool);
template void correlate_few_columns(const Correlated<Paired>&, int64_t, const float*, bool);

}  // namespace vesta::cpu
