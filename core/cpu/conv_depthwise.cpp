// Depthwise convolution: Note [Depthwise convolution] in conv_depthwise.h. A task is some planes.
#include <vesta/core/cpu/conv_depthwise.h>
#include <vesta/core/cpu/conv_depthwise_pixels.h>
#include <vesta/core/cpu/conv_channels_last.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/rounding.h>
#include <vesta/core/cpu/scratch.h>

#include <algorithm>

namespace vesta::cpu {
namespace {

using std::int64_t;

// Rows of a channel's image, whose columns lie side by side: where they are, or in a copy.
template <class T>
struct Image {
  Spatial size;
  ImageStrides strides;
  bool copied = size[2] > 1 && strides.spatial[2] != 1;

  std::int64_t row(int d) const { return !copied ? strides.spatial[d] : d == 1 ? size[2] : size[1] * size[2]; }
  std::size_t elements() const { return static_cast<std::size_t>(size[0] * size[1] * size[2]); }
  // Calls f(offset in the image, offset in the copy) for every element.
  template <class F>
  void each(F f) const {
    int64_t at = 0;
    for (int64_t i = 0; i < size[0]; ++i) {
      for (int64_t j = 0; j < size[1]; ++j) {
        const int64_t row = i * strides.spatial[0] + j * strides.spatial[1];
        for (int64_t k = 0; k < size[2]; ++k) f(row + k * strides.spatial[2], at++);
      }
    }
  }
};

// One product, with the tables of its DepthwiseProduct.
class PlaneProduct {
 public:
  template <class T>
  PlaneProduct(const Canvas& canvas, const Taps& taps, const Image<T>& from, const Image<T>& to) : weight_(taps.tap) {
    const Inside outer(taps.count[0], taps.first[0], taps.step[0], to.size[0]);
    const Inside inner(taps.count[1], taps.first[1], taps.step[1], to.size[1]);
    const Inside columns(taps.count[2], taps.first[2], taps.step[2], to.size[2]);
    const std::vector<Spatial> at = tap_positions(canvas, taps);
    std::vector<std::size_t> of_line;  // a tap of each line
    for (std::size_t t = 0; t < at.size(); ++t) {
      if (t == 0 || at[t][0] != at[t - 1][0] || at[t][1] != at[t - 1][1]) {
        of_line.push_back(t);
        first_tap_.push_back(static_cast<int64_t>(t));
      }
      line_of_.push_back(static_cast<int64_t>(of_line.size()) - 1);
      column_.push_back(at[t][2] + columns.low * canvas.step[2]);
    }
    first_tap_.push_back(static_cast<int64_t>(at.size()));
    for (int64_t q0 = outer.low; q0 < outer.high; ++q0) {
      for (int64_t q1 = inner.low; q1 < inner.high; ++q1) {
        out_.push_back((taps.first[0] + q0 * taps.step[0]) * to.row(0) +
                       (taps.first[1] + q1 * taps.step[1]) * to.row(1) + taps.first[2] + columns.low * taps.step[2]);
        for (const std::size_t t : of_line) {
          const int64_t r0 = q0 * canvas.step[0] + at[t][0], r1 = q1 * canvas.step[1] + at[t][1];
          const bool inside = r0 >= 0 && r0 < from.size[0] && r1 >= 0 && r1 < from.size[1];
          lines_.push_back(inside ? r0 * from.row(0) + r1 * from.row(1) : -1);
        }
      }
    }
    product_ = {.rows = static_cast<int64_t>(out_.size()),
                .columns = columns.high - columns.low,
                .line_count = static_cast<int64_t>(of_line.size()),
                .tap_count = static_cast<int64_t>(at.size()),
                .lines = lines_.data(),
                .first_tap = first_tap_.data(),
                .line_of = line_of_.data(),
                .column = column_.data(),
                .weight = weight_.data(),
                .step = canvas.step[2],
                .width = from.size[2],
                .out = out_.data(),
                .is_window = is_window(canvas)};
    if (product_.rows == 0 || product_.columns == 0) product_.rows = product_.columns = 0;
  }
  const DepthwiseProduct& operator*() const { return product_; }
  const DepthwiseProduct* operator->() const { return &product_; }

 private:
  bool is_window(const Canvas& canvas) const {
    const std::size_t step = static_cast<std::size_t>(canvas.step[2]);
    if (step > 2 || column_.size() != 9 || first_tap_.size() != 4) return false;
    for (std::size_t t = 0; t < 9; ++t) {
      if (line_of_[t] != int64_t(t / 3) || column_[t] != column_[0] + int64_t(t % 3)) return false;
    }
    for (std::size_t i = 3; i < lines_.size(); i += 3) {
      if (lines_[i] != lines_[i - 3 + step] || (step == 1 && lines_[i + 1] != lines_[i - 1])) return false;
    }
    return true;
  }

