// The gradient of a convolution's weights, tap by tap: Note [Direct weight gradient] in conv_direct.h. A tour: plan()
// cuts samples and channels into tasks, run_task() packs block after block and adds up its taps, gather() adds the
// partials of all sample groups and writes them in the order of the weights.
#include <vesta/core/cpu/conv_direct.h>
#include <vesta/core/cpu/conv_kernel.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/rounding.h>
#include <vesta/core/cpu/scratch.h>

#include <algorithm>

namespace vesta::cpu {
namespace {

using std::int64_t;

// Tuned with benchmarks/cpp/dnn_bench (convolution section).
constexpr int64_t kBlockOutputs = 512;                // outputs summed in one chain, whose x and gy lie in L2
constexpr int64_t kPieceInputs = 128;                 // channels of a task, whose partial lies in L2
constexpr int64_t kPieceOutputs = 64;

template <class E>
struct DirectWeightGradient {
  using T = typename E::T;

  const DirectKernels<T>& kernels;
  ConvShape shape;
  const T* x;
  ImageStrides x_strides;
  const T* gy;
  ImageStrides gy_strides;
  int64_t inputs, outputs, taps;  // channels per group
  int64_t sample_groups = 1, samples_per_group = 1;
  int64_t block_images = 1, block_rows = 1;

  int64_t panel() const { return kernels.panel; }
  int64_t padded_outputs() const { return ceil_div(outputs, panel()) * panel(); }
  int64_t partial_size() const { return padded_outputs() * inputs * taps; }  // of one group of channels
  int64_t input_pieces() const { return ceil_div(inputs, kPieceInputs); }
  int64_t output_pieces() const { return ceil_div(outputs, kPieceOutputs); }
  int64_t tasks_per_group() const { return shape.groups * input_pieces() * output_pieces(); }

  void plan() {
    const int64_t pixels = shape.out[1] * shape.out[2];
    const int64_t bytes = static_cast<int64_t>(sizeof(T)) * shape.groups * outputs * inputs * taps;
    const int64_t most = std::min(
        {shape.batch, ceil_div(kTasks, tasks_per_group()), std::max<int64_t>(1, shape.batch * pixels / kBlockOutputs)});
    sample_groups = std::clamp<int64_t>(kPartialBytes / bytes, 1, most);
    samples_per_group = ceil_div(shape.batch, sample_groups);
    sample_groups = ceil_div(shape.batch, samples_per_group);
    block_images = std::clamp<int64_t>(kBlockOutputs / pixels, 1, samples_per_group);
    block_images = ceil_div(samples_per_group, ceil_div(samples_per_group, block_images));
    block_rows = std::clamp<int64_t>(kBlockOutputs / shape.out[2], 1, shape.out[1]);
    block_rows = ceil_div(shape.out[1], ceil_div(shape.out[1], block_rows));
  }

  // The work of a task: samples of one group of channels, some of the inputs and some of the outputs.
  struct Task {
    int64_t samples, group, c0, c1, o0, o1;
  };
  Task task_at(int64_t t) const {
    const int64_t o0 = t % output_pieces() * kPieceOutputs, rest = t / output_pieces();
    const int64_t c0 = rest % input_pieces() * kPieceInputs, g = rest / input_pieces();
    return {g / shape.groups,
            g % shape.groups,
            c0,
            std::min(inputs, c0 + kPieceInputs),
            o0,
            std::min(outputs, o0 + kPieceOutputs)};
  }

  // Outputs that are summed in one chain, and the rows of x under them.
  struct BlockOf {
    int64_t image, images, row, rows, x_row, x_rows;
  };
  BlockOf block_of(int64_t image, int64_t images, int64_t row) const {
    const int64_t end = std::min(shape.out[1], row + block_rows);
    const int64_t reach = (shape.kernel[1] - 1) * shape.dilation[1] + 1;
    const int64_t low = std::clamp<int64_t>(row * shape.stride[1] - shape.pad[1], 0, shape.in[1]);
    const int64_t high = std::clamp((end - 1) * shape.stride[1] - shape.pad[1] + reach, low, shape.in[1]);
    return {image, images, row, end - row, low, high - low};
  }

