// Depthwise convolution with channels last: Note [Depthwise pixels] in conv_depthwise_pixels.h.
#include <vesta/core/cpu/conv_depthwise_pixels.h>
#include <vesta/core/cpu/conv_channels_last.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/scratch.h>

#include <algorithm>
#include <vector>

namespace vesta::cpu {
namespace {

using std::int64_t;

/// One product: its outputs, and where each of its taps reads.
template <class T>
struct PixelProduct {
  const Taps* taps;
  std::vector<Spatial> at;  // of a tap, for output 0: its position in the image
  const T* w;  // [taps, channels]
};

template <class T>
struct Pixels {
  const Correlated<Plain<T>>& c;
  void (*kernel)(const DepthwisePixel<T>&);
  std::vector<PixelProduct<T>> products = {};
  const T* zeros = nullptr;  // a pixel

  /// Computes row (q0, q1) of a product's outputs, in sample n.
  void run_row(const PixelProduct<T>& p, int64_t n, int64_t q0, int64_t q1) const {
    const Taps& taps = *p.taps;
    const int64_t p0 = taps.first[0] + q0 * taps.step[0], p1 = taps.first[1] + q1 * taps.step[1];
    if (p0 < 0 || p0 >= c.to_size[0] || p1 < 0 || p1 >= c.to_size[1]) return;
    const std::size_t count = p.at.size();
    // of each tap, its row in the image, or null outside
    const T** const rows = static_cast<const T**>(thread_scratch(Scratch::operand_a, 2 * (count + 1) * sizeof(T*)));
    const T** const lines = rows + count + 1;
    for (std::size_t t = 0; t < count; ++t) {
      const int64_t r0 = q0 * c.canvas.step[0] + p.at[t][0], r1 = q1 * c.canvas.step[1] + p.at[t][1];
      const bool inside = r0 >= 0 && r0 < c.from_size[0] && r1 >= 0 && r1 < c.from_size[1];
      rows[t] =
          inside ? c.from + n * c.from_strides.batch + r0 * c.from_strides.spatial[0] + r1 * c.from_strides.spatial[1]
                 : nullptr;
    }
    DepthwisePixel<T> pixel{lines, static_cast<int64_t>(count), p.w, c.groups, c.bias, c.groups, nullptr};
    T* const to = c.to + n * c.to_strides.batch + p0 * c.to_strides.spatial[0] + p1 * c.to_strides.spatial[1];
    const Inside row(taps.count[2], taps.first[2], taps.step[2], c.to_size[2]);
    for (int64_t q2 = row.low; q2 < row.high; ++q2) {
      for (std::size_t t = 0; t < count; ++t) {
        const int64_t r2 = q2 * c.canvas.step[2] + p.at[t][2];
        const bool inside = rows[t] != nullptr && r2 >= 0 && r2 < c.from_size[2];
        lines[t] = inside ? rows[t] + r2 * c.from_strides.spatial[2] : zeros;
      }
      pixel.out = to + (taps.first[2] + q2 * taps.step[2]) * c.to_strides.spatial[2];
      kernel(pixel);
    }
  }

  void run(const T* w) {
    std::size_t kernel_size = 0;
    for (const Taps& taps : c.products) kernel_size += taps.tap.size();
    // the weights of each product, channels innermost, and a pixel of zeros
    const std::size_t channels = static_cast<std::size_t>(c.groups);
    ScratchArray<T> room(Scratch::weights, (kernel_size + 1) * channels);
    T* to = room.data();
    std::fill_n(to, channels, T(0));
    zeros = to, to += channels;
    for (const Taps& taps : c.products) {
      products.push_back({&taps, tap_positions(c.canvas, taps), to});
      for (const int64_t tap : taps.tap) {
        for (std::size_t i = 0; i < channels; ++i) *to++ = w[i * kernel_size + static_cast<std::size_t>(tap)];
      }
    }
    const Spatial& count = c.products.front().count;  // the same for every product
    const int64_t rows = count[0] * count[1], work = std::max<int64_t>(1, count[2] * c.groups * int64_t(kernel_size));
    parallel_for(c.batch * rows, std::max<int64_t>(1, kTaskWork / work), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        for (const PixelProduct<T>& p : products) run_row(p, t / rows, t % rows / count[1], t % rows % count[1]);
      }
    });
  }
};

}  // namespace

template <class T>
void depthwise_channels_last(const Correlated<Plain<T>>& c, const T* w) {
  Pixels<T>{c, depthwise_kernels<T>().pixel}.run(w);
}
template void depthwise_channels_last(const Correlated<Plain<float>>&, const float*);
template void depthwise_channels_last(const Correlated<Plain<double>>&, const double*);

}  // namespace vesta::cpu