  std::vector<int64_t> lines_, first_tap_, line_of_, column_, weight_, out_;
  DepthwiseProduct product_;
};

// Copies images of any layout to dense planes; rows of pixels are transposed.
template <class T>
void lay_out_planes(int64_t batch, int64_t channels, const Spatial& size, const T* in, const ImageStrides& strides,
                    T* out) {
  constexpr int64_t kChannels = 64;  // a task's, of one sample and one index of the outermost dimension
  const int64_t pieces = ceil_div(channels, kChannels), plane = size[0] * size[1] * size[2], area = size[1] * size[2];
  parallel_for(batch * size[0] * pieces, std::max<int64_t>(1, kTaskWork / (kChannels * area)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t t = begin; t < end; ++t) {
                   const int64_t n = t / pieces / size[0], q = t / pieces % size[0], c = t % pieces * kChannels;
                   const int64_t count = std::min(kChannels, channels - c);
                   const T* from = in + n * strides.batch + q * strides.spatial[0] + c * strides.channel;
                   T* to = out + (n * channels + c) * plane + q * area;
                   for (int64_t r = 0; r < size[1]; ++r, from += strides.spatial[1], to += size[2]) {
                     if (strides.channel == 1) {
                       transpose_elements(size[2], count, from, strides.spatial[2], to, plane);
                       continue;
                     }
                     for (int64_t l = 0; l < count; ++l) {
                       const T* const row = from + l * strides.channel;
                       for (int64_t i = 0; i < size[2]; ++i) to[l * plane + i] = row[i * strides.spatial[2]];
                     }
                   }
                 }
               });
}

// Products whose outputs lie in turn in the same rows, or one product.
struct Pair {
  const PlaneProduct* first;
  const PlaneProduct* second;
};

// One direction of a convolution by planes.
template <class T>
struct PlaneProducts {
  const Correlated<Plain<T>>& c;
  const T* w;
  Image<T> from{c.from_size, c.from_strides}, to{c.to_size, c.to_strides};
  std::vector<PlaneProduct> products = {};
  std::vector<Pair> pairs = {};
  int64_t kernel_size = 0, lines = 0, work = 1;

  void plan() {
    products.reserve(c.products.size());
    for (const Taps& taps : c.products) {
      products.emplace_back(c.canvas, taps, from, to);
      kernel_size += static_cast<int64_t>(taps.tap.size());
      work += products.back()->rows * products.back()->columns * static_cast<int64_t>(taps.tap.size() + 1);
    }
    const int64_t step = c.products.front().step[2];
    for (std::size_t i = 0; i < products.size(); i += step == 2 ? 2 : 1) {  // products in a row differ in their columns
      const PlaneProduct* a = &products[i];
      const PlaneProduct* b = step == 2 ? a + 1 : nullptr;
      if (b != nullptr && (*a)->columns > 0 && (*b)->columns > 0 && *(*a)->out > *(*b)->out) std::swap(a, b);
      if (b != nullptr && (*a)->columns == 0) std::swap(a, b);
      if (b != nullptr && (*b)->columns == 0) b = nullptr;
      pairs.push_back({a, b});
      lines = std::max(lines, (*a)->line_count + (b != nullptr ? (*b)->line_count : 0));
    }
  }

  // Computes channels [first, first + count) of a sample.
  void run(int64_t sample, int64_t first, int64_t count, const T* zeros, const T** room) const {
    T* const room_in =
        static_cast<T*>(from.copied ? thread_scratch(Scratch::input, sizeof(T) * from.elements()) : nullptr);
    T* const room_out =
        static_cast<T*>(to.copied ? thread_scratch(Scratch::output, sizeof(T) * to.elements()) : nullptr);
    const int64_t step = room_in != nullptr || room_out != nullptr ? 1 : count;
    for (int64_t g = first; g < first + count; g += step) {
      const T* const x = c.from_image(sample, g);
      T* const y = c.to_image(sample, g);
      if (room_in != nullptr) from.each([&](int64_t at, int64_t i) { room_in[i] = x[at]; });
      for (const Pair& pair : pairs) {
        depthwise_kernels<T>().planes({.first = &**pair.first,
                                       .second = pair.second != nullptr ? &**pair.second : nullptr,
                                       .planes = step,
                                       .x = room_in != nullptr ? room_in : x,
                                       .x_plane = c.from_strides.channel,
                                       .zeros = zeros,
                                       .w = w + g * kernel_size,
                                       .w_plane = kernel_size,
                                       .bias = c.bias != nullptr ? c.bias + g : nullptr,
                                       .out = room_out != nullptr ? room_out : y,
                                       .out_plane = c.to_strides.channel,
                                       .out_step = pair.second != nullptr ? 1 : c.products.front().step[2],
                                       .room = room});
      }
      if (room_out != nullptr) to.each([&](int64_t at, int64_t i) { y[at] = room_out[i]; });
    }
  }