  // Packs rows of `channels` channels of images as panels [images, rows * width, panel].
  void pack(const T* from, const ImageStrides& strides, int64_t images, int64_t channels, int64_t row, int64_t rows,
            int64_t width, T* out) const {
    from += row * strides.spatial[1];
    const int64_t step = strides.spatial[2];
    const bool in_place = (step == 1 || strides.channel == 1) && (rows == 1 || strides.spatial[1] == width * step);
    const int64_t pixels = rows * width;
    T* const room =
        in_place ? nullptr : static_cast<T*>(thread_scratch(Scratch::operand_a, sizeof(T) * panel() * pixels));
    for (int64_t c = 0; c < channels; c += panel()) {
      const int64_t count = std::min(panel(), channels - c);
      for (int64_t i = 0; i < images; ++i, out += pixels * panel()) {
        const T* const image = from + i * strides.batch + c * strides.channel;
        if (count < panel()) std::fill_n(out, pixels * panel(), T(0));
        if (in_place) {
          kernels.pack(count, pixels, image, strides.channel, step, out);
          continue;
        }
        for (int64_t l = 0; l < count; ++l) {
          for (int64_t r = 0; r < rows; ++r) {
            read_row<E>(width, image + l * strides.channel + r * strides.spatial[1], strides.spatial[2],
                        room + l * pixels + r * width);
          }
        }
        kernels.pack(count, pixels, room, pixels, 1, out);
      }
    }
  }

  // Adds the products of one tap to the partial: packed_x and packed_gy are the block's panels.
  void add_tap(const Task& task, const BlockOf& block, int64_t tap, const T* packed_x, const T* packed_gy,
               bool accumulate, T* partial) const {
    const int64_t k1 = tap / shape.kernel[2], k2 = tap % shape.kernel[2];
    const int64_t x_row = block.row * shape.stride[1] + k1 * shape.dilation[1] - shape.pad[1];
    const int64_t x_col = k2 * shape.dilation[2] - shape.pad[2];
    const Inside rows(block.rows, x_row, shape.stride[1], shape.in[1]);
    const Inside columns(shape.out[2], x_col, shape.stride[2], shape.in[2]);
    DirectGradient<T> g{};
    g.images = block.images;
    g.rows = rows.high - rows.low;
    g.columns = columns.high - columns.low;
    if (g.columns == 0) g.rows = 0;
    if (g.rows == 0 && accumulate) return;
    const int64_t x_pixels = block.x_rows * shape.in[2], gy_pixels = block.rows * shape.out[2];
    g.a_image = x_pixels * panel();
    g.a_row = shape.stride[1] * shape.in[2] * panel();
    g.a_col = shape.stride[2] * panel();
    g.b_image = gy_pixels * panel();
    g.b_row = shape.out[2] * panel();
    g.out_row = taps * panel();
    g.accumulate = accumulate;
    const T* const a = packed_x + ((x_row + rows.low * shape.stride[1] - block.x_row) * shape.in[2] + x_col +
                                   columns.low * shape.stride[2]) *
                                      panel();
    const T* const b = packed_gy + (rows.low * shape.out[2] + columns.low) * panel();
    for (int64_t c = task.c0; c < task.c1; c += panel()) {
      g.a = a + (c - task.c0) * x_pixels * block.images;
      g.inputs = std::min(panel(), task.c1 - c);
      for (int64_t o = task.o0; o < task.o1; o += panel()) {
        g.b = b + (o - task.o0) * gy_pixels * block.images;
        g.outputs = std::min(panel(), task.o1 - o);
        g.out = partial + ((o / panel() * inputs + c) * taps + tap) * panel();
        kernels.gradient(g);
      }
    }
  }

