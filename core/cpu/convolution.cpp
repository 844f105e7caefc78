// Convolution as products on a canvas (Note [Canvas] in conv_canvas.h). A tour: conv_forward and conv_backward_data
// build a Correlation - a canvas, the products on it, packed weights - and run it over (sample, group) pairs: lay the
// image out, multiply strip by strip, write the strip to its place. conv_backward_weights multiplies the shifted rows
// of the canvas with the transposed output gradient. Every number is one chain of sums (gemm_kernel.h) over its own
// sample, so neither the batch nor the threads can change it; the weight gradient adds samples in an order that the
// shape alone decides.
#include <vesta/core/cpu/conv_canvas.h>
#include <vesta/core/cpu/conv_images.h>
#include <vesta/core/cpu/conv_weights.h>
#include <vesta/core/cpu/convolution.h>
#include <vesta/core/cpu/gemm_kernel.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/scratch.h>

#include <algorithm>
#include <stdexcept>
#include <type_traits>

namespace vesta::cpu {
namespace {

using std::int64_t;

// Tuned with benchmarks/cpp/dnn_bench (convolution section).
constexpr int64_t kStripElements = 64 * 1024;  // results of a strip: 256 KiB of floats lie in L2
constexpr int64_t kStripColumns = 512;
constexpr int64_t kTaskWork = 64 * 1024;       // multiply-adds worth a task of their own
constexpr int64_t kManyImages = 16;            // from here on a task is an image, below it a strip
constexpr int64_t kPartialBytes = int64_t{32} << 20;  // most memory for partial weight gradients

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool is_dense(const ImageStrides& strides, const Spatial& size) {
  const ImageStrides dense = dense_strides(1, size);
  for (int d = 0; d < 3; ++d) {
    if (size[d] != 1 && strides.spatial[d] != dense.spatial[d]) return false;
  }
  return true;
}

// One direction of a convolution: `from` image, products, `to` image. E is the element type.
template <class E>
struct Correlation {
  using T = typename E::T;
  using Stored = typename E::Stored;

  const GemmKernels<T>& kernels;
  Canvas canvas;
  std::vector<Taps> products;
  std::shared_ptr<const PackedWeights<T>> weights;
  int64_t batch, groups, from_channels, to_channels;  // channels per group
  Spatial from_size, to_size;
  const Stored* from;
  ImageStrides from_strides;
  Stored* to;
  ImageStrides to_strides;
  const T* bias = nullptr;  // [groups * to_channels]

  // A stretch of one product's rows that is computed at once.
  struct Strip {
    std::size_t product;
    int64_t begin, end;  // rows over the canvas' first two dimensions
  };
  std::vector<Strip> strips;
  int64_t strip_columns = 0;  // most columns of any strip

  int64_t width() const { return canvas.size[2]; }

  void cut_strips() {
    const int64_t most = std::clamp(kStripElements / to_channels, int64_t{2} * kernels.tile_cols, kStripColumns);
    const int64_t step = std::max<int64_t>(1, most / std::max<int64_t>(width(), 1));
    for (std::size_t p = 0; p < products.size(); ++p) {
      const Taps& taps = products[p];
      if (taps.span(canvas) == 0) continue;
      const int64_t rows = (taps.count[0] - 1) * canvas.size[1] + taps.count[1];
      for (int64_t r = 0; r < rows; r += step) strips.push_back({p, r, std::min(rows, r + step)});
      strip_columns = std::max(strip_columns, std::min(step, rows) * width());
    }
  }

  const Stored* from_image(int64_t image) const {
    return from + image / groups * from_strides.batch + image % groups * from_channels * from_strides.channel;
  }
  Stored* to_image(int64_t image) const {
    return to + image / groups * to_strides.batch + image % groups * to_channels * to_strides.channel;
  }

  // The image can serve as its own canvas.
  bool in_place() const {
    return std::is_same_v<Stored, T> && is_image(canvas, from_size) && is_dense(from_strides, from_size) &&
           (from_channels == 1 || from_strides.channel == canvas.channel());
  }
  // The numbers between rows are none and the strip can be written where it belongs.
  bool writes_in_place(const Taps& taps) const {
    return std::is_same_v<Stored, T> && taps.count == to_size && taps.first == Spatial{0, 0, 0} &&
           taps.step == Spatial{1, 1, 1} && canvas.size[1] == to_size[1] && canvas.size[2] == to_size[2] &&
           is_dense(to_strides, to_size);
  }

