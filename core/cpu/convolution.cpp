// Convolution: a tour. conv_forward and conv_backward_data describe themselves as a Correlated (a canvas and the
// products on it) and take the fastest of six ways: plane by plane (Note [Depthwise convolution] in conv_depthwise.h),
// as a plain product of pixels (Note [Pixels in rows] in conv_pointwise.h), as one product of all images (Note [Few
// columns] in conv_few_columns.h), with fewer products (Note [Winograd's convolution] in conv_winograd.h), directly
// (Note [Direct convolution] in conv_direct.h), or as a Correlation, which runs over (sample, group) pairs: lay the
// image out on its canvas (Note [Canvas] in conv_canvas.h), multiply strip by strip, write the strip to its position.
// Every number is one chain of sums (gemm_kernel.h) over its own sample, with the blocks of Taps::block, so neither the
// batch nor the threads can change it.
#include <vesta/core/cpu/conv_canvas.h>
#include <vesta/core/cpu/conv_depthwise.h>
#include <vesta/core/cpu/conv_direct.h>
#include <vesta/core/cpu/conv_few_columns.h>
#include <vesta/core/cpu/conv_half.h>
#include <vesta/core/cpu/conv_images.h>
#include <vesta/core/cpu/conv_pointwise.h>
#include <vesta/core/cpu/conv_weights.h>
#include <vesta/core/cpu/conv_unfolded.h>
#include <vesta/core/cpu/conv_winograd.h>
#include <vesta/core/cpu/convolution.h>
#include <vesta/core/cpu/gemm_kernel.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/rounding.h>
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
constexpr int64_t kWeightRows = 96;  // rows of weights that stay in L2 while panels pass
constexpr int64_t kChunkedImages = 16;  // from here on a task is a chunk of images, below it a strip
constexpr int64_t kSmallImage = 256;  // outputs below which images are joined to fill panels
constexpr int64_t kLongestStep = int64_t{1} << 23;  // elements between joined images: offsets fit 32 bits
constexpr double kPackingCost = 6;  // packing a column costs as much as this many rows of weights
constexpr int64_t kManyRows = 96;  // rows of weights from which packed columns are always read faster
constexpr int64_t kTaskChannels = 32;  // channels that a task lays out, where they lie side by side
constexpr int64_t kFewestPacked = 1024;  // results below which packing does not pay
// Least columns of a strip and output channels of a task, where they are cut for more tasks: each strip reads all
// weights, and each task the columns of its strip.
constexpr int64_t kLeastColumns = 128, kLeastRows = 32;
constexpr int64_t kReadColumns = 256;  // columns of a batch up to which packing the weights does not pay

// One direction of a convolution: images `from`, products, images `to`. E is the element type. A product's columns are
// its outputs. Either they are numbered by the pitch of the canvas and read where they lie, a few between rows in
// vain; or, where there are enough rows of weights to repay it, exactly the wanted outputs are packed into panels,
// those of several small images one after the other.
template <class E>
struct Correlation : Correlated<E> {
  using T = typename E::T;
  using Base = Correlated<E>;
  using Base::batch, Base::groups, Base::from_channels, Base::to_channels, Base::from_size, Base::to_size;
  using Base::canvas, Base::products, Base::weights, Base::bias;
  using Base::from, Base::from_strides, Base::to, Base::to_strides;
  using Base::from_image, Base::to_image, Base::covers_image;

  explicit Correlation(const Base& base) : Base(base) {}

  const GemmKernels<T>& kernels = product_kernels_of<E>();
  const T* values = nullptr;  // forward weights that are read as they lie, else `weights` are packed

  // A range of one product that is computed at once.
  struct Strip {
    std::size_t product;
    int64_t begin, end;  // packed: columns over the images of a chunk; else rows over the canvas' first two dimensions
    int64_t row, row_end;  // output channels
  };
  std::vector<Strip> strips;
  int64_t down = 1;  // tasks of a strip, each with some of the output channels; they share the packed columns
  int64_t strip_columns = 0;  // most columns of any strip
  bool packed = false;
  int64_t outputs = 0;  // of a product per image
  int64_t chunk = 1;  // samples whose images of one group are computed together
  bool ready = false;  // images are their own canvases