  // Adds the sum of each channel of gy over a block: a product with ones.
  void add_bias(const Task& task, const BlockOf& block, const T* packed_gy, bool accumulate, T* bias) const {
    const T one = 1;
    DirectGradient<T> g{};
    g.images = 1;
    g.rows = 1;
    g.columns = block.images * block.rows * shape.out[2];
    g.a = &one;
    g.inputs = 1;
    g.accumulate = accumulate;
    for (int64_t o = task.o0; o < task.o1; o += panel()) {
      g.b = packed_gy + (o - task.o0) * g.columns;
      g.outputs = std::min(panel(), task.o1 - o);
      g.out = bias + o;
      kernels.gradient(g);
    }
  }

  void run_task(const Task& task, T* partial, T* bias) const {
    const int64_t begin = task.samples * samples_per_group, end = std::min(shape.batch, begin + samples_per_group);
    const int64_t x_rows =
        std::min(shape.in[1], (block_rows - 1) * shape.stride[1] + (shape.kernel[1] - 1) * shape.dilation[1] + 1);
    const auto padded = [&](int64_t channels) { return ceil_div(channels, panel()) * panel() * block_images; };
    T* const packed_x =
        static_cast<T*>(thread_scratch(Scratch::pack_a, sizeof(T) * padded(task.c1 - task.c0) * x_rows * shape.in[2]));
    T* const packed_gy = static_cast<T*>(
        thread_scratch(Scratch::pack_b, sizeof(T) * padded(task.o1 - task.o0) * block_rows * shape.out[2]));
    for (int64_t n = begin; n < end; n += block_images) {
      for (int64_t row = 0; row < shape.out[1]; row += block_rows) {
        const BlockOf block = block_of(n, std::min(block_images, end - n), row);
        const bool accumulate = n > begin || row > 0;
        pack(x + n * x_strides.batch + (task.group * inputs + task.c0) * x_strides.channel, x_strides, block.images,
             task.c1 - task.c0, block.x_row, block.x_rows, shape.in[2], packed_x);
        pack(gy + n * gy_strides.batch + (task.group * outputs + task.o0) * gy_strides.channel, gy_strides,
             block.images, task.o1 - task.o0, block.row, block.rows, shape.out[2], packed_gy);
        for (int64_t tap = 0; tap < taps; ++tap) {
          add_tap(task, block, tap, packed_x, packed_gy, accumulate, partial);
        }
        if (bias != nullptr && task.c0 == 0) add_bias(task, block, packed_gy, accumulate, bias);
      }
    }
  }

  // Adds the partials of all sample groups, in order, for inputs [c0, c1) of one group and one panel of outputs.
  void gather(const T* partials, int64_t group, int64_t o, int64_t c0, int64_t c1, T* gw) const {
    write_partials<E>(kernels, partials + group * partial_size() + (o / panel() * inputs + c0) * taps * panel(),
                      sample_groups, shape.groups * partial_size(), (c1 - c0) * taps, std::min(panel(), outputs - o),
                      gw + ((group * outputs + o) * inputs + c0) * taps, inputs * taps);
  }

