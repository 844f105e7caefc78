// The gradient of the weights by Winograd's convolution: Note [Winograd's convolution] in conv_winograd.h. A tour: a
// task is a run of tiles, times a piece of the input channels, times a piece of the output channels. It transforms
// pixels and gradients of a few tiles at a time and adds their products at each point; at the end it transforms the
// sums back to a partial of [panel, input, 9, panel's outputs]. Partials are added in the order of the tiles.
#include <vesta/core/cpu/conv_kernel.h>
#include <vesta/core/cpu/conv_winograd.h>
#include <vesta/core/cpu/gemm_kernel.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/rounding.h>
#include <vesta/core/cpu/scratch.h>

#include <algorithm>
#include <atomic>

namespace vesta::cpu {

using namespace winograd;

namespace {

using std::int64_t;

// Tuned with the convolutions of ResNet-50 and VGG-19, 1 to 8 images.
constexpr int64_t kMostSummedTiles = 64;  // whose products are added at a time
constexpr int64_t kWinogradInputs = 128, kWinogradOutputs = 64;  // channels of a task
constexpr int64_t kFewestSummedTiles = 64;  // of a task

template <class E>
struct WinogradWeightGradient {
  const ConvShape& shape;
  const float* const x;
  const ImageStrides& x_strides;
  const float* const gy;
  const ImageStrides& gy_strides;
  const DirectKernels<float>& kernels = direct_kernels<float>();
  const GemmKernels<float>& products = gemm_kernels<float>();
  const WinogradKernels& transforms = winograd_kernels();
  const int64_t panel = kernels.panel, inputs = shape.in_channels, outputs = shape.out_channels;
  const int64_t padded_outputs = round_up(outputs, panel);
  const int64_t tile_rows = ceil_div(shape.out[1], kTile), tile_columns = ceil_div(shape.out[2], kTile);
  const int64_t all_rows = shape.batch * tile_rows;  // of tiles, images one after the other
  const int64_t partial_size = padded_outputs * inputs * kKernel;

  // How the work is cut, from the shape alone: runs of `rows` rows of tiles, added up `step` rows times `columns` tiles
  // at a time, and pieces of the channels.
  int64_t rows = 0, step = 0, columns = 0, input_pieces = 0, output_pieces = 0;
  void cut() {
    columns = ceil_div(tile_columns, ceil_div(tile_columns, kMostSummedTiles));
    step = std::max<int64_t>(1, kMostSummedTiles / columns);
    input_pieces = ceil_div(inputs, kWinogradInputs), output_pieces = ceil_div(outputs, kWinogradOutputs);
    const int64_t runs = ceil_div(kTasks, input_pieces * output_pieces);
    rows = std::max(ceil_div(all_rows, runs), std::min(all_rows, ceil_div(kFewestSummedTiles, tile_columns)));
  }
  int64_t runs() const { return ceil_div(all_rows, rows); }

  struct Task {
    int64_t row0, row1, c0, c1, o0, o1;  // rows of tiles, input and output channels
  };
  Task task_at(int64_t t) const {
    const int64_t o = t % output_pieces, c = t / output_pieces % input_pieces, r = t / output_pieces / input_pieces;
    const int64_t step_c = round_up(ceil_div(inputs, input_pieces), panel);
    const int64_t step_o = round_up(ceil_div(outputs, output_pieces), panel);
    return {r * rows,
            std::min(all_rows, (r + 1) * rows),
            std::min(inputs, c * step_c),
            std::min(inputs, (c + 1) * step_c),
            std::min(outputs, o * step_o),
            std::min(outputs, (o + 1) * step_o)};
  }

  // Transforms tiles [first, first + count) of row r of tiles: pixels to `in`, gradients to `out`.
  void transform(const Task& task, int64_t r, int64_t first, int64_t count, float* pixels, float* in, int64_t in_line,
                 int64_t in_point, float* out, int64_t out_line, int64_t out_point) const {
    const int64_t image = r / tile_rows, row = r % tile_rows * kTile, width = kTile * count;
    for (int64_t c = task.c0; c < task.c1; c += panel) {
      const int64_t channels = std::min(panel, task.c1 - c);
      gather<E>(x + image * x_strides.batch + c * x_strides.channel, x_strides, shape.in, row - shape.pad[1], kSpan,
                first * kTile - shape.pad[2], width + 2, channels, pixels);
      transforms.input(count, channels, pixels, (width + 2) * panel, in + c - task.c0, in_line, in_point);
    }
    for (int64_t o = task.o0; o < task.o1; o += panel) {
      const int64_t channels = std::min(panel, task.o1 - o);
      gather<E>(gy + image * gy_strides.batch + o * gy_strides.channel, gy_strides, shape.out, row, kTile,
                first * kTile, width, channels, pixels);
      if (channels < panel) clear_columns(channels, kTile * width, pixels);
      transforms.output_gradient(count, pixels, width * panel, out + o - task.o0, out_line, out_point);
    }
  }