  void run_all() {
    plan();
    const auto width = static_cast<std::size_t>(c.from_size[2]);
    ScratchArray<T> zeros(Scratch::weights, width);
    std::fill_n(zeros.data(), width, T(0));
    parallel_for(c.batch * c.groups, std::max<int64_t>(1, kTaskWork / work), [&](int64_t begin, int64_t end) {
      const T** const room = static_cast<const T**>(
          thread_scratch(Scratch::operand_a, sizeof(T*) * static_cast<std::size_t>(kDepthwiseRows * lines)));
      while (begin < end) {
        const int64_t first = begin % c.groups, count = std::min(end - begin, c.groups - first);
        run(begin / c.groups, first, count, zeros.data(), room);
        begin += count;
      }
    });
    trim_scratch(Scratch::input);
  }
};

// The gradient of the weights. E is the element type.
template <class E>
struct DepthwiseWeightGradient {
  using T = typename E::T;

  const ConvShape& shape;
  const T* x;
  ImageStrides x_strides;
  const T* gy;
  ImageStrides gy_strides;
  Image<T> image{shape.in, x_strides}, outputs{shape.out, gy_strides};
  Canvas canvas = input_canvas(shape);
  PlaneProduct product{canvas, forward_taps(shape, canvas, 1), image, outputs};

  int64_t tap_count() const { return product->tap_count; }
  int64_t lines() const { return tap_count() + 1; }  // of sums: the taps', and that of gy

  // Writes the sums of samples [begin, end) of one channel to result[lines()].
  void run_channel(int64_t channel, int64_t begin, int64_t end, bool bias, const T* zeros, T* result) const {
    T* const sums = static_cast<T*>(
        thread_scratch(Scratch::pack_a, sizeof(T) * static_cast<std::size_t>(lines() * kDepthwiseLanes)));
    std::fill_n(sums, lines() * kDepthwiseLanes, T(0));
    T* const room =
        static_cast<T*>(image.copied ? thread_scratch(Scratch::input, sizeof(T) * image.elements()) : nullptr);
    T* const grads =
        static_cast<T*>(outputs.copied ? thread_scratch(Scratch::pack_b, sizeof(T) * outputs.elements()) : nullptr);
    const int64_t step = room != nullptr || grads != nullptr ? 1 : end - begin;
    for (int64_t n = begin; n < end; n += step) {
      const T* const in = x + n * x_strides.batch + channel * x_strides.channel;
      const T* const out = gy + n * gy_strides.batch + channel * gy_strides.channel;
      if (room != nullptr) image.each([&](int64_t at, int64_t i) { room[i] = in[at]; });
      if (grads != nullptr) outputs.each([&](int64_t at, int64_t i) { grads[i] = out[at]; });
      depthwise_kernels<T>().gradient({.product = &*product,
                                       .planes = step,
                                       .x = room != nullptr ? room : in,
                                       .x_plane = x_strides.batch,
                                       .zeros = zeros,
                                       .gy = grads != nullptr ? grads : out,
                                       .gy_plane = gy_strides.batch,
                                       .sums = sums,
                                       .bias_sums = bias ? sums + tap_count() * kDepthwiseLanes : nullptr});
    }
    for (int64_t line = 0; line < lines(); ++line) {
      T* const lanes = sums + line * kDepthwiseLanes;
      for (int64_t half = kDepthwiseLanes / 2; half > 0; half /= 2) {
        for (int64_t l = 0; l < half; ++l) lanes[l] = lanes[l] + lanes[l + half];
      }
      result[line] = lanes[0];
    }
  }

