// Winograd's convolution: Note [Winograd's convolution] in conv_winograd.h. A tour: a task is a run of tiles and of
// panels of output channels. It transforms its pixels; then, panel by panel, the weights, multiplies at each point and
// transforms back. Transformed weights are four times as many as the weights, and it takes as long to fetch them from
// memory as to make them: so they are made where they are needed and never leave the caches.
#include <vesta/core/cpu/conv_kernel.h>
#include <vesta/core/cpu/conv_winograd.h>
#include <vesta/core/cpu/gemm_kernel.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/rounding.h>
#include <vesta/core/cpu/scratch.h>

#include <algorithm>
#include <atomic>

namespace vesta::cpu {

using std::int64_t;

namespace winograd {

void clear_columns(int64_t count, int64_t lines, float* out) {
  const int64_t panel = direct_kernels<float>().panel;
  for (int64_t l = 0; l < lines; ++l) std::fill(out + l * panel + count, out + (l + 1) * panel, 0.0f);
}

template <class E>
void gather(const typename E::T* image, const ImageStrides& strides, const Spatial& size, int64_t row, int64_t rows,
            int64_t column, int64_t columns, int64_t channels, float* out) {
  const DirectKernels<float>& kernels = direct_kernels<float>();
  const int64_t panel = kernels.panel, step = strides.spatial[2];
  const int64_t low = std::clamp<int64_t>(-column, 0, columns), high = std::clamp(size[2] - column, low, columns);
  for (int64_t r = row; r < row + rows; ++r, out += columns * panel) {
    if (r < 0 || r >= size[1] || low == high) {
      std::fill_n(out, columns * panel, 0.0f);
      continue;
    }
    std::fill_n(out, low * panel, 0.0f);
    std::fill(out + high * panel, out + columns * panel, 0.0f);
    const typename E::T* const in = image + r * strides.spatial[1] + (column + low) * step;
    if (strides.channel == 1 && channels == panel) {
      for (int64_t p = low; p < high; ++p) std::copy_n(in + (p - low) * step, panel, out + p * panel);
    } else {
      kernels.pack(channels, high - low, in, strides.channel, step, out + low * panel);
    }
  }
}

#define VESTA_GATHER(E)                                                                                              \
  template void gather<E>(const E::T*, const ImageStrides&, const Spatial&, int64_t, int64_t, int64_t, int64_t, \
                          int64_t, float*);
VESTA_GATHER(Plain<float>)
#undef VESTA_GATHER

}  // namespace winograd

using namespace winograd;

namespace {

// Tuned with the convolutions of ResNet-50 and VGG-19, 1 to 8 images.
constexpr int64_t kDepth = 128;  // input channels of a block: transformed weights of a panel, 576 KiB, lie in L2
constexpr int64_t kMostTaskTiles = 64;  // of a task
constexpr int64_t kForwardTasks = 8;  // tasks wanted
constexpr int64_t kFewestTaskTiles = 48;  // of a task where there are panels to make tasks of
// Below these the transforms and the empty parts of tiles take more than is saved.
constexpr int64_t kFewestChannels = 32, kFewestTilesOfImage = 4;
constexpr int64_t kPairs = 16;  // input channels whose weights are transformed at a time

template <class E>
struct Winograd {
  const Correlated<E>& c;
  const float* const w;
  const bool backward;
  const int64_t before[2];  // rows and columns of zeros before the image
  const DirectKernels<float>& kernels = direct_kernels<float>();
  const GemmKernels<float>& products = gemm_kernels<float>();
  const WinogradKernels& transforms = winograd_kernels();
  const int64_t panel = kernels.panel;
  const int64_t inputs = c.from_channels, outputs = c.to_channels, panels = ceil_div(outputs, panel);
  const int64_t tile_rows = ceil_div(c.to_size[1], kTile), tile_columns = ceil_div(c.to_size[2], kTile);
  const int64_t in_line = round_up(inputs, panel) + kGap, out_line = panel + kGap;  // of a transformed tile

  // How tiles are cut into tasks: `rows` rows of tiles, images one after the other, times `columns` tiles, times
  // `deep` panels. No bit depends on it.
  int64_t rows = 1, columns = tile_columns, deep = panels;
  void cut() {
    columns = ceil_div(tile_columns, ceil_div(tile_columns, kMostTaskTiles));
    const int64_t across = ceil_div(tile_columns, columns), all = c.batch * tile_rows;
    const int64_t most = std::max<int64_t>(1, kMostTaskTiles / columns), fewest = ceil_div(kFewestTaskTiles, columns);
    rows = std::clamp(ceil_div(all * across, kForwardTasks), std::min(fewest, most), most);
    const int64_t tasks = across * ceil_div(all, rows);
    if (tasks < kForwardTasks) deep = ceil_div(panels, std::min(panels, ceil_div(kForwardTasks, tasks)));
  }

