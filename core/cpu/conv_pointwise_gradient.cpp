// The gradient of 1 x 1 weights: Note [Small images together] in conv_pointwise_gradient.h. A tour: run() goes through
// the positions of all samples in blocks; x of a block is packed once, then each task packs some channels of gy and
// adds their products to the result.
#include <vesta/core/cpu/conv_pointwise_gradient.h>
#include <vesta/core/cpu/gemm_kernel.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/rounding.h>
#include <vesta/core/cpu/scratch.h>

#include <algorithm>

namespace vesta::cpu {
namespace {

using std::int64_t;

constexpr int64_t kTaskRows = 96;  // output channels of a task, at most about: their gy stays in L2
constexpr int64_t kBlockTasks = 8;  // tasks wanted for each block of positions
constexpr int64_t kTaskElements = 16 * 1024;  // elements packed that make a task worthwhile

/// The positions of all samples of an image tensor that the outputs of the convolution read.
template <class E>
struct PositionsOf {
  using T = typename E::T;

  const T* data;
  ImageStrides strides;
  Spatial size;  // positions of a sample

  int64_t plane() const { return size[0] * size[1] * size[2]; }
  /// Calls pack(lines, k, in, line, step, out) for `count` channels from `channel` on and positions [begin, end), as
  /// often as it takes; `out` moves by `group` elements per position.
  template <class Pack>
  void pack(int64_t channel, int64_t count, int64_t begin, int64_t end, int64_t group, T* out, Pack&& pack) const {
    const std::optional<int64_t> step = position_step(size, strides);
    for (int64_t k = begin; k < end;) {
      const int64_t sample = k / plane(), first = k % plane(), length = std::min(plane() - first, end - k);
      const T* const image = data + sample * strides.batch + channel * strides.channel;
      T* const to = out + (k - begin) * group;
      k += length;
      if (step) {
        pack(count, length, image + first * *step, strides.channel, *step, to);
        continue;
      }
      T* const lines =
          static_cast<T*>(thread_scratch(Scratch::input, sizeof(T) * static_cast<std::size_t>(count * length)));
      for (int64_t c = 0; c < count; ++c) read_line(image + c * strides.channel, first, length, lines + c * length);
      pack(count, length, lines, length, 1, to);
    }
  }

 private:
  /// Reads positions of one channel, row by row.
  void read_line(const T* image, int64_t first, int64_t length, T* out) const {
    for (int64_t p = first; p < first + length;) {
      const int64_t column = p % size[2], row = p / size[2];
      const int64_t run = std::min(size[2] - column, first + length - p);
      read_row<E>(
          run,
          image + row / size[1] * strides.spatial[0] + row % size[1] * strides.spatial[1] + column * strides.spatial[2],
          strides.spatial[2], out);
      p += run, out += run;
    }
  }
};

template <class E>
struct PointwiseGradient {
  using T = typename E::T;

  const GemmKernels<T>& kernels;
  int64_t inputs, outputs, positions;
  PositionsOf<E> x, gy;
  T* gw;    // [outputs, inputs]
  T* bias;  // [outputs], or null

  int64_t task_rows() const {
    const int64_t tiles = ceil_div(outputs, kernels.tile_rows), most = ceil_div(kTaskRows, kernels.tile_rows);
    return ceil_div(tiles, std::max(std::min(tiles, kBlockTasks), ceil_div(tiles, most))) * kernels.tile_rows;
  }

  /// Packs x of positions [begin, end) into panels.
  void pack_inputs(int64_t begin, int64_t end, T* panels) const {
    const int64_t columns = kernels.tile_cols, k = end - begin, count = ceil_div(inputs, columns);
    parallel_for(count, std::max<int64_t>(1, kTaskElements / (columns * k)), [&](int64_t b, int64_t e) {
      for (int64_t panel = b; panel < e; ++panel) {
        x.pack(panel * columns, std::min(columns, inputs - panel * columns), begin, end, columns,
               panels + panel * columns * k,
               [&](int64_t n, int64_t length, const T* in, int64_t line, int64_t step, T* out) {
                 kernels.pack_b(n, length, in, step, line, out);
               });
      }
    });
  }

