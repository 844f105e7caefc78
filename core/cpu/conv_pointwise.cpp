// 1 x 1 convolutions with channels last: Note [Pixels in rows] in conv_pointwise.h.
#include <vesta/core/cpu/allocator.h>
#include <vesta/core/cpu/conv_pointwise.h>
#include <vesta/core/cpu/gemm.h>
#include <vesta/core/cpu/gemm_kernel.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/scratch.h>

#include <algorithm>

namespace vesta::cpu {
namespace {

using std::int64_t;

constexpr int64_t kGathered = 16384;  // elements that a task gathers, at least

/// A matrix of pixels by channels over all groups: element (p, c) of sample n at data[n * batch + p * pixel + c *
/// channel].
template <class T>
struct Pixels {
  T* data;
  int64_t batch, pixel, channel;
};

/// Copies the pixels that outputs read to out[batch, outputs, channels].
template <class E>
void gather_positions(const Correlated<E>& c, typename E::T* out) {
  const int64_t channels = c.groups * c.from_channels, rows = c.to_size[0] * c.to_size[1], width = c.to_size[2];
  const Spatial& step = c.canvas.step;
  parallel_for(c.batch * rows, std::max<int64_t>(1, kGathered / (width * channels)), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t row = r % rows;
      const typename E::T* from = c.from + r / rows * c.from_strides.batch +
                                  row / c.to_size[1] * step[0] * c.from_strides.spatial[0] +
                                  row % c.to_size[1] * step[1] * c.from_strides.spatial[1];
      for (int64_t i = 0; i < width; ++i, from += step[2] * c.from_strides.spatial[2]) {
        read_row<E>(channels, from, c.from_strides.channel, out + (r * width + i) * channels);
      }
    }
  });
}

/// Copies results in[batch, outputs, channels] to where they belong.
template <class E>
void scatter_positions(const Correlated<E>& c, const typename E::T* in) {
  const int64_t channels = c.groups * c.to_channels, pixels = plane_of(c.to_size);
  const ImageStrides& to = c.to_strides;
  parallel_for(c.batch * channels, std::max<int64_t>(1, kGathered / pixels), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t n = t / channels, channel = t % channels;
      typename E::T* const image = c.to + n * to.batch + channel * to.channel;
      const typename E::T* from = in + n * pixels * channels + channel;
      for (int64_t r = 0; r < c.to_size[0] * c.to_size[1]; ++r) {
        typename E::T* const row = image + r / c.to_size[1] * to.spatial[0] + r % c.to_size[1] * to.spatial[1];
        for (int64_t i = 0; i < c.to_size[2]; ++i, from += channels) row[i * to.spatial[2]] = *from;
      }
    }
  });
}

/// Multiplies pixels [pixels, from_channels] by the weights; where channels do not lie side by side, the weights by the
/// pixels: the same sums.
template <class E>
void multiply_pixels(const Correlated<E>& c, bool forward, const typename E::T* w, const Weight& weight,
                     const Pixels<const typename E::T>& from, const Pixels<typename E::T>& to) {
  using T = typename E::T;
  const int64_t pixels = plane_of(c.to_size), w_in = forward ? 1 : c.to_channels, w_out = forward ? c.from_channels : 1;
  const bool rows = to.channel == 1;
  Gemm g{};
  g.m = rows ? pixels : c.to_channels;
  g.n = rows ? c.to_channels : pixels;
  g.k = c.from_channels;
  g.a = rows ? from.data : w;
  g.a_row = rows ? from.pixel : w_out;
  g.a_col = rows ? from.channel : w_in;
  g.b = rows ? w : from.data;
  g.b_row = rows ? w_in : from.channel;
  g.b_col = rows ? w_out : from.pixel;
  g.c = to.data;
  g.c_row = rows ? to.pixel : to.channel;
  g.bias = c.bias;
  if (rows && c.groups == 1) g.weight = weight;
  BatchDim dims[2];
  std::size_t count = 0;
  const auto add = [&](int64_t size, int64_t pixel_step, int64_t w_step, int64_t to_step) {
    dims[count++] = {size, rows ? pixel_step : w_step, rows ? w_step : pixel_step, to_step};
  };
  if (rows && (c.batch == 1 || (from.batch == pixels * from.pixel && to.batch == pixels * to.pixel))) {
    g.m *= c.batch;
  } else {
    add(c.batch, from.batch, 0, to.batch);
  }
  if (c.groups > 1) {
    add(c.groups, c.from_channels * from.channel, c.from_channels * c.to_channels, c.to_channels * to.channel);
  }
  g.batch = {dims, count};
  gemm(std::is_same_v<E, Bf16Bits> ? Elem::bf16 : std::is_same_v<T, float> ? Elem::f32 : Elem::f64, g);
}

}  // namespace

