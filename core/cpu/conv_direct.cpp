// Direct convolution: Note [Direct convolution] in conv_direct.h. A tour: plan() finds where the images are read and
// which taps a row of outputs has, cut() divides strips and panels of output channels into tasks, run_strip() sums one
// strip for one panel and writes it to its place.
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
constexpr int64_t kStripPixels = 1024;  // most outputs of a strip: 128 KiB of sums lie in L2
constexpr int64_t kLeastPixels = 256;  // least, where strips are cut for more tasks: each reads all weights
constexpr int64_t kManyImages = 16;  // from here on images are laid out by the task that needs them
constexpr int64_t kMostReading =
    8 << 20;  // bytes of one canvas, over all panels, beyond which columns are better packed
constexpr int64_t kLaidOut = 16384;  // elements that a task lays out, in whole channels
constexpr int64_t kLaidOutChannels = 32;  // most of them
constexpr int64_t kVectorChannels = 16;  // output channels come in vectors of this length

template <class E>
struct Direct {
  using T = typename E::T;

  const Correlated<E>& c;
  const DirectKernels<T>& kernels;
  Canvas layout = {};  // of the images as they are read
  bool edges = false;  // x is read without padding: taps outside of the image are skipped
  bool ready = false;  // x is read in place
  int64_t channel = 0;  // distance of channels and rows as they are read
  Spatial pitch{0, 0, 0};

  // A stretch of outputs: rows [begin, end) of each of some images.
  struct Strip {
    int64_t image, images, begin, end;
  };
  std::vector<Strip> strips = {};

  // Images of one group as they are read: that of sample first + i at data + i * stride.
  struct Images {
    int64_t first, group;
    const T* data;
    int64_t stride;
  };

  int64_t panels() const { return ceil_div(c.to_channels, kernels.panel); }
  int64_t rows() const { return c.products.front().count[0] * c.products.front().count[1]; }
  int64_t width() const { return c.products.front().count[2]; }
  int64_t image_elements() const { return c.from_channels * layout.channel(); }

  // With three taps side by side, one pixel of padding and stride one, the only taps outside the image are the first
  // of three for the first pixel and the last of three for the last pixel.
  bool has_edges() const {
    const Canvas& canvas = c.canvas;
    const Taps& taps = c.products.front();
    for (int d = 0; d < 3; ++d) {
      if (canvas.phases[d] != 1 || canvas.step[d] != 1 || taps.first[d] != 0 || taps.step[d] != 1) return false;
    }
    if (c.products.size() != 1 || canvas.size[0] != 1 || canvas.before[0] != 0 || canvas.before[2] != 1) return false;
    if (taps.count[2] != c.from_size[2] || taps.tap.size() % 3 != 0) return false;
    for (std::size_t t = 0; t < taps.tap.size(); ++t) {
      if (taps.table[t] % canvas.size[2] != static_cast<int64_t>(t % 3)) return false;
    }
    return true;
  }

  void plan() {
    edges = has_edges();
    layout = c.canvas;
    if (edges) {
      layout.before = {0, 0, 0};
      layout.size = c.from_size;
    }
    channel = layout.channel();
    pitch = {layout.size[1] * layout.size[2], layout.size[2], 1};
    ready =
        (edges && c.from_strides.spatial[2] == 1) || lies_ready(layout, c.from_size, c.from_channels, c.from_strides);
    if (ready && edges) pitch = c.from_strides.spatial;
    if (ready) channel = c.from_strides.channel;
  }

  // Cuts `images` images into strips, small enough that strips times panels give enough tasks.
  void cut(int64_t images, int64_t tasks) {
    const int64_t outputs = rows() * width(), wanted = ceil_div(tasks, panels() * c.groups);
    const int64_t pixels = std::clamp(images * outputs / wanted, kLeastPixels, kStripPixels);
    if (outputs <= pixels) {
      const int64_t step = ceil_div(images, ceil_div(images, pixels / outputs));
      for (int64_t i = 0; i < images; i += step) strips.push_back({i, std::min(step, images - i), 0, rows()});
      return;
    }
    const int64_t step = ceil_div(rows(), ceil_div(rows(), std::max<int64_t>(1, pixels / width())));
    for (int64_t i = 0; i < images; ++i) {
      for (int64_t r = 0; r < rows(); r += step) strips.push_back({i, 1, r, std::min(rows(), r + step)});
    }
  }