  // Transforms the weights of input channels [k0, k0 + depth) for the panel of output channels from `first` on: a
  // matrix [depth, panel] for each point.
  void transform_weights(int64_t first, int64_t k0, int64_t depth, float* out, int64_t point) const {
    const int64_t count = std::min(panel, outputs - first);
    float* const room = static_cast<float*>(thread_scratch(Scratch::pack_a, sizeof(float) * kPairs * kKernel * panel));
    for (int64_t i = 0; i < depth; i += kPairs) {
      const int64_t n = std::min(kPairs, depth - i);
      if (!backward) {
        kernels.pack(count, n * kKernel, w + (first * inputs + k0 + i) * kKernel, inputs * kKernel, 1, room);
      } else {
        for (int64_t j = 0; j < n; ++j) {
          kernels.pack(count, kKernel, w + ((k0 + i + j) * outputs + first) * kKernel, kKernel, 1,
                       room + j * kKernel * panel);
        }
      }
      if (count < panel) clear_columns(count, n * kKernel, room);
      transforms.weights(n, backward, room, out + i * panel, point);
    }
  }

  // Writes rows of pixels [4 rows, pixels, panel] of `channels` channels to the image.
  void scatter(const float* in, int64_t row, int64_t first, int64_t count, int64_t channels, float* image) const {
    const int64_t width = kTile * count, pixels = std::min(width, c.to_size[2] - first * kTile);
    const int64_t step = c.to_strides.spatial[2], channel = c.to_strides.channel;
    for (int64_t i = 0; i < std::min(kTile, c.to_size[1] - row * kTile); ++i, in += width * panel) {
      float* const out = image + (row * kTile + i) * c.to_strides.spatial[1] + first * kTile * step;
      if (channel == 1) {
        for (int64_t p = 0; p < pixels; ++p) E::copy(channels, in + p * panel, out + p * step);
        continue;
      }
      if (step == 1) {
        kernels.transpose(pixels, channels, in, out, channel);
        continue;
      }
      float* const room = static_cast<float*>(thread_scratch(Scratch::output, sizeof(float) * panel * pixels));
      kernels.transpose(pixels, channels, in, room, pixels);
      for (int64_t j = 0; j < channels; ++j) write_row<E>(pixels, room + j * pixels, out + j * channel, step);
    }
  }

  // A part of the work: rows of tiles [begin, end), tiles [first, first + count) of each, panels [panel0, panel1).
  struct Task {
    int64_t begin, end, first, count, panel0, panel1;
    int64_t tiles() const { return (end - begin) * count; }
  };

  // Computes a task, and marks the images with a result that is not finite.
  void run_task(const Task& task, std::atomic<bool>* again) const {
    const int64_t tiles = task.tiles(), width = kTile * task.count + 2, depth = std::min(kDepth, inputs);
    const int64_t in_point = apart(tiles * in_line), out_point = apart(tiles * out_line);
    const int64_t weights_point = depth * panel + kGap;
    float* const pixels = static_cast<float*>(thread_scratch(Scratch::input, sizeof(float) * kSpan * width * panel));
    float* const in = static_cast<float*>(thread_scratch(Scratch::operand_a, sizeof(float) * kPoints * in_point));
    float* const weights =
        static_cast<float*>(thread_scratch(Scratch::pack_b, sizeof(float) * kPoints * weights_point));
    float* const out = static_cast<float*>(thread_scratch(Scratch::partial, sizeof(float) * kPoints * out_point));
    for (int64_t r = task.begin; r < task.end; ++r) {
      for (int64_t i = 0; i < inputs; i += panel) {
        const int64_t channels = std::min(panel, inputs - i);
        gather<E>(c.from_image(r / tile_rows, 0) + i * c.from_strides.channel, c.from_strides, c.from_size,
                  r % tile_rows * kTile - before[0], kSpan, task.first * kTile - before[1], width, channels, pixels);
        transforms.input(task.count, channels, pixels, width * panel, in + (r - task.begin) * task.count * in_line + i,
                         in_line, in_point);
      }
    }
    for (int64_t p = task.panel0; p < task.panel1; ++p) {
      for (int64_t k0 = 0; k0 < inputs; k0 += kDepth) {
        const int64_t length = std::min(kDepth, inputs - k0);
        transform_weights(p * panel, k0, length, weights, weights_point);
        for (int64_t point = 0; point < kPoints; ++point) {
          multiply(tiles, length, in + point * in_point + k0, weights + point * weights_point, k0 > 0,
                   out + point * out_point);
        }
      }
      write(task, p * panel, out, out_point, pixels, again);
    }
  }