  // One chunk of images laid out: that of sample first + i at data + i * stride.
  struct Chunk {
    int64_t first, count, group;
    const T* data;
    int64_t stride;
  };

  int64_t width() const { return canvas.size[2]; }
  int64_t canvas_elements() const { return ready ? 0 : from_channels * canvas.channel(); }

  // Decides how columns are made, from the shape alone; what it decides changes no bits.
  void plan() {
    if (batch <= 0 || to_channels <= 0 || to_size[0] * to_size[1] * to_size[2] <= 0) return;
    ready = lies_ready(canvas, from_size, from_channels, from_strides);
    const Taps& taps = products.front();
    outputs = Base::outputs();
    if (outputs == 0) return;
    const double waste = static_cast<double>(taps.span(canvas)) / static_cast<double>(outputs);
    packed = (to_channels >= kManyRows || waste > 1 + kPackingCost / static_cast<double>(to_channels)) &&
             outputs * to_channels > kFewestPacked;
    const int64_t most = std::clamp(kStripElements / to_channels, int64_t{2} * kernels.tile_cols, kStripColumns);
    if (packed && outputs < kSmallImage && std::max(from_strides.batch, canvas_elements()) < kLongestStep) {
      chunk = std::clamp<int64_t>(batch / 8, 1, ceil_div(kSmallImage, outputs));
    }
    const int64_t wanted = ceil_div(kTasks, ceil_div(batch, chunk) * groups * static_cast<int64_t>(products.size()));
    for (std::size_t p = 0; p < products.size(); ++p) {
      if (packed) {
        cut_columns(p, most, wanted);
      } else {
        const int64_t rows = (taps.count[0] - 1) * canvas.size[1] + taps.count[1];
        const int64_t columns = std::min(most, std::max(ceil_div(rows * width(), wanted), kLeastColumns));
        const int64_t step = std::max<int64_t>(1, columns / width());
        for (int64_t r = 0; r < rows; r += step) strips.push_back({p, r, std::min(rows, r + step), 0, to_channels});
        strip_columns = std::min(step, rows) * width();
      }
    }
  }

  // Cuts the packed columns of a product into strips of at most about `most` and, where these are fewer than `wanted`,
  // into strips of fewer columns and tasks of fewer output channels. Their sizes differ by one tile at most, so that
  // threads get equal work.
  void cut_columns(std::size_t product, int64_t most, int64_t wanted) {
    const int64_t all = outputs * chunk, tiles = ceil_div(all, kernels.tile_cols);
    const int64_t across =
        std::clamp(std::max(ceil_div(all, most), std::min(wanted, all / kLeastColumns)), int64_t{1}, tiles);
    strip_columns = ceil_div(tiles, across) * kernels.tile_cols;
    for (int64_t i = 0; i < across; ++i) {
      const int64_t begin = tiles * i / across * kernels.tile_cols, end = tiles * (i + 1) / across * kernels.tile_cols;
      strips.push_back({product, begin, std::min(all, end), 0, to_channels});
    }
    down = std::max<int64_t>(1, std::min(ceil_div(wanted, across), to_channels / kLeastRows));
  }

  // Returns the part of a strip with the output channels of its i-th task.
  Strip part(Strip strip, int64_t i) const {
    const int64_t tiles = ceil_div(to_channels, kernels.tile_rows);
    strip.row = tiles * i / down * kernels.tile_rows;
    strip.row_end = std::min(to_channels, tiles * (i + 1) / down * kernels.tile_rows);
    return strip;
  }

  // Returns whether weights that lie in rows are read as they lie: where columns are few, packing them takes as long as
  // a good part of the product. Rows a multiple of a page apart would compete for the same lines of L1.
  bool reads_rows() const {
    constexpr int64_t kPage = 4096;
    const int64_t row = static_cast<int64_t>(products.front().table.size() * sizeof(T));
    return packed && batch * outputs <= kReadColumns && row % kPage != 0;
  }