  // The taps of the rows of outputs q1 in the second dimension, as offsets from the first output.
  struct RowTaps {
    std::vector<std::int32_t> at;
    std::vector<int64_t> first, count;  // taps [first, first + count) of row q1 lie in the image
  };
  RowTaps row_taps(const Taps& taps) const {
    RowTaps out;
    const std::size_t n = taps.tap.size();
    for (std::size_t t = 0; t < n; ++t) {
      const int64_t row = taps.table[t] / c.canvas.size[2], column = taps.table[t] % c.canvas.size[2];
      out.at.push_back(edges ? static_cast<std::int32_t>((row - c.canvas.before[1]) * pitch[1] + column - 1)
                             : taps.table[t]);
    }
    for (int64_t q = 0; q < taps.count[1]; ++q) {
      const auto inside = [&](std::size_t t) {
        const int64_t row = q + taps.table[t] / c.canvas.size[2] - c.canvas.before[1];
        return !edges || (row >= 0 && row < c.from_size[1]);
      };
      std::size_t first = 0, end = n;
      while (first < n && !inside(first)) ++first;
      while (end > first && !inside(end - 1)) --end;
      out.first.push_back(static_cast<int64_t>(first));
      out.count.push_back(static_cast<int64_t>(end - first));
    }
    return out;
  }

  // Sums channels [c0, c1) of a strip for one panel.
  void add_block(const Strip& strip, const Images& images, std::size_t product, const RowTaps& taps, int64_t c0,
                 int64_t c1, int64_t panel, const T* bias, T* sums) const {
    const Taps& all = c.products[product];
    const int64_t tap_count = static_cast<int64_t>(all.tap.size());
    const T* const w =
        c.weights->block(images.group, product, c0 * tap_count) + panel * kernels.panel * tap_count * (c1 - c0);
    DirectRow<T> row{};
    row.channels = c1 - c0;
    row.x_channel = channel;
    row.edges = edges;
    row.w_channel = tap_count * kernels.panel;
    row.pixels = width();
    row.columns = std::min<int64_t>(kernels.panel, c.to_channels - panel * kernels.panel);
    row.accumulate = c0 > 0;
    row.bias = bias;
    row.out = sums;
    for (int64_t i = 0; i < strip.images; ++i) {
      const T* const image = images.data + (strip.image - images.first + i) * images.stride + c0 * channel;
      for (int64_t r = strip.begin; r < strip.end; ++r, row.out += width() * kernels.panel) {
        const int64_t q0 = r / all.count[1], q1 = r % all.count[1];
        row.x = image + q0 * pitch[0] + q1 * pitch[1];
        row.taps = taps.at.data() + taps.first[q1];
        row.tap_count = taps.count[q1];
        row.w = w + taps.first[q1] * kernels.panel;
        kernels.row(row);
      }
    }
  }

  void run_strip(const Strip& strip, const Images& images, int64_t panel) const {
    const int64_t columns = std::min<int64_t>(kernels.panel, c.to_channels - panel * kernels.panel);
    const int64_t pixels = strip.images * (strip.end - strip.begin) * width();
    T* const sums = static_cast<T*>(thread_scratch(Scratch::pack_a, sizeof(T) * (pixels + 1) * kernels.panel));
    T* bias = nullptr;
    if (c.bias != nullptr) {
      bias = sums + pixels * kernels.panel;
      std::fill_n(bias, kernels.panel, T(0));
      std::copy_n(c.bias + images.group * c.to_channels + panel * kernels.panel, columns, bias);
    }
    for (std::size_t p = 0; p < c.products.size(); ++p) {
      const Taps& taps = c.products[p];
      const int64_t step = taps.block() / std::max<int64_t>(1, static_cast<int64_t>(taps.tap.size()));
      for (int64_t c0 = 0; c0 == 0 || c0 < c.from_channels; c0 += step) {
        const int64_t c1 = std::min(c.from_channels, c0 + step);
        add_block(strip, images, p, tables[p], c0, c1, panel, c1 == c.from_channels ? bias : nullptr, sums);
      }
      write(strip, images, taps, panel, columns, sums);
    }
  }
  std::vector<RowTaps> tables = {};  // one per product

  // Writes the sums of a strip to their images.
  void write(const Strip& strip, const Images& images, const Taps& taps, int64_t panel, int64_t columns,
             const T* sums) const {
    const int64_t outputs = rows() * width(), begin = strip.begin * width(), end = strip.end * width();
    const bool covers = c.covers_image(taps);
    for (int64_t i = 0; i < strip.images; ++i, sums += (end - begin) * kernels.panel) {
      T* const image = c.to_image(strip.image + i, images.group) + panel * kernels.panel * c.to_strides.channel;
      if (c.to_strides.channel == 1 && !covers) {  // the sums lie as the image does
        write_sums<E>(taps, begin, end, columns, sums, kernels.panel, c.to_size, image, c.to_strides);
        continue;
      }
      if (covers) {
        kernels.transpose(end - begin, columns, sums, image + begin, c.to_strides.channel);
        continue;
      }
      T* const room = static_cast<T*>(thread_scratch(Scratch::output, sizeof(T) * outputs * kernels.panel));
      kernels.transpose(end - begin, columns, sums, room, end - begin);
      write_columns<E>(taps, covers, begin, end, columns, room, end - begin, c.to_size, image, c.to_strides);
    }
  }

  void lay_out(int64_t sample, int64_t group, T* to) const {
    fill_canvas<E>(layout, c.from_size, c.from_channels, c.from_image(sample, group), c.from_strides, to);
  }