  // One block of one point: [tiles, depth] times [depth, panel].
  void multiply(int64_t tiles, int64_t depth, const float* in, const float* weights, bool accumulate,
                float* out) const {
    Block<float> block{};
    block.m = tiles;
    block.n = panel;
    block.k = depth;
    block.a = in;
    block.a_row = in_line;
    block.a_col = 1;
    block.a_tile = products.tile_rows * in_line;
    block.b = weights;
    block.b_row = panel;
    block.b_tile = panel * depth;
    block.c = out;
    block.c_row = out_line;
    block.accumulate = accumulate;
    products.block(block);
  }

  // Transforms the products of the panel from output channel `first` on back, and writes them to their images.
  void write(const Task& task, int64_t first, const float* sums, int64_t point, float* pixels,
             std::atomic<bool>* again) const {
    const int64_t channels = std::min(panel, outputs - first);
    float* bias = nullptr;
    if (c.bias != nullptr) {
      bias = static_cast<float*>(thread_scratch(Scratch::result, sizeof(float) * panel));
      std::fill_n(std::copy_n(c.bias + first, channels, bias), panel - channels, 0.0f);
    }
    for (int64_t r = task.begin; r < task.end; ++r, sums += task.count * out_line) {
      const int64_t image = r / tile_rows;
      const bool finite =
          transforms.output(task.count, channels, sums, out_line, point, bias, pixels, kTile * task.count * panel);
      if (!finite) again[image].store(true, std::memory_order_relaxed);
      scatter(pixels, r % tile_rows, task.first, task.count, channels,
              c.to_image(image, 0) + first * c.to_strides.channel);
    }
  }

  std::vector<int64_t> run() {
    cut();
    std::vector<std::atomic<bool>> again(static_cast<std::size_t>(c.batch));
    const int64_t across = ceil_div(tile_columns, columns), all = c.batch * tile_rows, groups = ceil_div(panels, deep);
    parallel_for(across * ceil_div(all, rows) * groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t p = t % groups * deep, first = t / groups % across * columns, row = t / groups / across * rows;
        run_task({row, std::min(row + rows, all), first, std::min(columns, tile_columns - first), p,
                  std::min(p + deep, panels)},
                 again.data());
      }
    });
    std::vector<int64_t> images;
    for (int64_t i = 0; i < c.batch; ++i) {
      if (again[static_cast<std::size_t>(i)]) images.push_back(i);
    }
    return images;
  }
};

}  // namespace

bool goes_winograd(const ConvShape& shape) {
  const auto all = [](const Spatial& s, int64_t value) { return s[0] == value && s[1] == value && s[2] == value; };
  const int64_t tiles = ceil_div(shape.out[1], kTile) * ceil_div(shape.out[2], kTile);
  const int64_t products = kPoints * tiles, of_sums = kKernel * shape.out[1] * shape.out[2];
  return shape.groups == 1 && shape.kernel == Spatial{1, 3, 3} && all(shape.stride, 1) && all(shape.dilation, 1) &&
         shape.in[0] == 1 && shape.pad[0] == 0 && shape.pad[1] <= 2 && shape.pad[2] <= 2 &&
         shape.in_channels >= kFewestChannels && shape.out_channels >= kFewestChannels &&
         tiles >= kFewestTilesOfImage && 5 * products <= 2 * of_sums;
}

template <class E>
std::vector<int64_t> correlate_winograd(const Correlated<E>& c, const ConvShape& shape, bool backward, const float* w) {
  if (c.batch <= 0) return {};
  const auto zeros = [&](std::size_t d) { return backward ? 2 - shape.pad[d] : shape.pad[d]; };
  return Winograd<E>{c, w, backward, {zeros(1), zeros(2)}}.run();
}

template std::vector<int64_t> correlate_winograd(const Correlated<Plain<float>>&, const ConvShape&, bool, const float*);

}  // namespace vesta::cpu