  /// Adds the products of positions [begin, end) for some output channels, and their gy.
  void add_rows(int64_t first, int64_t rows, int64_t begin, int64_t end, const T* panels) const {
    const int64_t height = kernels.tile_rows, k = end - begin;
    T* const tiles = static_cast<T*>(
        thread_scratch(Scratch::pack_a, sizeof(T) * static_cast<std::size_t>(ceil_div(rows, height) * height * k)));
    for (int64_t r = 0; r < rows; r += height) {
      gy.pack(first + r, std::min(height, rows - r), begin, end, height, tiles + r * k,
              [&](int64_t m, int64_t length, const T* in, int64_t line, int64_t step, T* out) {
                kernels.pack_a(m, length, in, line, step, out);
              });
    }
    Block<T> block{};
    block.m = rows;
    block.n = inputs;
    block.k = k;
    block.a = tiles;
    block.a_row = 1;
    block.a_col = height;
    block.a_tile = height * k;
    block.b = panels;
    block.b_row = kernels.tile_cols;
    block.b_tile = kernels.tile_cols * k;
    block.c = gw + first * inputs;
    block.c_row = inputs;
    block.accumulate = begin > 0;
    kernels.block(block);
    if (bias != nullptr) add_bias(tiles, rows, k, begin > 0, bias + first);
  }

  /// Adds up gy of `rows` channels, each in one chain.
  void add_bias(const T* tiles, int64_t rows, int64_t k, bool accumulate, T* sums) const {
    const int64_t height = kernels.tile_rows;
    for (int64_t r = 0; r < rows; ++r) {
      const T* const from = tiles + r / height * height * k + r % height;
      T sum = 0;
      for (int64_t i = 0; i < k; ++i) sum = sum + from[i * height];
      sums[r] = accumulate ? sums[r] + sum : sum;
    }
  }

  void run() const {
    const int64_t columns = ceil_div(inputs, kernels.tile_cols) * kernels.tile_cols;
    ScratchArray<T> panels(Scratch::partial, static_cast<std::size_t>(columns * std::min(kBlockK, positions)));
    const int64_t rows = task_rows();
    for (int64_t begin = 0; begin < positions; begin += kBlockK) {
      const int64_t end = std::min(positions, begin + kBlockK);
      pack_inputs(begin, end, panels.data());
      const int64_t work = std::max<int64_t>(1, rows * inputs * (end - begin));
      parallel_for(ceil_div(outputs, rows), std::max<int64_t>(1, kTaskWork / work), [&](int64_t b, int64_t e) {
        for (int64_t t = b; t < e; ++t) {
          add_rows(t * rows, std::min(rows, outputs - t * rows), begin, end, panels.data());
        }
      });
    }
  }
};

}  // namespace

bool weight_gradient_goes_pointwise(const ConvShape& shape) {
  const Spatial one{1, 1, 1}, none{0, 0, 0};
  const int64_t plane = shape.out[0] * shape.out[1] * shape.out[2];
  return shape.groups == 1 && shape.kernel == one && shape.pad == none && shape.batch > 0 && plane > 0 &&
         plane < kBlockK && shape.in_channels > 0 && shape.out_channels > 0;
}

template <class E>
void pointwise_weight_gradient(const ConvShape& shape, const typename E::T* x, const ImageStrides& x_strides,
                               const typename E::T* gy, const ImageStrides& gy_strides, typename E::T* gw,
                               typename E::T* gbias) {
  using T = typename E::T;
  ImageStrides read = x_strides;
  for (int d = 0; d < 3; ++d) read.spatial[d] *= shape.stride[d];
  PointwiseGradient<E>{.kernels = gemm_kernels<T>(),
                       .inputs = shape.in_channels,
                       .outputs = shape.out_channels,
                       .positions = shape.batch * shape.out[0] * shape.out[1] * shape.out[2],
                       .x = {x, read, shape.out},
                       .gy = {gy, gy_strides, shape.out},
                       .gw = gw,
                       .bias = gbias}
      .run();
}

#define VESTA_POINTWISE_GRADIENT(E)                                                                           \
  template void pointwise_weight_gradient<E>(const ConvShape&, const E::T*, const ImageStrides&,         \
                                             const E::T*, const ImageStrides&, E::T*, E::T*);
VESTA_POINTWISE_GRADIENT(Plain<float>)
VESTA_POINTWISE_GRADIENT(Plain<double>)
#undef VESTA_POINTWISE_GRADIENT

}  // namespace vesta::cpu