  int64_t image_work() const {
    int64_t work = 1;
    for (const Taps& taps : c.products) work += rows() * width() * static_cast<int64_t>(taps.table.size() + 1);
    return work * c.to_channels;
  }

  // Many images that are not read in place: each chunk of them is a task.
  void run_by_chunk() {
    const int64_t chunk = std::clamp<int64_t>(c.batch / 8, 1, ceil_div(kLeastPixels, rows() * width()));
    cut(chunk, 1);
    const int64_t chunks = ceil_div(c.batch, chunk), grain = std::max<int64_t>(1, kTaskWork / (image_work() * chunk));
    parallel_for(chunks * c.groups, grain, [&](int64_t begin, int64_t end) {
      T* const room = static_cast<T*>(thread_scratch(Scratch::input, sizeof(T) * image_elements() * chunk));
      std::fill_n(room, image_elements() * chunk, T(0));
      for (int64_t t = begin; t < end; ++t) {
        const Images images{t / c.groups * chunk, t % c.groups, room, image_elements()};
        const int64_t count = std::min(chunk, c.batch - images.first);
        for (int64_t i = 0; i < count; ++i) lay_out(images.first + i, images.group, room + i * image_elements());
        for (Strip strip : strips) {
          strip.images = std::min(strip.images, count - strip.image);
          strip.image += images.first;
          for (int64_t panel = 0; strip.images > 0 && panel < panels(); ++panel) run_strip(strip, images, panel);
        }
      }
    });
    trim_scratch(Scratch::input);
  }

  // Images read in place, or so few that all are laid out first: each panel of each strip is a task.
  void run_by_strip() {
    cut(c.batch, kTasks);
    const int64_t elements = image_elements();
    ScratchArray<T> laid(Scratch::input, static_cast<std::size_t>(ready ? 0 : c.batch * c.groups * elements));
    if (!ready) {
      const int64_t most = std::clamp<int64_t>(kLaidOut / std::max<int64_t>(1, layout.channel()), 1, kLaidOutChannels);
      const int64_t pieces = ceil_div(c.from_channels, most), size = std::max<int64_t>(1, most * layout.channel());
      parallel_for(c.batch * c.groups * pieces, std::max<int64_t>(1, kLaidOut / size), [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
          const int64_t image = t / pieces, first = t % pieces * most;
          const int64_t count = std::min(most, c.from_channels - first);
          T* const to = laid.data() + image * elements + first * layout.channel();
          std::fill_n(to, count * layout.channel(), T(0));
          fill_canvas<E>(layout, c.from_size, count,
                         c.from_image(image / c.groups, image % c.groups) + first * c.from_strides.channel,
                         c.from_strides, to);
        }
      });
    }
    const int64_t each = panels() * c.groups, count = static_cast<int64_t>(strips.size()) * each;
    const int64_t grain = std::max<int64_t>(1, kTaskWork * count / (image_work() * c.batch));
    parallel_for(count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t group = t % each / panels();
        Images images{0, group, laid.data() + group * elements, c.groups * elements};
        if (ready) images = {0, group, c.from_image(0, group), c.from_strides.batch};
        run_strip(strips[static_cast<std::size_t>(t / each)], images, t % panels());
      }
    });
  }

  void run() {
    if (c.batch <= 0 || c.to_channels <= 0 || c.to_size[0] * c.to_size[1] * c.to_size[2] <= 0) return;
    if (c.outputs() == 0) return;
    plan();
    for (const Taps& taps : c.products) tables.push_back(row_taps(taps));
    if (ready || c.batch * c.groups < kManyImages) {
      run_by_strip();
    } else {
      run_by_chunk();
    }
  }
};

}  // namespace

template <class E>
bool goes_direct(const Correlated<E>& c) {
  std::size_t taps = 0;
  for (const Taps& product : c.products) taps = std::max(taps, product.tap.size());
  const int64_t padded = ceil_div(c.to_channels, kVectorChannels) * kVectorChannels;
  if (taps < 2 || c.products.front().count[2] < 2 || 4 * c.to_channels < 3 * padded) return false;
  using T = typename E::T;
  const Direct<E> direct{c, direct_kernels_of<E>()};
  // Where nothing is skipped both ways give the same bits, so the instruction set may decide.
  const int64_t bytes = c.from_channels * c.canvas.channel() * static_cast<int64_t>(sizeof(T));
  return direct.has_edges() || direct.panels() * bytes <= kMostReading;
}

template <class E>
void correlate_direct(const Correlated<E>& c) {
  Direct<E>{c, direct_kernels_of<E>()}.run();
}

template bool goes_direct(const Correlated<Plain<float>>&);
template bool goes_direct(const Correlated<Plain<double>>&);
template bool goes_direct(const Correlated<Paired>&);
template void correlate_direct(const Correlated<Plain<float>>&);
template void correlate_direct(const Correlated<Plain<double>>&);
template void correlate_direct(const Correlated<Paired>&);

}  // namespace vesta::cpu
