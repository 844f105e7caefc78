// Depthwise convolution: Note [Depthwise convolution] in conv_depthwise.h. A task is some planes; each is laid out on
// its canvas, summed, and written to its place.
#include <vesta/core/cpu/conv_depthwise.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/scratch.h>

#include <algorithm>

namespace vesta::cpu {
namespace {

using std::int64_t;

constexpr int64_t kTaskWork = 64 * 1024;  // multiply-adds that make a task worthwhile
constexpr int64_t kTasks = 16;  // tasks wanted

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// Returns a buffer of zeros for `elements` elements and what the kernels read behind them.
template <class T>
T* cleared(Scratch slot, int64_t elements) {
  const int64_t n = elements + kDepthwiseSlack;
  T* const room = static_cast<T*>(thread_scratch(slot, sizeof(T) * static_cast<std::size_t>(n)));
  std::fill_n(room, n, T(0));
  return room;
}

// Copies the outputs of a product between the pitch of its canvas and their places in an image: write_row or read_row,
// as `copy(count, at, to, step)` wants it.
template <class Copy>
void each_row(const Canvas& canvas, const Taps& taps, const Spatial& size, const ImageStrides& strides, Copy&& copy) {
  const Inside outer(taps.count[0], taps.first[0], taps.step[0], size[0]);
  const Inside rows(taps.count[1], taps.first[1], taps.step[1], size[1]);
  const Inside row(taps.count[2], taps.first[2], taps.step[2], size[2]);
  if (row.low == row.high) return;
  for (int64_t q0 = outer.low; q0 < outer.high; ++q0) {
    for (int64_t q1 = rows.low; q1 < rows.high; ++q1) {
      const int64_t place = (taps.first[0] + q0 * taps.step[0]) * strides.spatial[0] +
                            (taps.first[1] + q1 * taps.step[1]) * strides.spatial[1] +
                            (taps.first[2] + row.low * taps.step[2]) * strides.spatial[2];
      copy(row.high - row.low, (q0 * canvas.size[1] + q1) * canvas.size[2] + row.low, place,
           taps.step[2] * strides.spatial[2]);
    }
  }
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
    fill_canvas<E>(c.canvas, c.from_size, 1, c.from_image(sample, group), c.from_strides, room);
    typename E::Stored* const image = c.to_image(sample, group);
    for (const Taps& taps : c.products) {
      for (std::size_t i = 0; i < taps.tap.size(); ++i) weights[i] = w[group * kernel_size + taps.tap[i]];
      kernel({.x = room,
              .taps = taps.table.data(),
              .tap_count = static_cast<int64_t>(taps.tap.size()),
              .w = weights,
              .bias = c.bias == nullptr ? nullptr : c.bias + group,
              .span = taps.span(c.canvas),
              .out = results});
      each_row(c.canvas, taps, c.to_size, c.to_strides, [&](int64_t count, int64_t at, int64_t to, int64_t step) {
        write_row<E>(count, results + at, image + to, step);
      });
    }
  }
}

// The gradient of the weights. E is the element type.
template <class E>
struct WeightGradient {
  using T = typename E::T;
  using Stored = typename E::Stored;

  const ConvShape& shape;
  const Stored* x;
  ImageStrides x_strides;
  const Stored* gy;
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
      fill_canvas<E>(canvas, shape.in, 1, x + n * x_strides.batch + channel * x_strides.channel, x_strides, room);
      const Stored* const image = gy + n * gy_strides.batch + channel * gy_strides.channel;
      each_row(canvas, taps, shape.out, gy_strides, [&](int64_t count, int64_t at, int64_t from, int64_t step) {
        read_row<E>(count, image + from, step, outputs + at);
      });
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

  void run(Stored* gw, Stored* gbias) const {
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
      E::narrow(tap_count(), sums, gw + channel * tap_count());
      if (gbias != nullptr) E::narrow(1, sums + tap_count(), gbias + channel);
    }
  }
};

}  // namespace

template <class E>
void correlate_depthwise(const Correlated<E>& c, const typename E::T* w) {
  if (c.batch <= 0 || c.to_size[0] * c.to_size[1] * c.to_size[2] <= 0) return;
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
void depthwise_weight_gradient(const ConvShape& shape, const typename E::Stored* x, const ImageStrides& x_strides,
                               const typename E::Stored* gy, const ImageStrides& gy_strides, typename E::Stored* gw,
                               typename E::Stored* gbias) {
  WeightGradient<E>{.shape = shape, .x = x, .x_strides = x_strides, .gy = gy, .gy_strides = gy_strides}.run(gw, gbias);
}

#define VESTA_DEPTHWISE(E)                                                                                     \
  template void correlate_depthwise(const Correlated<E>&, const E::T*);                                        \
  template void depthwise_weight_gradient<E>(const ConvShape&, const E::Stored*, const ImageStrides&,          \
                                             const E::Stored*, const ImageStrides&, E::Stored*, E::Stored*);
VESTA_DEPTHWISE(Plain<float>)
VESTA_DEPTHWISE(Plain<double>)
VESTA_DEPTHWISE(Bf16)
VESTA_DEPTHWISE(F16)
#undef VESTA_DEPTHWISE

}  // namespace vesta::cpu