  // Computes a task; returns whether every result is finite.
  bool run_task(const Task& task, float* partial) const {
    if (task.c0 >= task.c1 || task.o0 >= task.o1) return true;
    const int64_t in_line = round_up(task.c1 - task.c0, panel) + kGap, padded = round_up(task.o1 - task.o0, panel);
    const int64_t out_line = padded + kGap, most = step * columns;
    const int64_t in_point = apart(most * in_line), out_point = apart(most * out_line);
    const int64_t sums_point = apart((task.c1 - task.c0) * out_line);
    const auto room = [](Scratch slot, int64_t count) {
      return static_cast<float*>(thread_scratch(slot, sizeof(float) * count));
    };
    float* const pixels = room(Scratch::input, kSpan * (kTile * columns + 2) * panel);
    float* const in = room(Scratch::operand_a, kPoints * in_point);
    float* const out = room(Scratch::operand_b, kPoints * out_point);
    float* const sums = room(Scratch::pack_b, kPoints * sums_point);
    Block<float> block{};
    block.m = task.c1 - task.c0;
    block.n = padded;
    block.a_row = 1;
    block.a_col = in_line;
    block.a_tile = products.tile_rows;
    block.b_row = out_line;
    block.b_tile = products.tile_cols;
    block.c_row = out_line;
    for (int64_t r0 = task.row0; r0 < task.row1; r0 += step) {
      for (int64_t first = 0; first < tile_columns; first += columns) {
        const int64_t count = std::min(columns, tile_columns - first), r1 = std::min(r0 + step, task.row1);
        for (int64_t r = r0; r < r1; ++r) {
          const int64_t tile = (r - r0) * count;
          transform(task, r, first, count, pixels, in + tile * in_line, in_line, in_point, out + tile * out_line,
                    out_line, out_point);
        }
        block.k = (r1 - r0) * count;
        block.accumulate = r0 > task.row0 || first > 0;
        for (int64_t p = 0; p < kPoints; ++p) {
          block.a = in + p * in_point;
          block.b = out + p * out_point;
          block.c = sums + p * sums_point;
          products.block(block);
        }
      }
    }
    bool finite = true;
    for (int64_t o = task.o0; o < task.o1; o += panel) {
      finite &= transforms.weights_gradient(task.c1 - task.c0, sums + o - task.o0, out_line, sums_point,
                                            partial + (o / panel * inputs + task.c0) * kKernel * panel);
    }
    return finite;
  }

  // Adds the partials, in order, for inputs [c0, c1) of the panel of outputs from o on, and writes them.
  void add(const float* partials, int64_t o, int64_t c0, int64_t c1, float* gw) const {
    write_partials<E>(kernels, partials + (o / panel * inputs + c0) * kKernel * panel, runs(), partial_size,
                      (c1 - c0) * kKernel, std::min(panel, outputs - o), gw + (o * inputs + c0) * kKernel,
                      inputs * kKernel);
  }

  // Sums the gradient of every output channel, row by row and image by image, in double.
  void add_bias(float* gbias) const {
    const int64_t width = shape.out[2];
    parallel_for(outputs, std::max<int64_t>(1, 16384 / (shape.batch * shape.out[1] * width)),
                 [&](int64_t begin, int64_t end) {
                   float* const row = static_cast<float*>(thread_scratch(Scratch::input, sizeof(float) * width));
                   for (int64_t o = begin; o < end; ++o) {
                     double sum = 0;
                     for (int64_t r = 0; r < shape.batch * shape.out[1]; ++r) {
                       read_row<E>(width,
                                   gy + r / shape.out[1] * gy_strides.batch + o * gy_strides.channel +
                                       r % shape.out[1] * gy_strides.spatial[1],
                                   gy_strides.spatial[2], row);
                       for (int64_t i = 0; i < width; ++i) sum += row[i];
                     }
                     gbias[o] = static_cast<float>(sum);
                   }
                 });
  }

  bool run(float* gw, float* gbias) {
    cut();
    ScratchArray<float> partials(Scratch::partial, static_cast<std::size_t>(runs() * partial_size));
    std::atomic<bool> finite{true};
    const int64_t pieces = input_pieces * output_pieces;
    parallel_for(runs() * pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        if (!run_task(task_at(t), partials.data() + t / pieces * partial_size)) finite = false;
      }
    });
    if (!finite) return false;
    constexpr int64_t kChannels = 16;
    const int64_t cuts = ceil_div(inputs, kChannels);
    parallel_for(padded_outputs / panel * cuts, std::max<int64_t>(1, 65536 / (kChannels * kKernel * panel * runs())),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t t = begin; t < end; ++t) {
                     const int64_t c0 = t % cuts * kChannels;
                     add(partials.data(), t / cuts * panel, c0, std::min(inputs, c0 + kChannels), gw);
                   }
                 });
    if (gbias != nullptr) add_bias(gbias);
    return true;
  }
};

}  // namespace

template <class E>
bool winograd_weight_gradient(const ConvShape& shape, const typename E::T* x, const ImageStrides& x_strides,
                              const typename E::T* gy, const ImageStrides& gy_strides, typename E::T* gw,
                              typename E::T* gbias) {
  return WinogradWeightGradient<E>{shape, x, x_strides, gy, gy_strides}.run(gw, gbias);
}

#define VESTA_WEIGHT_GRADIENT(E)                                                                                \
  template bool winograd_weight_gradient<E>(const ConvShape&, const E::T*, const ImageStrides&,            \
                                            const E::T*, const ImageStrides&, E::T*, E::T*);
VESTA_WEIGHT_GRADIENT(Plain<float>)
#undef VESTA_WEIGHT_GRADIENT

}  // namespace vesta::cpu