  // Points a block at the weights of `rows` rows from `row` on and taps [k0, k0 + block.k).
  void take_weights(Block<T>& block, const Strip& strip, int64_t group, int64_t row, int64_t rows, int64_t k0) const {
    const Taps& taps = products[strip.product];
    const int64_t k_end = static_cast<int64_t>(taps.table.size());
    block.m = rows;
    block.k = std::min(taps.block(), k_end - k0);
    if (values != nullptr) {
      block.a = values + (group * to_channels + row) * k_end + k0;
      block.a_row = k_end;
      block.a_col = 1;
      block.a_tile = kernels.tile_rows * k_end;
    } else {
      block.a = weights->block(group, strip.product, k0) + row * block.k;
      block.a_row = 1;
      block.a_col = kernels.tile_rows;
      block.a_tile = kernels.tile_rows * block.k;
    }
    block.accumulate = k0 > 0;
    block.row_bias = bias != nullptr && k0 + block.k == k_end ? bias + group * to_channels + row : nullptr;
  }

  // Fills the result of a product without taps, from the strip's first row on: only the bias.
  void fill(const Strip& strip, int64_t group, int64_t columns, T* c, int64_t c_row) const {
    for (int64_t i = strip.row; i < strip.row_end; ++i, c += c_row) {
      std::fill_n(c, columns, bias == nullptr ? T(0) : bias[group * to_channels + i]);
    }
  }

  // Computes a strip whose columns are read where they lie.
  void multiply_rows(const Strip& strip, const Chunk& images, T* c, int64_t c_row) const {
    const Taps& taps = products[strip.product];
    Block<T> block{};
    block.n = (strip.end - strip.begin - 1) * width() + taps.count[2];
    if (taps.table.empty()) return fill(strip, images.group, block.n, c, c_row);
    block.b = images.data + strip.begin * width();
    block.b_tile = kernels.tile_cols;
    block.c = c;
    block.c_row = c_row;
    for (int64_t k0 = 0; k0 < static_cast<int64_t>(taps.table.size()); k0 += taps.block()) {
      take_weights(block, strip, images.group, 0, to_channels, k0);
      block.b_table = taps.table.data() + k0;
      kernels.block(block);
    }
  }

  void run_rows(const Strip& strip, const Chunk& images) const {
    const Taps& taps = products[strip.product];
    T* const out = to_image(images.first, images.group);
    if (covers_image(taps) && canvas.size[1] == to_size[1] && canvas.size[2] == to_size[2]) {
      return multiply_rows(strip, images, out + strip.begin * width(), to_strides.channel);
    }
    T* const room = results(strip);
    multiply_rows(strip, images, room, strip_columns);
    write_rows<E>(canvas, taps, strip.begin, strip.end, to_channels, room, strip_columns, to_size, out, to_strides);
  }

  // Columns that are packed: their positions in the images of a chunk.
  const std::int32_t* places(const Strip& strip, const Chunk& images, int64_t columns) const {
    const int64_t panels = round_up(columns, kernels.tile_cols);
    auto* const at = static_cast<std::int32_t*>(thread_scratch(Scratch::operand_a, sizeof(std::int32_t) * panels));
    column_offsets(canvas, products[strip.product], strip.begin, strip.begin + columns, images.stride, at);
    return at;
  }