  // Computes columns of one product into c.
  void multiply(const Strip& strip, int64_t group, const T* laid_out, T* c, int64_t c_row) const {
    const Taps& taps = products[strip.product];
    const int64_t k_end = static_cast<int64_t>(taps.table.size());
    Block<T> block{};
    block.m = to_channels;
    block.n = (strip.end - strip.begin - 1) * width() + taps.count[2];
    block.c = c;
    block.c_row = c_row;
    const T* const offset = bias == nullptr ? nullptr : bias + group * to_channels;
    if (k_end == 0) {
      for (int64_t i = 0; i < block.m; ++i) std::fill_n(c + i * c_row, block.n, offset == nullptr ? T(0) : offset[i]);
      return;
    }
    block.b = laid_out + strip.begin * width();
    block.b_tile = kernels.tile_cols;
    block.a_row = 1;
    block.a_col = kernels.tile_rows;
    for (int64_t k0 = 0; k0 < k_end; k0 += kBlockK) {
      block.k = std::min(kBlockK, k_end - k0);
      block.a = weights->block(group, strip.product, k0);
      block.a_tile = kernels.tile_rows * block.k;
      block.b_table = taps.table.data() + k0;
      block.accumulate = k0 > 0;
      block.row_bias = k0 + block.k == k_end ? offset : nullptr;
      kernels.block(block);
    }
  }

  void run_strip(const Strip& strip, int64_t image, const T* laid_out, T* room) const {
    const Taps& taps = products[strip.product];
    Stored* const out = to_image(image);
    if constexpr (std::is_same_v<Stored, T>) {
      if (writes_in_place(taps)) {
        return multiply(strip, image % groups, laid_out, out + strip.begin * width(), to_strides.channel);
      }
    }
    multiply(strip, image % groups, laid_out, room, strip_columns);
    write_rows<E>(canvas, taps, strip.begin, strip.end, to_channels, room, strip_columns, to_size, out, to_strides);
  }

  const T* lay_out(int64_t image, T* room) const {
    if constexpr (std::is_same_v<Stored, T>) {
      if (room == nullptr) return from_image(image);
    }
    fill_canvas<E>(canvas, from_size, from_channels, from_image(image), from_strides, room);
    return room;
  }

  int64_t image_work() const {
    int64_t work = 1;
    for (const Taps& taps : products) work += taps.span(canvas) * static_cast<int64_t>(taps.table.size() + 1);
    return work * to_channels;
  }

  // Many images: each is a task.
  void run_by_image(int64_t canvas_elements) const {
    const int64_t grain = std::max<int64_t>(1, kTaskWork / image_work());
    parallel_for(batch * groups, grain, [&](int64_t begin, int64_t end) {
      T* const room = output_room();
      T* const laid =
          canvas_elements == 0 ? nullptr : static_cast<T*>(thread_scratch(Scratch::input, sizeof(T) * canvas_elements));
      for (int64_t image = begin; image < end; ++image) {
        const T* const laid_out = lay_out(image, laid);
        for (const Strip& strip : strips) run_strip(strip, image, laid_out, room);
      }
    });
    trim_scratch(Scratch::input);
  }

  // Few images: all are laid out first, then each strip is a task.
  void run_by_strip(int64_t canvas_elements) const {
    const int64_t images = batch * groups, count = static_cast<int64_t>(strips.size());
    ScratchArray<T> laid(Scratch::input, static_cast<std::size_t>(images * canvas_elements));
    const auto room_of = [&](int64_t image) {
      return canvas_elements == 0 ? nullptr : laid.data() + image * canvas_elements;
    };
    if (canvas_elements != 0) {
      const int64_t grain = std::max<int64_t>(1, 16384 / canvas.channel());
      parallel_for(images * from_channels, grain, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          const int64_t image = t / from_channels, channel = t % from_channels;
          fill_canvas<E>(canvas, from_size, 1, from_image(image) + channel * from_strides.channel, from_strides,
                         room_of(image) + channel * canvas.channel());
        }
      });
    }
    const int64_t grain = std::max<int64_t>(1, kTaskWork * count / image_work());
    parallel_for(images * count, grain, [&](int64_t begin, int64_t end) {
      T* const room = output_room();
      for (int64_t t = begin; t < end; ++t) {
        const int64_t image = t / count;
        const T* laid_out = room_of(image);
        if constexpr (std::is_same_v<Stored, T>) {
          if (laid_out == nullptr) laid_out = from_image(image);
        }
        run_strip(strips[t % count], image, laid_out, room);
      }
    });
  }

