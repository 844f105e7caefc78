// 1 x 1 convolutions with channels last: Note [Pixels in rows] in conv_pointwise.h.
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
        std::copy_n(from, channels, out + (r * width + i) * channels);
      }
    }
  });
}

}  // namespace

template <class E>
bool goes_pointwise(const Correlated<E>& c) {
  const Spatial none{0, 0, 0}, one{1, 1, 1};
  if (c.products.size() != 1 || c.from_strides.channel != 1 || c.to_strides.channel != 1) return false;
  if (c.from_channels < 2 || c.to_channels < 2 || (c.groups > 1 && c.bias != nullptr)) return false;
  for (int d = 0; d < 3; ++d) {  // a transposed convolution's output padding lies outside of its images
    if ((c.to_size[d] - 1) * c.canvas.step[d] >= c.from_size[d]) return false;
  }
  const Taps& taps = c.products.front();
  return taps.tap.size() == 1 && taps.first == none && taps.step == one && taps.count == c.to_size &&
         c.canvas.before == none && c.canvas.phases == one && position_step(c.to_size, c.to_strides) &&
         static_cast<int64_t>(taps.table.size()) == c.from_channels && taps.table[0] == 0;
}

template <class E>
void correlate_pointwise(const Correlated<E>& c, bool forward, const typename E::T* w) {
  using T = typename E::T;
  const int64_t pixels = plane_of(c.to_size);
  if (c.batch <= 0 || pixels <= 0) return;
  const std::optional<int64_t> step = position_step(c.from_size, c.from_strides);
  const bool in_place = c.from_size == c.to_size && step;
  ScratchArray<T> room(
      Scratch::input,
      in_place ? 0 : static_cast<std::size_t>(c.batch * pixels * c.groups) * static_cast<std::size_t>(c.from_channels));
  if (!in_place) gather_positions(c, room.data());
  const int64_t from_row = in_place ? *step : c.groups * c.from_channels;
  const int64_t from_batch = in_place ? c.from_strides.batch : pixels * from_row;
  const int64_t to_row = *position_step(c.to_size, c.to_strides);
  Gemm g{};
  g.m = pixels;
  g.n = c.to_channels;
  g.k = c.from_channels;
  g.a = in_place ? c.from : room.data();
  g.a_row = from_row;
  g.a_col = 1;
  g.b = w;
  g.b_row = forward ? 1 : c.to_channels;
  g.b_col = forward ? c.from_channels : 1;
  g.c = c.to;
  g.c_row = to_row;
  g.bias = c.bias;
  BatchDim dims[2];
  std::size_t count = 0;
  if (c.batch == 1 || (from_batch == pixels * from_row && c.to_strides.batch == pixels * to_row)) {
    g.m *= c.batch;
  } else {
    dims[count++] = {c.batch, from_batch, 0, c.to_strides.batch};
  }
  if (c.groups > 1) dims[count++] = {c.groups, c.from_channels, c.from_channels * c.to_channels, c.to_channels};
  g.batch = {dims, count};
  gemm(std::is_same_v<E, Bf16Bits> ? Elem::bf16 : std::is_same_v<T, float> ? Elem::f32 : Elem::f64, g);
}

#define VESTA_POINTWISE(E)                           \
  template bool goes_pointwise(const Correlated<E>&); \
  template void correlate_pointwise(const Correlated<E>&, bool, const E::T*);
VESTA_POINTWISE(Plain<float>)
VESTA_POINTWISE(Plain<double>)
VESTA_POINTWISE(Bf16Bits)
#undef VESTA_POINTWISE

}  // namespace vesta::cpu