  void run(T* gw, T* gbias) {
    plan();
    ScratchArray<T> partials(Scratch::partial, static_cast<std::size_t>(sample_groups * shape.groups * partial_size()));
    const int64_t bias_size = shape.groups * padded_outputs();
    ScratchArray<T> biases(Scratch::result, static_cast<std::size_t>(sample_groups * bias_size));
    const int64_t count = sample_groups * tasks_per_group();
    const int64_t work = samples_per_group * shape.out[1] * shape.out[2] * std::min(kPieceInputs, inputs) * taps *
                         std::min(kPieceOutputs, outputs);
    parallel_for(count, std::max<int64_t>(1, kTaskWork / work), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const Task task = task_at(t);
        run_task(task, partials.data() + (task.samples * shape.groups + task.group) * partial_size(),
                 gbias == nullptr ? nullptr : biases.data() + task.samples * bias_size + task.group * padded_outputs());
      }
    });
    constexpr int64_t kChannels = 16;
    const int64_t cuts = ceil_div(inputs, kChannels), panels = padded_outputs() / panel();
    parallel_for(shape.groups * panels * cuts,
                 std::max<int64_t>(1, 65536 / (kChannels * taps * panel() * sample_groups)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t t = begin; t < end; ++t) {
                     const int64_t c0 = t % cuts * kChannels, o = t / cuts % panels * panel();
                     gather(partials.data(), t / cuts / panels, o, c0, std::min(inputs, c0 + kChannels), gw);
                   }
                 });
    if (gbias == nullptr) return;
    for (int64_t o = 0; o < shape.out_channels; ++o) {
      const T* const from = biases.data() + o / outputs * padded_outputs() + o % outputs;
      T sum = from[0];
      for (int64_t s = 1; s < sample_groups; ++s) sum = sum + from[s * bias_size];
      gbias[o] = sum;
    }
  }
};

}  // namespace

bool weight_gradient_goes_direct(const ConvShape& shape) {
  const int64_t inputs = shape.in_channels / shape.groups, outputs = shape.out_channels / shape.groups;
  const bool flat = shape.in[0] == 1 && shape.kernel[0] == 1 && shape.out[0] == 1 && shape.pad[0] == 0;
  const bool has_taps = shape.kernel[1] * shape.kernel[2] > 1;  // 1 x 1 needs no padding and reads x in place
  constexpr int64_t kFewInputs = 6, kFewOutputs = 12;  // below these, too few sums run at once, or vectors stay empty
  return flat && has_taps && shape.batch > 0 && shape.out[1] > 0 && shape.out[2] > 0 && inputs >= kFewInputs &&
         outputs >= kFewOutputs;
}

template <class E>
void write_partials(const DirectKernels<typename E::T>& kernels, const typename E::T* from, int64_t count, int64_t step,
                    int64_t lines, int64_t columns, typename E::T* to, int64_t row) {
  using T = typename E::T;
  const int64_t size = lines * kernels.panel;
  if (count > 1) {
    T* const sums = static_cast<T*>(thread_scratch(Scratch::pack_a, sizeof(T) * size));
    std::copy_n(from, size, sums);
    for (int64_t s = 1; s < count; ++s) {
      const T* const more = from + s * step;
      for (int64_t i = 0; i < size; ++i) sums[i] = sums[i] + more[i];
    }
    from = sums;
  }
  kernels.transpose(lines, columns, from, to, row);
}

#define VESTA_WRITE_PARTIALS(E)                                                                                \
  template void write_partials<E>(const DirectKernels<E::T>&, const E::T*, int64_t, int64_t, int64_t, int64_t, \
                                  E::T*, int64_t);
VESTA_WRITE_PARTIALS(Plain<float>)
VESTA_WRITE_PARTIALS(Plain<double>)
#undef VESTA_WRITE_PARTIALS

template <class E>
void direct_weight_gradient(const ConvShape& shape, const typename E::T* x, const ImageStrides& x_strides,
                            const typename E::T* gy, const ImageStrides& gy_strides, typename E::T* gw,
                            typename E::T* gbias) {
  DirectWeightGradient<E>{.kernels = direct_kernels<typename E::T>(),
                          .shape = shape,
                          .x = x,
                          .x_strides = x_strides,
                          .gy = gy,
                          .gy_strides = gy_strides,
                          .inputs = shape.in_channels / shape.groups,
                          .outputs = shape.out_channels / shape.groups,
                          .taps = shape.kernel[1] * shape.kernel[2]}
      .run(gw, gbias);
}

template void direct_weight_gradient<Plain<float>>(const ConvShape&, const float*, const ImageStrides&, const float*,
                                                   const ImageStrides&, float*, float*);
template void direct_weight_gradient<Plain<double>>(const ConvShape&, const double*, const ImageStrides&, const double*,
                                                    const ImageStrides&, double*, double*);

}  // namespace vesta::cpu