  T* output_room() const {
    return static_cast<T*>(thread_scratch(Scratch::output, sizeof(T) * to_channels * strip_columns));
  }

  void run() {
    if (batch <= 0 || to_channels <= 0 || to_size[0] * to_size[1] * to_size[2] <= 0) return;
    cut_strips();
    const int64_t elements = in_place() ? 0 : from_channels * canvas.channel();
    if (batch * groups >= kManyImages || strips.size() < 2) {
      run_by_image(elements);
    } else {
      run_by_strip(elements);
    }
  }
};

// Widens a small array if it is stored as 16-bit floats; holds the result.
template <class E>
class Widened {
 public:
  Widened(const void* in, int64_t n) {
    if (in == nullptr) return;
    if constexpr (std::is_same_v<typename E::Stored, typename E::T>) {
      data_ = static_cast<const typename E::T*>(in);
    } else {
      values_.resize(static_cast<std::size_t>(n));
      E::widen(n, static_cast<const typename E::Stored*>(in), values_.data());
      data_ = values_.data();
    }
  }
  const typename E::T* data() const { return data_; }

 private:
  std::vector<typename E::T> values_;
  const typename E::T* data_ = nullptr;
};

int64_t weight_count(const ConvShape& shape) {
  return shape.out_channels * (shape.in_channels / shape.groups) * shape.kernel[0] * shape.kernel[1] * shape.kernel[2];
}

template <class E>
void forward(const ConvShape& shape, const void* x, const ImageStrides& x_strides, const void* w, const void* bias,
             void* y, const ImageStrides& y_strides, WeightKey key) {
  using Stored = typename E::Stored;
  const Widened<E> values(w, weight_count(shape)), offsets(bias, shape.out_channels);
  Correlation<E> run{.kernels = gemm_kernels<typename E::T>(),
                     .canvas = input_canvas(shape),
                     .products = {},
                     .weights = nullptr,
                     .batch = shape.batch,
                     .groups = shape.groups,
                     .from_channels = shape.in_channels / shape.groups,
                     .to_channels = shape.out_channels / shape.groups,
                     .from_size = shape.in,
                     .to_size = shape.out,
                     .from = static_cast<const Stored*>(x),
                     .from_strides = x_strides,
                     .to = static_cast<Stored*>(y),
                     .to_strides = y_strides,
                     .bias = offsets.data(),
                     .strips = {}};
  run.products.push_back(forward_taps(shape, run.canvas, run.from_channels));
  run.weights = packed_weights(shape, WeightUse::forward, run.products, values.data(), key);
  run.run();
}

template <class E>
void backward_data(const ConvShape& shape, const void* gy, const ImageStrides& gy_strides, const void* w,
                   const void* bias, void* gx, const ImageStrides& gx_strides, WeightKey key) {
  using Stored = typename E::Stored;
  const Widened<E> values(w, weight_count(shape)), offsets(bias, shape.in_channels);
  Correlation<E> run{.kernels = gemm_kernels<typename E::T>(),
                     .canvas = gradient_canvas(shape),
                     .products = {},
                     .weights = nullptr,
                     .batch = shape.batch,
                     .groups = shape.groups,
                     .from_channels = shape.out_channels / shape.groups,
                     .to_channels = shape.in_channels / shape.groups,
                     .from_size = shape.out,
                     .to_size = shape.in,
                     .from = static_cast<const Stored*>(gy),
                     .from_strides = gy_strides,
                     .to = static_cast<Stored*>(gx),
                     .to_strides = gx_strides,
                     .bias = offsets.data(),
                     .strips = {}};
  run.products = backward_taps(shape, run.canvas, run.from_channels);
  run.weights = packed_weights(shape, WeightUse::backward_data, run.products, values.data(), key);
  run.run();
}

// ---- gradient of the weights ----------------------------------------------------------------------------------------

// gw[o, (c, k)] = sum over samples and outputs of x[c, shifted by k] * gy[o]: the shifted rows of the canvas are the
// rows of the left matrix, gy transposed the right one. A task is (samples, group, channels): it sums its samples in
// order into a partial of [taps, outputs]; partials are added in order at the end.
template <class E>
struct WeightGradient {
  using T = typename E::T;
  using Stored = typename E::Stored;

