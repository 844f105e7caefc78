// The gradient of a convolution's weights. gw[o, (c, k)] is the sum over samples and outputs of x[c, shifted by k] *
// gy[o]: the shifted rows of the canvas (Note [Canvas] in conv_canvas.h) are the left matrix, gy transposed is the
// right one. Layers with enough channels use the direct way instead (Note [Direct weight gradient] in conv_direct.h).
#include <vesta/core/cpu/conv_canvas.h>
#include <vesta/core/cpu/conv_depthwise.h>
#include <vesta/core/cpu/conv_direct.h>
#include <vesta/core/cpu/conv_half.h>
#include <vesta/core/cpu/conv_images.h>
#include <vesta/core/cpu/conv_pointwise_gradient.h>
#include <vesta/core/cpu/conv_unfolded.h>
#include <vesta/core/cpu/conv_winograd.h>
#include <vesta/core/cpu/convolution.h>
#include <vesta/core/cpu/gemm_kernel.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/rounding.h>
#include <vesta/core/cpu/scratch.h>

#include <algorithm>

namespace vesta::cpu {
namespace {

using std::int64_t;

// gw[o, (c, k)] = sum over samples and outputs of x[c, shifted by k] * gy[o]: the shifted rows of the canvas are the
// rows of the left matrix, gy transposed the right one. A task is (samples, group, channels): it sums its samples in
// order into a partial of [taps, outputs]; partials are added in order at the end.
template <class E>
struct WeightGradient {
  using T = typename E::T;

  const GemmKernels<T>& kernels;
  ConvShape shape;
  const T* x;
  ImageStrides x_strides;
  const T* gy;
  ImageStrides gy_strides;
  Canvas canvas;
  int64_t inputs, outputs;  // channels per group
  Taps taps;  // of all the channels of a group
  int64_t kernel = 0;  // taps per channel
  int64_t span = 0;
  int64_t piece_channels = 0, pieces = 0, sample_groups = 0, samples_per_group = 0;

  void plan() {
    taps = forward_taps(shape, canvas, inputs);
    kernel = static_cast<int64_t>(taps.tap.size());
    span = taps.span(canvas);
    const int64_t bytes = std::max<int64_t>(1, weight_count(shape) * static_cast<int64_t>(sizeof(T)));
    sample_groups = std::clamp<int64_t>(kPartialBytes / bytes, 1, std::min<int64_t>(shape.batch, 16));
    samples_per_group = ceil_div(shape.batch, sample_groups);
    sample_groups = ceil_div(shape.batch, samples_per_group);
    // Where the weights are too large for many partials, the channels are divided into tasks as well.
    constexpr int64_t kTasks = 16, kPieceRows = 256;
    const int64_t most = std::max<int64_t>(1, inputs * kernel / kPieceRows);
    const int64_t wanted = std::min({ceil_div(kTasks, sample_groups * shape.groups), most, inputs});
    piece_channels = std::max<int64_t>(1, ceil_div(inputs, std::max<int64_t>(wanted, 1)));
    pieces = std::max<int64_t>(1, ceil_div(inputs, piece_channels));
  }

  int64_t rows() const { return inputs * kernel; }
  int64_t panels() const { return ceil_div(outputs, kernels.tile_cols); }

  // Writes one sample's gy as packed panels [span, tile_cols], zero between image rows.
  void pack_gradient(const T* image, T* out) const {
    const int64_t nc = kernels.tile_cols, width = canvas.size[2];
    const ImageStrides& strides = gy_strides;
    const bool rows_touch = width == shape.out[2] && canvas.size[1] == shape.out[1] && is_dense(strides, shape.out);
    for (int64_t o = 0; o < outputs; o += nc, out += nc * span) {
      const int64_t count = std::min(nc, outputs - o);
      const T* const from = image + o * strides.channel;
      if (rows_touch) {
        kernels.pack_b(count, span, from, 1, strides.channel, out);
        continue;
      }
      int64_t done = 0;
      for (int64_t q0 = 0; q0 < shape.out[0]; ++q0) {
        for (int64_t q1 = 0; q1 < shape.out[1]; ++q1) {
          const int64_t start = (q0 * canvas.size[1] + q1) * width;
          std::fill(out + done * nc, out + start * nc, T(0));
          kernels.pack_b(count, shape.out[2], from + q0 * strides.spatial[0] + q1 * strides.spatial[1],
                         strides.spatial[2], strides.channel, out + start * nc);
          done = start + shape.out[2];
        }
      }
    }
  }

  // Adds up each column of the packed panels, as the product with a row of ones: one sample's part of the bias
  // gradient.
  void add_bias(const T* ones, const T* packed, T* bias, bool first) const {
    Block<T> block{};
    block.m = 1;
    block.a = ones;
    block.a_col = 1;
    block.c = bias;
    add_blocks(block, packed, first);
  }