  // Computes a strip whose columns are packed, from its first row on: blocks of k outside, then blocks of weights that
  // stay in L2. `ready_columns` holds its columns if they are packed already.
  void multiply_columns(const Strip& strip, const Chunk& images, int64_t columns, const T* ready_columns, T* c,
                        int64_t c_row) const {
    const Taps& taps = products[strip.product];
    if (taps.table.empty()) return fill(strip, images.group, columns, c, c_row);
    const int64_t panels = round_up(columns, kernels.tile_cols), k_end = static_cast<int64_t>(taps.table.size());
    const std::int32_t* at = nullptr;
    T* room = nullptr;
    if (ready_columns == nullptr) {
      at = places(strip, images, columns);
      room = static_cast<T*>(thread_scratch(Scratch::pack_b, sizeof(T) * (panels * taps.block() + kernels.tile_cols)));
    }
    const int64_t rows = kWeightRows / kernels.tile_rows * kernels.tile_rows;
    Block<T> block{};
    block.n = columns;
    block.b_row = kernels.tile_cols;
    block.c_row = c_row;
    for (int64_t k0 = 0; k0 < k_end; k0 += taps.block()) {
      block.k = std::min(taps.block(), k_end - k0);
      if (room != nullptr) kernels.pack_columns(columns, block.k, images.data, taps.table.data() + k0, at, room);
      block.b = room != nullptr ? room : ready_columns + k0 / taps.block() * block_room(taps);
      block.b_tile = kernels.tile_cols * block.k;
      for (int64_t row = strip.row; row < strip.row_end; row += rows) {
        take_weights(block, strip, images.group, row, std::min(rows, strip.row_end - row), k0);
        block.c = c + (row - strip.row) * c_row;
        kernels.block(block);
      }
    }
  }

  // Elements for a block of taps of a strip's columns. What packing overwrites behind them is no other block's.
  int64_t block_room(const Taps& taps) const { return strip_columns * taps.block() + kernels.tile_cols; }

  // Packs a block of taps for all tasks of a strip.
  void pack_block(const Strip& strip, const Chunk& images, int64_t block, T* to) const {
    const Taps& taps = products[strip.product];
    const int64_t columns = columns_of(strip, images), k_end = static_cast<int64_t>(taps.table.size());
    const int64_t k0 = block * taps.block();
    if (columns <= 0 || k0 >= k_end) return;
    kernels.pack_columns(columns, std::min(taps.block(), k_end - k0), images.data, taps.table.data() + k0,
                         places(strip, images, columns), to + block * block_room(taps));
  }

  int64_t columns_of(const Strip& strip, const Chunk& images) const {
    return std::min(strip.end, images.count * outputs) - strip.begin;
  }

  void run_columns(const Strip& strip, const Chunk& images, const T* ready_columns) const {
    const Taps& taps = products[strip.product];
    const int64_t columns = columns_of(strip, images), end = strip.begin + columns;
    if (columns <= 0) return;
    T* const out = to_image(images.first, images.group) + strip.row * to_strides.channel;
    const bool covers = covers_image(taps);
    if (covers && images.count == 1) {
      return multiply_columns(strip, images, columns, ready_columns, out + strip.begin, to_strides.channel);
    }
    T* const room = results(strip);
    multiply_columns(strip, images, columns, ready_columns, room, strip_columns);
    write_columns<E>(taps, covers, strip.begin, end, strip.row_end - strip.row, room, strip_columns, to_size, out,
                     to_strides);
  }

  void run_strip(const Strip& strip, const Chunk& images, const T* ready_columns = nullptr) const {
    return packed ? run_columns(strip, images, ready_columns) : run_rows(strip, images);
  }

  T* results(const Strip& strip) const {
    const int64_t rows = strip.row_end - strip.row;
    return static_cast<T*>(thread_scratch(Scratch::output, sizeof(T) * rows * strip_columns));
  }

  // Lays out the images of a chunk in `room`, or finds them laid out already.
  Chunk lay_out(int64_t first, int64_t count, int64_t group, T* room) const {
    if (ready) return {first, count, group, from_image(first, group), from_strides.batch};
    for (int64_t i = 0; i < count; ++i) {
      fill_canvas<E>(canvas, from_size, from_channels, from_image(first + i, group), from_strides,
                     room + i * canvas_elements());
    }
    return {first, count, group, room, canvas_elements()};
  }

  int64_t image_work() const {
    int64_t work = 1;
    for (const Taps& taps : products) work += outputs * static_cast<int64_t>(taps.table.size() + 1);
    return work * to_channels;
  }