template <class E>
bool goes_pointwise(const Correlated<E>& c) {
  const Spatial none{0, 0, 0}, one{1, 1, 1};
  const bool lies_in_rows =
      c.from_strides.channel == 1 && c.to_strides.channel == 1 && position_step(c.to_size, c.to_strides);
  const bool of_tiles = std::is_same_v<E, Bf16Bits> && pair_kernels() != nullptr && pair_kernels()->products.packs_rows;
  if (c.products.size() != 1 || (!lies_in_rows && !of_tiles)) return false;
  if (c.from_channels < 2 || c.to_channels < 2 || (c.groups > 1 && c.bias != nullptr)) return false;
  for (int d = 0; d < 3; ++d) {  // a transposed convolution's output padding lies outside of its images
    if ((c.to_size[d] - 1) * c.canvas.step[d] >= c.from_size[d]) return false;
  }
  const Taps& taps = c.products.front();
  return taps.tap.size() == 1 && taps.first == none && taps.step == one && taps.count == c.to_size &&
         c.canvas.before == none && c.canvas.phases == one &&
         static_cast<int64_t>(taps.table.size()) == c.from_channels && taps.table[0] == 0;
}

template <class E>
void correlate_pointwise(const Correlated<E>& c, bool forward, const typename E::T* w, const Weight& weight) {
  using T = typename E::T;
  const int64_t pixels = plane_of(c.to_size);
  if (c.batch <= 0 || pixels <= 0) return;
  const int64_t from_channels = c.groups * c.from_channels, to_channels = c.groups * c.to_channels;
  const std::optional<int64_t> step = position_step(c.from_size, c.from_strides);
  const bool in_place = c.from_size == c.to_size && step;
  ScratchArray<T> room(
      Scratch::input,
      in_place ? 0 : static_cast<std::size_t>(c.batch * pixels) * static_cast<std::size_t>(from_channels));
  if (!in_place) gather_positions(c, room.data());
  const Pixels<const T> from = in_place ? Pixels<const T>{c.from, c.from_strides.batch, *step, c.from_strides.channel}
                                        : Pixels<const T>{room.data(), pixels * from_channels, from_channels, 1};
  const std::optional<int64_t> to_step = position_step(c.to_size, c.to_strides);
  if (to_step && (c.to_strides.channel == 1 || (*to_step == 1 && c.bias == nullptr))) {
    return multiply_pixels(c, forward, w, weight, from, {c.to, c.to_strides.batch, *to_step, c.to_strides.channel});
  }
  const HostArray<T> sums(static_cast<std::size_t>(c.batch * pixels * to_channels));
  multiply_pixels(c, forward, w, weight, from, {sums.data(), pixels * to_channels, to_channels, 1});
  scatter_positions(c, sums.data());
}

#define VESTA_POINTWISE(E)                           \
  template bool goes_pointwise(const Correlated<E>&); \
  template void correlate_pointwise(const Correlated<E>&, bool, const E::T*, const Weight&);
VESTA_POINTWISE(Plain<float>)
VESTA_POINTWISE(Plain<double>)
VESTA_POINTWISE(Bf16Bits)
#undef VESTA_POINTWISE

}  // namespace vesta::cpu