  // Adds one sample's product for channels [c0, c1) to the partial.
  void add_product(const T* laid_out, const T* packed, int64_t c0, int64_t c1, T* partial, bool first) const {
    Block<T> block{};
    block.m = (c1 - c0) * kernel;
    block.a = laid_out;
    block.a_table = taps.table.data();  // laid_out starts at channel c0
    block.a_col = 1;
    block.c = partial + c0 * kernel * outputs;
    add_blocks(block, packed, first);
  }

  // Runs over the outputs of a sample, block by block. Rows of a that are not in a table are all the same kBlockK
  // values.
  void add_blocks(Block<T>& block, const T* packed, bool first) const {
    block.n = outputs;
    block.b_row = kernels.tile_cols;
    block.b_tile = kernels.tile_cols * span;
    block.c_row = outputs;
    for (int64_t k0 = 0; k0 < span; k0 += kBlockK) {
      block.k = std::min(kBlockK, span - k0);
      block.b = packed + k0 * kernels.tile_cols;
      block.accumulate = !first || k0 > 0;
      kernels.block(block);
      if (block.a_table != nullptr) block.a += block.k;
    }
  }

  void run_task(int64_t samples, int64_t group, int64_t piece, T* partial, T* bias) const {
    const int64_t c0 = piece * piece_channels, c1 = std::min(inputs, c0 + piece_channels);
    const bool ready = lies_ready(canvas, shape.in, inputs, x_strides);
    T* const packed = static_cast<T*>(thread_scratch(Scratch::pack_b, sizeof(T) * panels() * kernels.tile_cols * span));
    T* const room =
        ready ? nullptr : static_cast<T*>(thread_scratch(Scratch::input, sizeof(T) * (c1 - c0) * canvas.channel()));
    T* const ones = static_cast<T*>(thread_scratch(Scratch::operand_b, sizeof(T) * kBlockK));
    std::fill_n(ones, kBlockK, T(1));
    if (!ready) std::fill_n(room, (c1 - c0) * canvas.channel(), T(0));
    const int64_t begin = samples * samples_per_group, end = std::min(shape.batch, begin + samples_per_group);
    for (int64_t n = begin; n < end; ++n) {
      const T* const image = x + n * x_strides.batch + (group * inputs + c0) * x_strides.channel;
      pack_gradient(gy + n * gy_strides.batch + group * outputs * gy_strides.channel, packed);
      if (bias != nullptr && piece == 0) add_bias(ones, packed, bias, n == begin);
      const T* const laid_out = ready ? image : room;
      if (!ready) fill_canvas<E>(canvas, shape.in, c1 - c0, image, x_strides, room);
      add_product(laid_out, packed, c0, c1, partial, n == begin);
    }
  }

  // Adds the partials of all sample groups, in order, and transposes them to [outputs, taps].
  void gather(const T* partials, int64_t stride, int64_t group, int64_t row0, int64_t row1, T* gw) const {
    T line[256];
    for (int64_t o = 0; o < outputs; ++o) {
      for (int64_t r = row0; r < row1; ++r) {
        const T* const from = partials + (group * rows() + r) * outputs + o;
        T sum = from[0];
        for (int64_t s = 1; s < sample_groups; ++s) sum = sum + from[s * stride];
        line[r - row0] = sum;
      }
      std::copy_n(line, row1 - row0, gw + (group * outputs + o) * rows() + row0);
    }
  }

