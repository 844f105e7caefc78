// Depthwise convolution: Note [Depthwise convolution] in conv_depthwise.h. A task is some planes; each is laid out on
// its canvas, summed, and written to its place.
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

constexpr int64_t kTaskWork = 64 * 1024;  // multiply-adds that make a task worthwhile
constexpr int64_t kTasks = 16;  // tasks wanted

// Returns a buffer of zeros for `elements` elements and what the kernels read behind them.
template <class T>
T* cleared(Scratch slot, int64_t elements) {
  const int64_t n = elements + kDepthwiseSlack;
  T* const room = static_cast<T*>(thread_scratch(slot, sizeof(T) * static_cast<std::size_t>(n)));
  std::fill_n(room, n, T(0));
  return room;
}

// Rows of equal length of an image, and their places on a canvas.
struct Rows {
  int64_t rows, count;
  int64_t image, image_row, image_step;  // of the first element, of rows and of elements
  int64_t canvas, canvas_row;
};

// Calls f(Rows) for the parts of the image that positions first + index * step, for index < count, on a canvas of
// `size` reach.
template <class F>
void each_part(const Spatial& size, const Spatial& count, const Spatial& first, const Spatial& step,
               const Spatial& image, const ImageStrides& strides, F&& f) {
  const Inside outer(count[0], first[0], step[0], image[0]), rows(count[1], first[1], step[1], image[1]);
  const Inside row(count[2], first[2], step[2], image[2]);
  if (rows.low == rows.high || row.low == row.high) return;
  for (int64_t q = outer.low; q < outer.high; ++q) {
    f(Rows{.rows = rows.high - rows.low,
           .count = row.high - row.low,
           .image = (first[0] + q * step[0]) * strides.spatial[0] +
                    (first[1] + rows.low * step[1]) * strides.spatial[1] +
                    (first[2] + row.low * step[2]) * strides.spatial[2],
           .image_row = step[1] * strides.spatial[1],
           .image_step = step[2] * strides.spatial[2],
           .canvas = (q * size[1] + rows.low) * size[2] + row.low,
           .canvas_row = size[2]});
  }
}

template <class E>
void read(const Rows& r, const typename E::T* image, typename E::T* canvas) {
  depthwise_kernels<typename E::T>().copy(
      {r.rows, r.count, image + r.image, r.image_row, r.image_step, canvas + r.canvas, r.canvas_row, 1});
}

template <class E>
void write(const Rows& r, const typename E::T* canvas, typename E::T* image) {
  depthwise_kernels<typename E::T>().copy(
      {r.rows, r.count, canvas + r.canvas, r.canvas_row, 1, image + r.image, r.image_row, r.image_step});
}

// Lays out one plane, like fill_canvas.
template <class E>
void lay_out(const Canvas& canvas, const Spatial& size, const typename E::T* image, const ImageStrides& strides,
             typename E::T* out) {
  for (const int64_t r0 : canvas.residues[0]) {
    for (const int64_t r1 : canvas.residues[1]) {
      for (const int64_t r2 : canvas.residues[2]) {
        const Spatial first{r0 - canvas.before[0], r1 - canvas.before[1], r2 - canvas.before[2]};
        each_part(canvas.size, canvas.size, first, canvas.step, size, strides,
                  [&](const Rows& rows) { read<E>(rows, image, out); });
        out += canvas.plane();
      }
    }
  }
}

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

template <class E>
void run_planes(const Correlated<E>& c, const typename E::T* w, int64_t begin, int64_t end) {
  using T = typename E::T;
  const auto kernel = depthwise_kernels<T>().plane;
  int64_t most = 0, kernel_size = 0;
  for (const Taps& taps : c.products) {
    most = std::max(most, taps.span(c.canvas));
    kernel_size += static_cast<int64_t>(taps.tap.size());
  }
  T* const room = cleared<T>(Scratch::input, c.canvas.channel());
  T* const results = cleared<T>(Scratch::output, most);
  T* const weights = cleared<T>(Scratch::weights, kernel_size);
  for (int64_t t = begin; t < end; ++t) {
    const int64_t sample = t / c.groups, group = t % c.groups;
    lay_out<E>(c.canvas, c.from_size, c.from_image(sample, group), c.from_strides, room);
    typename E::T* const image = c.to_image(sample, group);
    for (const Taps& taps : c.products) {
      for (std::size_t i = 0; i < taps.tap.size(); ++i) weights[i] = w[group * kernel_size + taps.tap[i]];
      kernel({.x = room,
              .taps = taps.table.data(),
              .tap_count = static_cast<int64_t>(taps.tap.size()),
              .w = weights,
              .bias = c.bias == nullptr ? nullptr : c.bias + group,
              .span = taps.span(c.canvas),
              .out = results});
      each_part(c.canvas.size, taps.count, taps.first, taps.step, c.to_size, c.to_strides,
                [&](const Rows& rows) { write<E>(rows, results, image); });
    }
  }
}