  // Runs many images: each chunk is a task.
  void run_by_chunk() const {
    const int64_t chunks = ceil_div(batch, chunk), grain = std::max<int64_t>(1, kTaskWork / (image_work() * chunk));
    parallel_for(chunks * groups, grain, [&](int64_t begin, int64_t end) {
      T* const room = static_cast<T*>(thread_scratch(Scratch::input, sizeof(T) * canvas_elements() * chunk));
      std::fill_n(room, canvas_elements() * chunk, T(0));
      for (int64_t t = begin; t < end; ++t) {
        const int64_t first = t / groups * chunk;
        const Chunk images = lay_out(first, std::min(chunk, batch - first), t % groups, room);
        for (const Strip& strip : strips) run_strip(strip, images);
      }
    });
    trim_scratch(Scratch::input);
  }

  // Runs few images: all are laid out first, then each strip is a task.
  void run_by_strip() const {
    const int64_t elements = canvas_elements(), count = static_cast<int64_t>(strips.size());
    ScratchArray<T> laid(Scratch::input, static_cast<std::size_t>(batch * groups * elements));
    if (!ready) {
      // channels side by side are laid out together
      const int64_t planes = groups * from_channels, piece = from_strides.channel == 1 ? kTaskChannels : 1;
      const int64_t pieces = ceil_div(planes, piece), grain = std::max<int64_t>(1, 16384 / (piece * canvas.channel()));
      parallel_for(batch * pieces, grain, [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          const int64_t sample = t / pieces, channel = t % pieces * piece, count = std::min(piece, planes - channel);
          T* const plane = laid.data() + (sample * planes + channel) * canvas.channel();
          std::fill_n(plane, count * canvas.channel(), T(0));
          fill_canvas<E>(canvas, from_size, count, from + sample * from_strides.batch + channel * from_strides.channel,
                         from_strides, plane);
        }
      });
    }
    const auto images_of = [&](int64_t unit) {  // of the unit-th pair of a chunk and a group
      const int64_t group = unit % groups, first = unit / groups * chunk, size = std::min(chunk, batch - first);
      if (ready) return lay_out(first, size, group, nullptr);
      return Chunk{first, size, group, laid.data() + (first * groups + group) * elements, groups * elements};
    };
    const int64_t units = ceil_div(batch, chunk) * groups;
    int64_t blocks = 0, shared = 0;  // blocks of taps of a product, and elements of a strip's columns, at most
    for (const Taps& taps : products) {
      if (down < 2 || taps.table.empty()) continue;
      const int64_t n = ceil_div(static_cast<int64_t>(taps.table.size()), taps.block());
      blocks = std::max(blocks, n);
      shared = std::max(shared, n * block_room(taps));
    }
    ScratchArray<T> columns(Scratch::partial, static_cast<std::size_t>(units * count * shared));
    parallel_for(units * count * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t strip = t / blocks;
        pack_block(strips[static_cast<std::size_t>(strip % count)], images_of(strip / count), t % blocks,
                   columns.data() + strip * shared);
      }
    });
    const int64_t grain = std::max<int64_t>(1, kTaskWork * count * down / (image_work() * chunk));
    parallel_for(units * count * down, grain, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t strip = t / down;
        run_strip(part(strips[static_cast<std::size_t>(strip % count)], t % down), images_of(strip / count),
                  shared > 0 ? columns.data() + strip * shared : nullptr);
      }
    });
  }

  void run() {
    if (batch <= 0 || to_channels <= 0 || to_size[0] * to_size[1] * to_size[2] <= 0) return;
    if (batch * groups >= kChunkedImages || static_cast<int64_t>(strips.size()) * down < 2) {
      run_by_chunk();
    } else {
      run_by_strip();
    }
  }
};

// Packs the weights and computes the convolution directly or on its canvas.
template <class E>
void correlate_packed(Correlated<E>& run, const ConvShape& shape, WeightUse use, WeightUse direct_use,
                      const typename E::T* values, const Weight& weight) {
  if (goes_direct(run)) {
    run.weights = packed_weights(shape, direct_use, run.products, values, weight);
    return correlate_direct(run);
  }
  Correlation<E> products(run);
  products.plan();
  if (use == WeightUse::forward && products.reads_rows()) {
    products.values = values;
  } else {
    // Those of one tap are packed while they are fetched: kept, they are no faster (compare_torch.py, MobileNet).
    const bool keeps = shape.kernel != Spatial{1, 1, 1};
    products.weights = packed_weights(shape, use, run.products, values, keeps ? weight : Weight{});
  }
  products.run();
}