  const GemmKernels<T>& kernels;
  ConvShape shape;
  const Stored* x;
  ImageStrides x_strides;
  const Stored* gy;
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
    // Where the weights are too large for many partials the channels are shared out as well.
    constexpr int64_t kTasks = 16, kPieceRows = 256;
    const int64_t most = std::max<int64_t>(1, inputs * kernel / kPieceRows);
    const int64_t wanted = std::min({ceil_div(kTasks, sample_groups * shape.groups), most, inputs});
    piece_channels = std::max<int64_t>(1, ceil_div(inputs, std::max<int64_t>(wanted, 1)));
    pieces = std::max<int64_t>(1, ceil_div(inputs, piece_channels));
  }

  int64_t rows() const { return inputs * kernel; }
  int64_t panels() const { return ceil_div(outputs, kernels.tile_cols); }

  // Writes one sample's gy as packed panels [span, tile_cols], zero between image rows.
  void pack_gradient(const Stored* image, T* out) const {
    const int64_t nc = kernels.tile_cols, width = canvas.size[2];
    ImageStrides strides = gy_strides;
    const T* values = nullptr;
    if constexpr (std::is_same_v<Stored, T>) {
      values = image;
    } else {
      T* const wide = static_cast<T*>(
          thread_scratch(Scratch::operand_a, sizeof(T) * outputs * shape.out[0] * shape.out[1] * shape.out[2]));
      strides = dense_strides(outputs, shape.out);
      T* to = wide;
      for (int64_t o = 0; o < outputs; ++o) {
        for (int64_t r = 0; r < shape.out[0] * shape.out[1]; ++r, to += shape.out[2]) {
          read_row<E>(shape.out[2],
                      image + o * gy_strides.channel + r / shape.out[1] * gy_strides.spatial[0] +
                          r % shape.out[1] * gy_strides.spatial[1],
                      gy_strides.spatial[2], to);
        }
      }
      values = wide;
    }
    const bool rows_touch = width == shape.out[2] && canvas.size[1] == shape.out[1] && is_dense(strides, shape.out);
    for (int64_t o = 0; o < outputs; o += nc, out += nc * span) {
      const int64_t count = std::min(nc, outputs - o);
      const T* const from = values + o * strides.channel;
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

  // Adds up each column of the packed panels: one sample's part of the bias gradient.
  void add_bias(const T* packed, T* bias, bool first) const {
    const int64_t nc = kernels.tile_cols;
    for (int64_t o = 0; o < outputs; o += nc, packed += nc * span) {
      T sums[64] = {};
      for (int64_t k = 0; k < span; ++k) {
        for (int64_t j = 0; j < nc; ++j) sums[j] += packed[k * nc + j];
      }
      for (int64_t j = 0; j < std::min(nc, outputs - o); ++j) bias[o + j] = first ? sums[j] : bias[o + j] + sums[j];
    }
  }

  // Adds one sample's product for channels [c0, c1) to the partial.
  void add_product(const T* laid_out, const T* packed, int64_t c0, int64_t c1, T* partial, bool first) const {
    Block<T> block{};
    block.m = (c1 - c0) * kernel;
    block.n = outputs;
    block.a_table = taps.table.data();  // laid_out starts at channel c0
    block.a_col = 1;
    block.a_row = 0;
    block.b_row = kernels.tile_cols;
    block.b_tile = kernels.tile_cols * span;
    block.c = partial + c0 * kernel * outputs;
    block.c_row = outputs;
    for (int64_t k0 = 0; k0 < span; k0 += kBlockK) {
      block.k = std::min(kBlockK, span - k0);
      block.a = laid_out + k0;
      block.b = packed + k0 * kernels.tile_cols;
      block.accumulate = !first || k0 > 0;
      kernels.block(block);
    }
  }

  bool in_place() const {
    return std::is_same_v<Stored, T> && is_image(canvas, shape.in) && is_dense(x_strides, shape.in) &&
           (inputs == 1 || x_strides.channel == canvas.channel());
  }

  void run_task(int64_t samples, int64_t group, int64_t piece, T* partial, T* bias) const {
    const int64_t c0 = piece * piece_channels, c1 = std::min(inputs, c0 + piece_channels);
    const bool lies_ready = in_place();
    T* const packed = static_cast<T*>(thread_scratch(Scratch::pack_b, sizeof(T) * panels() * kernels.tile_cols * span));
    T* const room = lies_ready
                        ? nullptr
                        : static_cast<T*>(thread_scratch(Scratch::input, sizeof(T) * (c1 - c0) * canvas.channel()));
    const int64_t begin = samples * samples_per_group, end = std::min(shape.batch, begin + samples_per_group);
    for (int64_t n = begin; n < end; ++n) {
      const Stored* const image = x + n * x_strides.batch + (group * inputs + c0) * x_strides.channel;
      pack_gradient(gy + n * gy_strides.batch + group * outputs * gy_strides.channel, packed);
      if (bias != nullptr && piece == 0) add_bias(packed, bias, n == begin);
      const T* laid_out = room;
      if constexpr (std::is_same_v<Stored, T>) {
        if (lies_ready) laid_out = image;
      }
      if (!lies_ready) fill_canvas<E>(canvas, shape.in, c1 - c0, image, x_strides, room);
      add_product(laid_out, packed, c0, c1, partial, n == begin);
    }
  }

  // Adds the partials of all sample groups, in order, and transposes them to [outputs, taps].
  void gather(const T* partials, int64_t stride, int64_t group, int64_t row0, int64_t row1, Stored* gw) const {
    T line[256];
    for (int64_t o = 0; o < outputs; ++o) {
      for (int64_t r = row0; r < row1; ++r) {
        const T* const from = partials + (group * rows() + r) * outputs + o;
        T sum = from[0];
        for (int64_t s = 1; s < sample_groups; ++s) sum = sum + from[s * stride];
        line[r - row0] = sum;
      }
      E::narrow(row1 - row0, line, gw + (group * outputs + o) * rows() + row0);
    }
  }

  void run(Stored* gw, Stored* gbias) {
    if (shape.batch <= 0 || shape.out[0] * shape.out[1] * shape.out[2] <= 0) {
      std::fill_n(gw, weight_count(shape), Stored(0));
      if (gbias != nullptr) std::fill_n(gbias, shape.out_channels, Stored(0));
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
    constexpr int64_t kRows = 16;  // a cache line of gw, of each of which 16 rows of partials lie in L1
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
      E::narrow(1, &sum, gbias + o);
    }
  }
};

template <class E>
void backward_weights(const ConvShape& shape, const void* x, const ImageStrides& x_strides, const void* gy,
                      const ImageStrides& gy_strides, void* gw, void* gbias) {
  using Stored = typename E::Stored;
  WeightGradient<E> run{.kernels = gemm_kernels<typename E::T>(),
                        .shape = shape,
                        .x = static_cast<const Stored*>(x),
                        .x_strides = x_strides,
                        .gy = static_cast<const Stored*>(gy),
                        .gy_strides = gy_strides,
                        .canvas = input_canvas(shape),
                        .inputs = shape.in_channels / shape.groups,
                        .outputs = shape.out_channels / shape.groups,
                        .taps = {}};
  run.run(static_cast<Stored*>(gw), static_cast<Stored*>(gbias));
}

// Calls f with the element type as a template argument.
template <class F>
void with_element(Elem elem, F&& f) {
  switch (elem) {
    case Elem::f32: return f.template operator()<Plain<float>>();
    case Elem::f64: return f.template operator()<Plain<double>>();
    case Elem::bf16: return f.template operator()<Bf16>();
    case Elem::f16: return f.template operator()<F16>();
    default:
      throw std::invalid_argument(
          "convolution: expected a floating element type (f32, f64, bf16, f16), got another. "
          "Cast the operands first.");
  }
}

}  // namespace