  void run(T* gw, T* gbias) {
    if (shape.batch <= 0 || shape.out[0] * shape.out[1] * shape.out[2] <= 0) {
      std::fill_n(gw, weight_count(shape), T(0));
      if (gbias != nullptr) std::fill_n(gbias, shape.out_channels, T(0));
      return;
    }
    plan();
    const int64_t stride = shape.groups * rows() * outputs;
    ScratchArray<T> partials(Scratch::partial, static_cast<std::size_t>(sample_groups * stride));
    ScratchArray<T> biases(Scratch::result, static_cast<std::size_t>(sample_groups * shape.out_channels));
    const int64_t per_sample = shape.groups * pieces;
    const int64_t work = samples_per_group * std::max<int64_t>(1, piece_channels * kernel) * outputs * span;
    parallel_for(sample_groups * per_sample, std::max<int64_t>(1, kTaskWork / std::max<int64_t>(work, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t t = begin; t < end; ++t) {
                     const int64_t s = t / per_sample, group = t % per_sample % shape.groups;
                     T* const bias =
                         gbias == nullptr ? nullptr : biases.data() + s * shape.out_channels + group * outputs;
                     run_task(s, group, t % per_sample / shape.groups,
                              partials.data() + s * stride + group * rows() * outputs, bias);
                   }
                 });
    constexpr int64_t kRows = 16;  // a cache line of gw; 16 rows of each line's partials lie in L1
    const int64_t cuts = ceil_div(rows(), kRows);
    parallel_for(shape.groups * cuts, std::max<int64_t>(1, 65536 / (kRows * outputs * sample_groups)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t t = begin; t < end; ++t) {
                     const int64_t row0 = t % cuts * kRows;
                     gather(partials.data(), stride, t / cuts, row0, std::min(rows(), row0 + kRows), gw);
                   }
                 });
    if (gbias == nullptr) return;
    for (int64_t o = 0; o < shape.out_channels; ++o) {
      T sum = biases.data()[o];
      for (int64_t s = 1; s < sample_groups; ++s) sum = sum + biases.data()[s * shape.out_channels + o];
      gbias[o] = sum;
    }
  }
};

template <class E>
void backward_weights(const ConvShape& shape, const void* x, const ImageStrides& x_strides, const void* gy,
                      const ImageStrides& gy_strides, void* gw, void* gbias) {
  using T = typename E::T;
  const auto go = [&](auto way) {
    way(shape, static_cast<const T*>(x), x_strides, static_cast<const T*>(gy), gy_strides, static_cast<T*>(gw),
        static_cast<T*>(gbias));
  };
  if (weight_gradient_goes_depthwise(shape)) return go(depthwise_weight_gradient<E>);
  if (weight_gradient_goes_pointwise(shape)) return go(pointwise_weight_gradient<E>);
  if constexpr (std::is_same_v<typename E::T, float>) {
    if (shape.batch > 0 && goes_winograd(shape) &&
        winograd_weight_gradient<E>(shape, static_cast<const T*>(x), x_strides, static_cast<const T*>(gy), gy_strides,
                                    static_cast<T*>(gw), static_cast<T*>(gbias))) {
      return;
    }
  }
  if (weight_gradient_goes_direct(shape)) return go(direct_weight_gradient<E>);
  WeightGradient<E> run{.kernels = gemm_kernels<typename E::T>(),
                        .shape = shape,
                        .x = static_cast<const T*>(x),
                        .x_strides = x_strides,
                        .gy = static_cast<const T*>(gy),
                        .gy_strides = gy_strides,
                        .canvas = input_canvas(shape),
                        .inputs = shape.in_channels / shape.groups,
                        .outputs = shape.out_channels / shape.groups,
                        .taps = {}};
  run.run(static_cast<T*>(gw), static_cast<T*>(gbias));
}

void half_backward_weights(Elem elem, const ConvShape& shape, const std::uint16_t* x, const ImageStrides& x_strides,
                           const std::uint16_t* gy, const ImageStrides& gy_strides, std::uint16_t* gw,
                           std::uint16_t* gbias) {
  if (elem == Elem::bf16 && weight_gradient_goes_in_pairs(shape)) {
    return pair_weight_gradient(shape, x, x_strides, gy, gy_strides, gw, gbias);
  }
  if (elem == Elem::bf16 && weight_gradient_goes_unfolded(shape)) {
    return unfolded_weight_gradient(shape, x, x_strides, gy, gy_strides, gw, gbias);
  }
  const HalfFormat format = half_format(elem);
  const WideImages images(shape.batch, shape.in_channels, shape.in, x_strides);
  const WideImages gradients(shape.batch, shape.out_channels, shape.out, gy_strides);
  images.widen(format, x, x_strides);
  gradients.widen(format, gy, gy_strides);
  const int64_t count = weight_count(shape);
  const HostArray<float> sums(static_cast<std::size_t>(count + shape.out_channels));
  backward_weights<Plain<float>>(shape, images.data(), images.strides(), gradients.data(), gradients.strides(),
                                 sums.data(), gbias == nullptr ? nullptr : sums.data() + count);
  format.narrow(count, sums.data(), gw);
  if (gbias != nullptr) format.narrow(shape.out_channels, sums.data() + count, gbias);
}

}  // namespace

void conv_backward_weights(Elem elem, const ConvShape& shape, const void* x, const ImageStrides& x_strides,
                           const void* gy, const ImageStrides& gy_strides, void* gw, void* gbias) {
  if (is_half(elem)) {
    using Bits = std::uint16_t;
    return half_backward_weights(elem, shape, static_cast<const Bits*>(x), x_strides, static_cast<const Bits*>(gy),
                                 gy_strides, static_cast<Bits*>(gw), static_cast<Bits*>(gbias));
  }
  with_element(elem, [&]<class E>() { backward_weights<E>(shape, x, x_strides, gy, gy_strides, gw, gbias); });
}

}  // namespace vesta::cpu