// Computes the convolution the fastest way.
template <class E>
void correlate(Correlated<E>& run, const ConvShape& shape, WeightUse use, WeightUse direct_use,
               const typename E::T* values, const Weight& weight) {
  if constexpr (!std::is_same_v<E, Paired>) {
    if (goes_depthwise(run)) return correlate_depthwise(run, values);
    if (goes_pointwise(run)) return correlate_pointwise(run, use == WeightUse::forward, values, weight);
  }
  if (has_few_columns(run)) {
    const int64_t kernel = shape.kernel[0] * shape.kernel[1] * shape.kernel[2];
    return correlate_few_columns(run, kernel, values, use == WeightUse::backward_data);
  }
  if constexpr (std::is_same_v<typename E::T, float> && !std::is_same_v<E, Paired>) {
    if (goes_winograd(shape)) {
      for (const int64_t image : correlate_winograd(run, shape, use == WeightUse::backward_data, values)) {
        Correlated<E> one = run;
        one.batch = 1;
        one.from = run.from_image(image, 0);
        one.to = run.to_image(image, 0);
        correlate_packed(one, shape, use, direct_use, values, weight);
      }
      return;
    }
  }
  correlate_packed(run, shape, use, direct_use, values, weight);
}

// Images and the bias of one direction, as elements of type E.
template <class E>
struct Ends {
  const typename E::T* from;
  ImageStrides from_strides;
  typename E::T* to;
  ImageStrides to_strides;
  const typename E::T* bias;
};

template <class E>
Correlated<E> correlated(const ConvShape& shape, bool backward, const Ends<E>& ends) {
  const int64_t inputs = shape.in_channels / shape.groups, outputs = shape.out_channels / shape.groups;
  Correlated<E> run{.canvas = backward ? gradient_canvas(shape) : input_canvas(shape),
                    .products = {},
                    .batch = shape.batch,
                    .groups = shape.groups,
                    .from_channels = backward ? outputs : inputs,
                    .to_channels = backward ? inputs : outputs,
                    .from_size = backward ? shape.out : shape.in,
                    .to_size = backward ? shape.in : shape.out,
                    .from = ends.from,
                    .from_strides = ends.from_strides,
                    .to = ends.to,
                    .to_strides = ends.to_strides,
                    .bias = ends.bias};
  if (backward) run.products = backward_taps(shape, run.canvas, run.from_channels);
  else run.products.push_back(forward_taps(shape, run.canvas, run.from_channels));
  return run;
}

template <class E>
void correlate(const ConvShape& shape, bool backward, const Ends<E>& ends, const typename E::T* values,
               const Weight& weight) {
  Correlated<E> run = correlated<E>(shape, backward, ends);
  if (backward) {
    correlate(run, shape, WeightUse::backward_data, WeightUse::direct_backward_data, values, weight);
  } else {
    correlate(run, shape, WeightUse::forward, WeightUse::direct_forward, values, weight);
  }
}

// Computes a convolution of bfloat16 by pairs of channels: Note [Pairs of channels] in conv_half.h.
void correlate_pairs(const ConvShape& shape, bool backward, const Correlated<Bf16Bits>& plain,
                     const Ends<Bf16Bits>& ends, const std::uint16_t* w) {
  const int64_t kernel = shape.kernel[0] * shape.kernel[1] * shape.kernel[2], groups = shape.groups;
  const int64_t channels = plain.from_channels, results = groups * plain.to_channels;
  const Pairs images = pair_images(shape.batch, groups, channels, plain.from_size, ends.from, ends.from_strides);
  const Pairs weights =
      backward ? pair_lines(groups, channels, plain.to_channels * kernel, w) : pair_lines(results, channels, kernel, w);
  const HalfFormat format = half_format(Elem::bf16);
  const WideImages sums(shape.batch, results, plain.to_size, ends.to_strides);
  const HostArray<float> bias = widened(format, ends.bias, results);
  ConvShape halved = shape;
  (backward ? halved.out_channels : halved.in_channels) = groups * ceil_div(channels, 2);
  const Ends<Paired> paired{images.data, images.strides, sums.data(), sums.strides(), bias.data()};
  correlate<Paired>(halved, backward, paired, weights.data, {});
  sums.narrow(format, ends.to, ends.to_strides);
}