ImageStrides dense_strides(int64_t channels, const Spatial& size) {
  const int64_t plane = size[0] * size[1] * size[2];
  return {channels * plane, plane, {size[1] * size[2], size[2], 1}};
}

ImageStrides channels_last_strides(int64_t channels, const Spatial& size) {
  return {channels * size[0] * size[1] * size[2], 1, {size[1] * size[2] * channels, size[2] * channels, channels}};
}

void conv_forward(Elem elem, const ConvShape& shape, const void* x, const ImageStrides& x_strides, const void* w,
                  const void* bias, void* y, const ImageStrides& y_strides, WeightKey key) {
  with_element(elem, [&]<class E>() { forward<E>(shape, x, x_strides, w, bias, y, y_strides, key); });
}

void conv_backward_data(Elem elem, const ConvShape& shape, const void* gy, const ImageStrides& gy_strides,
                        const void* w, const void* bias, void* gx, const ImageStrides& gx_strides, WeightKey key) {
  with_element(elem, [&]<class E>() { backward_data<E>(shape, gy, gy_strides, w, bias, gx, gx_strides, key); });
}

void conv_backward_weights(Elem elem, const ConvShape& shape, const void* x, const ImageStrides& x_strides,
                           const void* gy, const ImageStrides& gy_strides, void* gw, void* gbias) {
  with_element(elem, [&]<class E>() { backward_weights<E>(shape, x, x_strides, gy, gy_strides, gw, gbias); });
}

}  // namespace vesta::cpu