// The gradient of the weights. E is the element type.
template <class E>
struct WeightGradient {
  using T = typename E::T;

  const ConvShape& shape;
  const T* x;
  ImageStrides x_strides;
  const T* gy;
  ImageStrides gy_strides;
  Canvas canvas = input_canvas(shape);
  Taps taps = forward_taps(shape, canvas, 1);

  int64_t tap_count() const { return static_cast<int64_t>(taps.tap.size()); }
  int64_t lines() const { return tap_count() + 1; }  // of sums: the taps', and that of gy
  int64_t span() const { return round_up(taps.span(canvas), kDepthwiseLanes); }

  // Writes the sums of samples [begin, end) of one channel to result[lines()]. The buffers are cleared where nothing is
  // laid out.
  void run_channel(int64_t channel, int64_t begin, int64_t end, bool bias, T* room, T* outputs, T* result) const {
    T* const sums = static_cast<T*>(
        thread_scratch(Scratch::pack_a, sizeof(T) * static_cast<std::size_t>(lines() * kDepthwiseLanes)));
    std::fill_n(sums, lines() * kDepthwiseLanes, T(0));
    for (int64_t n = begin; n < end; ++n) {
      lay_out<E>(canvas, shape.in, x + n * x_strides.batch + channel * x_strides.channel, x_strides, room);
      const T* const image = gy + n * gy_strides.batch + channel * gy_strides.channel;
      each_part(canvas.size, taps.count, taps.first, taps.step, shape.out, gy_strides,
                [&](const Rows& rows) { read<E>(rows, image, outputs); });
      depthwise_kernels<T>().gradient({.x = room,
                                       .taps = taps.table.data(),
                                       .tap_count = tap_count(),
                                       .gy = outputs,
                                       .span = span(),
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
    const int64_t work = std::max<int64_t>(1, per_group * span() * lines());
    parallel_for(all, std::max<int64_t>(1, kTaskWork / work), [&](int64_t begin, int64_t end) {
      T* const room = cleared<T>(Scratch::input, canvas.channel());
      T* const outputs = cleared<T>(Scratch::pack_b, span());
      for (int64_t t = begin; t < end; ++t) {
        const int64_t first = t / channels * per_group, last = std::min(shape.batch, first + per_group);
        run_channel(t % channels, first, last, gbias != nullptr, room, outputs, results.data() + t * lines());
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

template <class E>
void correlate_depthwise(const Correlated<E>& c, const typename E::T* w) {
  if (c.batch <= 0 || c.to_size[0] * c.to_size[1] * c.to_size[2] <= 0) return;
  if (c.from_strides.channel == 1 && c.to_strides.channel == 1) return depthwise_channels_last(c, w);
  int64_t work = 1;
  for (const Taps& taps : c.products) work += taps.span(c.canvas) * static_cast<int64_t>(taps.tap.size() + 1);
  parallel_for(c.batch * c.groups, std::max<int64_t>(1, kTaskWork / work),
               [&](int64_t begin, int64_t end) { run_planes(c, w, begin, end); });
  trim_scratch(Scratch::input);
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
    WeightGradient<E>{.shape = shape,
                      .x = planes.data(),
                      .x_strides = dense_strides(shape.in_channels, shape.in),
                      .gy = grads.data(),
                      .gy_strides = dense_strides(shape.in_channels, shape.out)}
        .run(gw, gbias);
    return;
  }
  WeightGradient<E>{.shape = shape, .x = x, .x_strides = x_strides, .gy = gy, .gy_strides = gy_strides}.run(gw, gbias);
}

#define VESTA_DEPTHWISE(E)                                                                                     \
  template void correlate_depthwise(const Correlated<E>&, const E::T*);                                        \
  template void depthwise_weight_gradient<E>(const ConvShape&, const E::T*, const ImageStrides&,          \
                                             const E::T*, const ImageStrides&, E::T*, E::T*);
VESTA_DEPTHWISE(Plain<float>)
VESTA_DEPTHWISE(Plain<double>)
#undef VESTA_DEPTHWISE

}  // namespace vesta::cpu