// Computes one direction of a convolution.
void convolve(Elem elem, const ConvShape& shape, bool backward, const void* from, const ImageStrides& from_strides,
              const void* w, const void* bias, void* to, const ImageStrides& to_strides, const Weight& weight) {
  const int64_t channels = backward ? shape.out_channels : shape.in_channels;
  if (!is_half(elem)) {
    return with_element(elem, [&]<class E>() {
      using T = typename E::T;
      const Ends<E> ends{static_cast<const T*>(from), from_strides, static_cast<T*>(to), to_strides,
                         static_cast<const T*>(bias)};
      correlate<E>(shape, backward, ends, static_cast<const T*>(w), weight);
    });
  }
  using Bits = std::uint16_t;
  if (elem == Elem::bf16 && pair_kernels() != nullptr) {
    const Ends<Bf16Bits> ends{static_cast<const Bits*>(from), from_strides, static_cast<Bits*>(to), to_strides,
                              static_cast<const Bits*>(bias)};
    const Correlated<Bf16Bits> plain = correlated<Bf16Bits>(shape, backward, ends);
    if (goes_pointwise(plain)) return correlate_pointwise(plain, !backward, static_cast<const Bits*>(w), weight);
    if (goes_unfolded(shape, backward)) {
      return correlate_unfolded(shape, backward, ends.from, from_strides, static_cast<const Bits*>(w), ends.bias,
                                ends.to, to_strides, weight);
    }
    if (goes_in_pairs(channels / shape.groups)) {
      return correlate_pairs(shape, backward, plain, ends, static_cast<const Bits*>(w));
    }
  }
  const HalfFormat format = half_format(elem);
  const int64_t results = backward ? shape.in_channels : shape.out_channels;
  const WideImages images(shape.batch, channels, backward ? shape.out : shape.in, from_strides);
  const WideImages sums(shape.batch, results, backward ? shape.in : shape.out, to_strides);
  images.widen(format, static_cast<const Bits*>(from), from_strides);
  const HostArray<float> weights = widened(format, w, weight_count(shape)), offsets = widened(format, bias, results);
  const Ends<Plain<float>> ends{images.data(), images.strides(), sums.data(), sums.strides(), offsets.data()};
  correlate<Plain<float>>(shape, backward, ends, weights.data(), weight);
  sums.narrow(format, static_cast<Bits*>(to), to_strides);
}

// Returns the shape with no stride longer than an image and its padding where there is but one output, which steps to
// no other: the gradient of x is a product for each residue of a stride.
ConvShape with_short_strides(ConvShape shape) {
  for (std::size_t d = 0; d < shape.out.size(); ++d) {
    if (shape.out[d] != 1) continue;
    const int64_t reach = std::max<int64_t>(shape.kernel[d] - 1, 0) * shape.dilation[d] + 1;
    shape.stride[d] = std::min(shape.stride[d], std::max(shape.in[d] + 2 * shape.pad[d], reach));
  }
  return shape;
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
                  const void* bias, void* y, const ImageStrides& y_strides, const Weight& weight) {
  convolve(elem, shape, false, x, x_strides, w, bias, y, y_strides, weight);
}

void conv_backward_data(Elem elem, const ConvShape& shape, const void* gy, const ImageStrides& gy_strides,
                        const void* w, const void* bias, void* gx, const ImageStrides& gx_strides,
                        const Weight& weight) {
  convolve(elem, with_short_strides(shape), true, gy, gy_strides, w, bias, gx, gx_strides, weight);
}

}  // namespace vesta::cpu