  void run(T* gw, T* gbias) const {
    const int64_t channels = shape.in_channels;
    const int64_t per_group = ceil_div(shape.batch, std::clamp<int64_t>(kTasks / channels, 1, shape.batch));
    const int64_t sample_groups = ceil_div(shape.batch, per_group), all = sample_groups * channels;
    ScratchArray<T> results(Scratch::partial, static_cast<std::size_t>(all * lines()));
    const auto width = static_cast<std::size_t>(shape.in[2]);
    ScratchArray<T> zeros(Scratch::result, width);
    std::fill_n(zeros.data(), width, T(0));
    const int64_t work = std::max<int64_t>(1, per_group * product->rows * product->columns * lines());
    parallel_for(all, std::max<int64_t>(1, kTaskWork / work), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t first = t / channels * per_group, last = std::min(shape.batch, first + per_group);
        run_channel(t % channels, first, last, gbias != nullptr, zeros.data(), results.data() + t * lines());
      }
    });
    for (int64_t channel = 0; channel < channels; ++channel) {
      T* const sums = results.data() + channel * lines();
      for (int64_t t = channel + channels; t < all; t += channels) {
        for (int64_t i = 0; i < lines(); ++i) sums[i] = sums[i] + results.data()[t * lines() + i];
      }
      std::copy_n(sums, tap_count(), gw + channel * tap_count());
      if (gbias != nullptr) gbias[channel] = sums[tap_count()];
    }
  }
};

}  // namespace

std::vector<Spatial> tap_positions(const Canvas& canvas, const Taps& taps) {
  std::vector<Spatial> out;
  for (std::size_t t = 0; t < taps.tap.size(); ++t) {
    int64_t phase = taps.table[t] / canvas.plane(), offset = taps.table[t] % canvas.plane();
    Spatial at;
    for (int d = 2; d >= 0; --d) {
      const int64_t residue = canvas.residues[d][static_cast<std::size_t>(phase % canvas.phases[d])];
      at[d] = offset % canvas.size[d] * canvas.step[d] + residue - canvas.before[d];
      phase /= canvas.phases[d], offset /= canvas.size[d];
    }
    out.push_back(at);
  }
  return out;
}

template <class E>
void correlate_depthwise(const Correlated<E>& c, const typename E::T* w) {
  if (c.batch <= 0 || c.to_size[0] * c.to_size[1] * c.to_size[2] <= 0) return;
  if (c.from_strides.channel == 1 && c.to_strides.channel == 1) return depthwise_channels_last(c, w);
  PlaneProducts<typename E::T>{c, w}.run_all();
}

bool weight_gradient_goes_depthwise(const ConvShape& shape) {
  return shape.groups > 1 && shape.groups == shape.in_channels && shape.groups == shape.out_channels &&
         shape.batch > 0 && shape.out[0] > 0 && shape.out[1] > 0 && shape.out[2] > 0;
}

template <class E>
void depthwise_weight_gradient(const ConvShape& shape, const typename E::T* x, const ImageStrides& x_strides,
                               const typename E::T* gy, const ImageStrides& gy_strides, typename E::T* gw,
                               typename E::T* gbias) {
  if (shape.in_channels >= kTransposedChannels && (x_strides.channel == 1 || gy_strides.channel == 1)) {
    // Reading one channel of every pixel would fetch all of them each time.
    using T = typename E::T;
    const auto size_of = [&](const Spatial& s) {
      return static_cast<std::size_t>(shape.batch * shape.in_channels * s[0] * s[1] * s[2]);
    };
    ScratchArray<T> planes(Scratch::weights, size_of(shape.in)), grads(Scratch::output, size_of(shape.out));
    lay_out_planes(shape.batch, shape.in_channels, shape.in, x, x_strides, planes.data());
    lay_out_planes(shape.batch, shape.in_channels, shape.out, gy, gy_strides, grads.data());
    DepthwiseWeightGradient<E>{.shape = shape,
                               .x = planes.data(),
                               .x_strides = dense_strides(shape.in_channels, shape.in),
                               .gy = grads.data(),
                               .gy_strides = dense_strides(shape.in_channels, shape.out)}
        .run(gw, gbias);
    return;
  }
  DepthwiseWeightGradient<E>{.shape = shape, .x = x, .x_strides = x_strides, .gy = gy, .gy_strides = gy_strides}.run(
      gw, gbias);
}

#define VESTA_DEPTHWISE(E)                                                                                     \
  template void correlate_depthwise(const Correlated<E>&, const E::T*);                                        \
  template void depthwise_weight_gradient<E>(const ConvShape&, const E::T*, const ImageStrides&,          \
                                             const E::T*, const ImageStrides&, E::T*, E::T*);
VESTA_DEPTHWISE(Plain<float>)
VESTA_DEPTHWISE(Plain<double>)
#undef VESTA_DEPTHWISE

}  // namespace vesta::cpu
