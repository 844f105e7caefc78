// Max pooling: a window slides over each plane; the index of the maximum is kept for the gradient.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

#include <vesta/core/cpu/non_temporal.h>
#include <vesta/core/cpu/isa.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/pool_kernels.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/scratch.h>
#include <vesta/core/cpu/tensor_memory.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/pool.h>
#include <vesta/core/ops/tap_range.h>

namespace vesta::cpu {
namespace {

/// The elements of a plane that a row of windows sees along its first two dimensions.
struct SeenRows {
  const Window& w;
  int64_t layer, row;  // of the first tap, which may lie in the padding
  TapRange layers, rows;
  /// Returns the index of the first element of the row that taps a and b see.
  int64_t line(int64_t a, int64_t b) const {
    return ((layer + a * w.dilation[0]) * w.in[1] + row + b * w.dilation[1]) * w.in[2];
  }
};
/// Calls f(what is seen) for all rows of windows of a plane.
template <class F>
void each_row_of_windows(const Window& w, F f) {
  for (int64_t l = 0; l < w.out[0]; ++l) {
    const int64_t layer = l * w.stride[0] - w.padding[0];
    const TapRange layers = taps_inside(layer, w.kernel[0], w.dilation[0], w.in[0]);
    for (int64_t i = 0; i < w.out[1]; ++i) {
      const int64_t row = i * w.stride[1] - w.padding[1];
      f(SeenRows{w, layer, row, layers, taps_inside(row, w.kernel[1], w.dilation[1], w.in[1])});
    }
  }
}

/// Pools one plane. NaN wins over everything, the last one over others; else the first of equal values wins. The loops
/// of each_row_of_windows() stand here again: called, it took 4 to 9 % longer (bfloat16, 3 x 3).
template <class T>
void pool_plane(const T* x, const Window& w, T* y, int64_t* indices) {
  using C = compute_t<T>;
  using Limits = std::numeric_limits<C>;
  const T lowest = T(Limits::has_infinity ? -Limits::infinity() : Limits::lowest());  // of a window in the padding
  const auto& n = w.in;
  for (int64_t l = 0; l < w.out[0]; ++l) {
    const int64_t layer = l * w.stride[0] - w.padding[0];
    const TapRange layers = taps_inside(layer, w.kernel[0], w.dilation[0], n[0]);
    for (int64_t i = 0; i < w.out[1]; ++i) {
      const int64_t row = i * w.stride[1] - w.padding[1];
      const TapRange rows = taps_inside(row, w.kernel[1], w.dilation[1], n[1]);
      for (int64_t j = 0; j < w.out[2]; ++j) {
        const int64_t column = j * w.stride[2] - w.padding[2];
        const TapRange columns = taps_inside(column, w.kernel[2], w.dilation[2], n[2]);
        int64_t best_at = -1;
        C best{};
        for (int64_t a = layers.first; a < layers.last; ++a) {
          for (int64_t b = rows.first; b < rows.last; ++b) {
            const int64_t line = ((layer + a * w.dilation[0]) * n[1] + row + b * w.dilation[1]) * n[2];
            for (int64_t k = columns.first; k < columns.last; ++k) {
              const int64_t at = line + column + k * w.dilation[2];
              const C v = static_cast<C>(x[at]);
              if (best_at < 0 || v > best || v != v) best = v, best_at = at;
            }
          }
        }
        *y++ = best_at < 0 ? lowest : x[best_at];
        *indices++ = best_at;
      }
    }
  }
}

constexpr int64_t kLeastWindows = 7;  // of a row: fewer do not repay a call per tap

PoolKernels<float> single_pools;
PoolKernels<double> double_pools;

template <class T>
const PoolKernels<T>& pool_kernels() {
  if constexpr (std::is_same_v<T, float>) return single_pools;
  else return double_pools;
}

/// Returns the taps that some window of a row has on the plane: from the last window's first one to the first window's
/// last one.
TapRange taps_of_all(const Window& w) {
  const int64_t last = (w.out[2] - 1) * w.stride[2];
  return {taps_inside(last - w.padding[2], w.kernel[2], w.dilation[2], w.in[2]).first,
          taps_inside(-w.padding[2], w.kernel[2], w.dilation[2], w.in[2]).last};
}
/// The windows [first, last) of a row whose tap is on the plane, and that tap's column in window 0.
struct WindowsOfTap {
  int64_t first, last, column;
};
WindowsOfTap windows_of_tap(const Window& w, int64_t k) {
  const int64_t column = k * w.dilation[2] - w.padding[2], stride = w.stride[2], n = w.in[2];
  if (column >= 0 && column + (w.out[2] - 1) * stride < n) return {0, w.out[2], column};
  const int64_t first = column >= 0 ? 0 : (-column + stride - 1) / stride;
  return {first, std::min(w.out[2], column >= n ? 0 : (n - column + stride - 1) / stride), column};
}

/// Pools one plane row by row, all windows of a row at once, tap by tap: the order in which a window sees its elements
/// is that of pool_plane. The plane has fewer than 2^31 elements.
template <class T>
void pool_plane_by_taps(const T* x, const Window& w, T* y, int64_t* indices) {
  const auto take = pool_kernels<T>().tap;
  const int64_t outputs = w.out[2], stride = w.stride[2];
  const TapRange taps = taps_of_all(w);
  T* const best = static_cast<T*>(thread_scratch(Scratch::output, sizeof(T) * size_t(outputs)));
  using Place = typename PoolTap<T>::Place;
  Place* const at = static_cast<Place*>(thread_scratch(Scratch::operand_a, sizeof(Place) * size_t(outputs)));
  each_row_of_windows(w, [&](const SeenRows& seen) {
    std::fill_n(best, outputs, -std::numeric_limits<T>::infinity());
    std::fill_n(at, outputs, Place(-1));
    for (int64_t a = seen.layers.first; a < seen.layers.last; ++a) {
      for (int64_t b = seen.rows.first; b < seen.rows.last; ++b) {
        const int64_t line = seen.line(a, b);
        for (int64_t k = taps.first; k < taps.last; ++k) {
          const auto [first, last, column] = windows_of_tap(w, k);
          if (first >= last) continue;
          const int64_t place = line + column + first * stride;
          take({x + place, stride, last - first, Place(place), best + first, at + first});
        }
      }
    }
    y = std::copy_n(best, outputs, y), indices = std::copy_n(at, outputs, indices);
  });
}

/// Takes the maxima of windows from those of columns: tap by tap, so that windows do not wait for each other. They come
/// in the order of a window's elements: the first of equal ones, the last NaN.
template <class T, class Place>
void join_columns(const T* best, const Place* at, const Window& w, T* top, Place* place) {
  const int64_t outputs = w.out[2], stride = w.stride[2];
  std::fill_n(top, outputs, -std::numeric_limits<T>::infinity());
  std::fill_n(place, outputs, Place(-1));
  const TapRange taps = taps_of_all(w);
  for (int64_t k = taps.first; k < taps.last; ++k) {
    const auto [first, last, column] = windows_of_tap(w, k);
    for (int64_t j = first; j < last; ++j) {
      const T v = best[column + j * stride], t = top[j];
      const Place p = at[column + j * stride], q = place[j];
      const bool nothing = q < 0, earlier = p < q;  // ors without a branch: indices are in no order of columns
      const bool wins = nothing | (v > t) | ((v == t) & earlier) | ((v != v) & ((t == t) | !earlier));
      const Place mask = Place(-Place(wins));
      top[j] = std::bit_cast<T>((std::bit_cast<Place>(v) & mask) | (std::bit_cast<Place>(t) & ~mask));
      place[j] = (p & mask) | (q & ~mask);
    }
  }
}

/// Pools one plane row by row: the maxima down the columns of a row of windows, whose elements lie side by side, and
/// then those of each window's columns. The plane has fewer than 2^31 elements.
template <class T>
void pool_plane_by_columns(const T* x, const Window& w, T* y, int64_t* indices) {
  const auto see = pool_kernels<T>().columns;
  const int64_t columns = w.in[2];
  T* const best = static_cast<T*>(thread_scratch(Scratch::output, sizeof(T) * size_t(columns)));
  using Place = typename PoolTap<T>::Place;
  Place* const at = static_cast<Place*>(thread_scratch(Scratch::operand_a, sizeof(Place) * size_t(columns)));
  T* const top = static_cast<T*>(thread_scratch(Scratch::result, sizeof(T) * size_t(w.out[2])));
  Place* const place = static_cast<Place*>(thread_scratch(Scratch::operand_b, sizeof(Place) * size_t(w.out[2])));
  each_row_of_windows(w, [&](const SeenRows& seen) {
    const int64_t first = seen.rows.first, rows = seen.rows.last - first;
    bool fresh = true;
    for (int64_t a = seen.layers.first; a < seen.layers.last && rows > 0; ++a, fresh = false) {
      const int64_t line = seen.line(a, first);
      see({x + line, w.dilation[1] * columns, rows, columns, Place(line), best, at, fresh});
    }
    if (fresh) std::fill_n(at, columns, Place(-1)), std::fill_n(best, columns, -std::numeric_limits<T>::infinity());
    join_columns(best, at, w, top, place);
    y = std::copy_n(top, w.out[2], y), indices = std::copy_n(place, w.out[2], indices);
  });
}

/// Whether maxima down columns come first, by estimated times: an element in a vector counts 1, one by itself 8 (max
/// pooling of [8, 48, 32, 32] by 3 x 3 to 16 x 16 with AVX2).
bool columns_pay(const Window& w) {
  const double lines = double(w.kernel[0]) * double(w.kernel[1]), taps = double(w.kernel[2]), call = 32;
  const double windows = double(w.out[2]), each = w.stride[2] <= 3 ? 1.5 : 6;
  const bool few = w.out[2] < kLeastWindows;  // pooled one by one then
  const double by_taps = few ? 8 * lines * taps * windows : lines * taps * (call + each * windows);
  return lines * (call + double(w.in[2])) + 8 * taps * windows < by_taps;
}

/// Pools one plane by 2 x 2 windows side by side: no bounds to check, no branch.
template <class T>
void pool_plane_2x2(const T* x, const Window& w, T* y, int64_t* indices) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    return pool_kernels<T>().pairs({x, w.in[2], w.out[1], w.out[2], y, indices});
  }
  using C = compute_t<T>;
  auto wins = [](C v, C best) { return (v > best) | (v != v); };
  for (int64_t i = 0; i < w.out[1]; ++i) {
    const int64_t row = 2 * i * w.in[2];
    const T *a = x + row, *b = a + w.in[2];
    for (int64_t j = 0; j < w.out[2]; ++j) {
      C best = static_cast<C>(a[2 * j]);
      int64_t at = 0;
      const C v1 = static_cast<C>(a[2 * j + 1]), v2 = static_cast<C>(b[2 * j]), v3 = static_cast<C>(b[2 * j + 1]);
      bool m = wins(v1, best);
      best = m ? v1 : best, at = m ? 1 : at;
      m = wins(v2, best);
      best = m ? v2 : best, at = m ? w.in[2] : at;
      m = wins(v3, best);
      best = m ? v3 : best, at = m ? w.in[2] + 1 : at;
      y[i * w.out[2] + j] = T(best);
      indices[i * w.out[2] + j] = row + 2 * j + at;
    }
  }
}

bool is_2x2(const Window& w) {
  return w.in[0] == 1 && w.kernel == Spatial{1, 2, 2} && w.stride == w.kernel && w.padding == Spatial{0, 0, 0} &&
         w.dilation == Spatial{1, 1, 1} && w.out[1] * 2 <= w.in[1] && w.out[2] * 2 <= w.in[2];
}

/// Pools row (l, i) of the outputs of an image whose channels lie side by side, window by window.
template <class T>
void pool_row_of_pixels(const T* x, const Window& w, int64_t channels, int64_t l, int64_t i, T* y, int64_t* indices) {
  using C = compute_t<T>;
  using Limits = std::numeric_limits<C>;
  constexpr bool kVectors = std::is_same_v<T, float> || std::is_same_v<T, double>;
  using Place = std::conditional_t<kVectors && sizeof(T) == 4, int32_t, int64_t>;  // as PoolTap has it
  const T lowest = T(Limits::has_infinity ? -Limits::infinity() : Limits::lowest());  // of a window in the padding
  Place* const at = static_cast<Place*>(thread_scratch(Scratch::operand_a, sizeof(Place) * size_t(channels)));
  const auto& n = w.in;
  const int64_t layer = l * w.stride[0] - w.padding[0], row = i * w.stride[1] - w.padding[1];
  const TapRange layers = taps_inside(layer, w.kernel[0], w.dilation[0], n[0]);
  const TapRange rows = taps_inside(row, w.kernel[1], w.dilation[1], n[1]);
  for (int64_t j = 0; j < w.out[2]; ++j, y += channels, indices += channels) {
    const int64_t column = j * w.stride[2] - w.padding[2];
    const TapRange columns = taps_inside(column, w.kernel[2], w.dilation[2], n[2]);
    std::fill_n(y, channels, lowest);
    std::fill_n(at, channels, Place(-1));
    for (int64_t a = layers.first; a < layers.last; ++a) {
      for (int64_t b = rows.first; b < rows.last; ++b) {
        const int64_t line = ((layer + a * w.dilation[0]) * n[1] + row + b * w.dilation[1]) * n[2];
        for (int64_t k = columns.first; k < columns.last; ++k) {
          const int64_t place = line + column + k * w.dilation[2];
          const T* const pixel = x + place * channels;
          if constexpr (kVectors) {
            pool_kernels<T>().channels({pixel, 1, channels, Place(place), y, at});
          } else {
            for (int64_t c = 0; c < channels; ++c) {
              const C v = static_cast<C>(pixel[c]), best = static_cast<C>(y[c]);
              if (at[c] < 0 || v > best || v != v) y[c] = pixel[c], at[c] = place;
            }
          }
        }
      }
    }
    std::copy_n(at, channels, indices);
  }
}

/// Pools an input with channels last; so are the results.
TensorPair max_pool_pixels(const Tensor& input, const Window& w) {
  const Tensor x = dense_image(input, true);
  const int64_t batch = x.sizes()[0], channels = x.sizes()[1];
  const Dims sizes = w.result_sizes(batch, channels);
  Tensor y = empty_image(sizes, true, x.dtype()), indices = empty_image(sizes, true, DType::int64);
  if (y.numel() == 0) return {y, indices};
  const int64_t in = plane_of(w.in) * channels, line = w.out[2] * channels, lines = w.out[0] * w.out[1];
  visit<kReals>(x.dtype(), [&]<class T>() {
    parallel_for(batch * lines, std::max<int64_t>(1, 8192 / line), [&](int64_t b, int64_t e) {
      for (int64_t t = b; t < e; ++t) {
        const int64_t r = t % lines;
        pool_row_of_pixels<T>(elements<T>(x) + t / lines * in, w, channels, r / w.out[1], r % w.out[1],
                              elements<T>(y) + t * line, elements<int64_t>(indices) + t * line);
      }
    });
  });
  return {y, indices};
}

TensorPair max_pool_kernel(const Tensor& input, IntList kernel, IntList stride, IntList padding, IntList dilation,
                           bool ceil_mode) {
  const Window w = check_max_pool(input, kernel, stride, padding, dilation, ceil_mode);
  if (suggests_channels_last(input)) {
    if (plane_of(w.in) < INT32_MAX) return max_pool_pixels(input, w);
    const auto [values, places] =
        max_pool_kernel(contiguous_values(input), kernel, stride, padding, dilation, ceil_mode);
    return {dense_image(values, true), dense_image(places, true)};
  }
  Tensor x = contiguous_values(input);
  const Dims sizes = w.result_sizes(x.sizes()[0], x.sizes()[1]);
  Tensor y = empty_tensor(sizes, x.dtype()), indices = empty_tensor(sizes, DType::int64);
  const int64_t in = plane_of(w.in), out = plane_of(w.out);
  if (out == 0 || y.numel() == 0) return {y, indices};
  visit<kReals>(x.dtype(), [&]<class T>() {
    const T* from = elements<T>(x);
    auto plane = is_2x2(w) ? &pool_plane_2x2<T> : &pool_plane<T>;
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      if (!is_2x2(w) && in < INT32_MAX) {
        if (columns_pay(w)) plane = &pool_plane_by_columns<T>;
        else if (w.out[2] >= kLeastWindows) plane = &pool_plane_by_taps<T>;
      }
    }
    parallel_for(y.numel() / out, std::max<int64_t>(1, 8192 / out), [&](int64_t b, int64_t e) {
      for (int64_t p = b; p < e; ++p)
        plane(from + p * in, w, elements<T>(y) + p * out, elements<int64_t>(indices) + p * out);
    });
  });
  return {y, indices};
}

// ---- values alone ----

std::tuple<PoolValues<float>, PoolValues<double>, PoolValues<Half>, PoolValues<BFloat16>> values_kernels;

template <class T>
const PoolValues<T>& values_of() {
  return std::get<PoolValues<T>>(values_kernels);
}

/// Returns rows [first, last) of an input that rows [begin, end) of the outputs of one layer see.
std::pair<int64_t, int64_t> rows_seen(const Window& w, int64_t begin, int64_t end) {
  const int64_t low = begin * w.stride[1] - w.padding[1];
  const int64_t high = (end - 1) * w.stride[1] - w.padding[1] + (w.kernel[1] - 1) * w.dilation[1] + 1;
  const int64_t first = std::clamp<int64_t>(low, 0, w.in[1]);
  return {first, std::clamp<int64_t>(high, first, w.in[1])};
}

template <class T>
PoolPlane<T> plane_of_window(const Window& w) {
  PoolPlane<T> p{};
  std::copy_n(w.in.data(), 3, p.in), std::copy_n(w.out.data(), 3, p.out);
  std::copy_n(w.kernel.data(), 3, p.kernel), std::copy_n(w.stride.data(), 3, p.stride);
  std::copy_n(w.padding.data(), 3, p.padding), std::copy_n(w.dilation.data(), 3, p.dilation);
  return p;
}

/// Returns the window of all planes as one, whose rows lie one after the other, where no window sees beyond its plane:
/// small planes are many calls.
Window joined(Window w, int64_t planes) {
  const bool apart = w.in[0] == 1 && w.out[0] == 1 && w.kernel[0] == 1 && w.padding[0] == 0 && w.padding[1] == 0 &&
                     w.dilation[1] == 1 && w.kernel[1] <= w.stride[1] && w.in[1] == w.out[1] * w.stride[1];
  if (apart) w.in[1] *= planes, w.out[1] *= planes;
  return w;
}

/// Pools planes, a band of rows at a time; returns whether there was no NaN.
template <class T>
bool pool_values_of_planes(const Tensor& x, const Window& each, const Tensor& y) {
  const Window w = joined(each, y.numel() / plane_of(each.out));
  using C = compute_t<T>;
  constexpr int64_t kBand = 1 << 12;  // elements of a band, which stay in the cache from lines to columns
  const int64_t in = plane_of(w.in), out = plane_of(w.out), rows = w.out[0] * w.out[1];
  const int64_t outputs = (w.out[2] + kPoolSlack - 1) / kPoolSlack * kPoolSlack;
  const int64_t line = outputs * w.stride[2] + (w.kernel[2] - 1) * w.dilation[2] + 2 * kPoolSlack + w.padding[2];
  const bool whole = w.in[0] > 1 || w.out[0] > 1;  // a volume
  const int64_t band = whole ? rows : std::clamp<int64_t>(kBand / (w.in[2] * w.stride[1]), 1, rows);
  const int64_t bands = (rows + band - 1) / band;
  std::atomic<bool> good{true};
  PoolPlane<T> all = plane_of_window<T>(w);
  all.line = line;
  all.non_temporal = rows_bypass_caches(y.impl()->data(), y.numel() / w.out[2], w.out[2] * itemsize(y.dtype()));
  const int64_t work = std::max<int64_t>(1, in / bands);
  parallel_for(y.numel() / out * bands, std::max<int64_t>(1, 32768 / work), [&](int64_t b, int64_t e) {
    for (int64_t t = b; t < e && good.load(std::memory_order_relaxed); ++t) {
      PoolPlane<T> p = all;
      const int64_t plane = t / bands;
      p.first = t % bands * band, p.last = std::min(rows, p.first + band);
      std::tie(p.first_row, p.last_row) =
          whole ? std::pair{int64_t(0), w.in[0] * w.in[1]} : rows_seen(w, p.first, p.last);
      p.x = elements<T>(x) + plane * in;
      p.y = elements<T>(y) + plane * out + p.first * w.out[2];
      const int64_t room = (p.last_row - p.first_row) * w.out[2] + kPoolLines * line + 2 * kPoolSlack;
      ScratchArray<C> lines(Scratch::operand_a, size_t(room));
      p.room = lines.data();
      if (!values_of<T>().plane(p)) good.store(false, std::memory_order_relaxed);
    }
  });
  return good.load();
}

/// Pools images with channels last, pixel by pixel; returns whether there was no NaN.
template <class T>
bool pool_values_of_pixels(const Tensor& x, const Window& w, const Tensor& y) {
  const int64_t channels = x.sizes()[1], in = plane_of(w.in) * channels, lines = w.out[0] * w.out[1];
  const int64_t line = w.out[2] * channels;
  const PoolPlane<T> all = plane_of_window<T>(w);
  std::atomic<bool> good{true};
  parallel_for(x.sizes()[0] * lines, std::max<int64_t>(1, 8192 / line), [&](int64_t b, int64_t e) {
    while (b < e && good.load(std::memory_order_relaxed)) {
      PoolPlane<T> p = all;
      const int64_t image = b / lines;
      p.first = b % lines, p.last = std::min(lines, p.first + e - b);
      p.x = elements<T>(x) + image * in, p.y = elements<T>(y) + b * line;
      if (!values_of<T>().pixels(p, channels)) good.store(false, std::memory_order_relaxed);
      b += p.last - p.first;
    }
  });
  return good.load();
}

/// The values of max_pool_kernel, with the same bits, where nobody asks for the indices.
Tensor max_pool_values_kernel(const Tensor& input, IntList kernel, IntList stride, IntList padding, IntList dilation,
                              bool ceil_mode) {
  const Window w = check_max_pool(input, kernel, stride, padding, dilation, ceil_mode);
  const auto by_places = [&] {
    return std::get<0>(max_pool_kernel(input, kernel, stride, padding, dilation, ceil_mode));
  };
  constexpr int64_t kMostTaps = 1024;  // beyond which a padded line is mostly padding
  for (size_t d = 0; d < 3; ++d) {
    if (w.kernel[d] > kMostTaps || w.stride[d] > kMostTaps || w.dilation[d] > kMostTaps) return by_places();
  }
  if (!is_float(input.dtype()) || plane_of(w.kernel) > kMostTaps || input.numel() == 0) return by_places();
  const bool last = suggests_channels_last(input);
  const Tensor x = last ? dense_image(input, true) : contiguous_values(input);
  const Tensor y = empty_image(w.result_sizes(x.sizes()[0], x.sizes()[1]), last, x.dtype());
  if (y.numel() == 0) return by_places();
  const bool done = visit<kFloats>(x.dtype(), [&]<class T>() {
    return last ? pool_values_of_pixels<T>(x, w, y) : pool_values_of_planes<T>(x, w, y);
  });
  return done ? y : by_places();
}

/// The gradient with channels last. A task has some channels of a sample, whose sums have the order of the windows.
Tensor max_pool_backward_pixels(const Tensor& grad, const Tensor& indices, IntList input_size, int64_t in) {
  constexpr int64_t kChannels = 32;  // whole cache lines, so that threads do not share one
  const Tensor g = dense_image(grad, true), at = dense_image(indices, true);
  Tensor gx = empty_image(input_size, true, grad.dtype());
  char* const bytes = gx.impl()->data();
  const int64_t size = gx.numel() * itemsize(gx.dtype());
  parallel_for(size, 1 << 18, [&](int64_t b, int64_t e) { std::memset(bytes + b, 0, size_t(e - b)); });
  const int64_t batch = gx.size(0), channels = gx.size(1), cuts = (channels + kChannels - 1) / kChannels;
  const int64_t out = g.numel() / std::max<int64_t>(1, batch * channels);
  visit<kFloats>(g.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const int64_t grain = std::max<int64_t>(1, 8192 / (kChannels * std::max<int64_t>(in, 1)));
    parallel_for(batch * cuts, grain, [&](int64_t b, int64_t e) {
      for (int64_t t = b; t < e; ++t) {
        const int64_t n = t / cuts, c0 = t % cuts * kChannels, count = std::min(kChannels, channels - c0);
        T* const to = elements<T>(gx) + n * in * channels + c0;
        const T* from = elements<T>(g) + n * out * channels + c0;
        const int64_t* i = elements<int64_t>(at) + n * out * channels + c0;
        for (int64_t k = 0; k < out; ++k, from += channels, i += channels) {
          for (int64_t c = 0; c < count; ++c) {
            if (i[c] < 0) continue;  // a window that covered only padding
            VESTA_CHECK(i[c] < in, index, "_max_pool_backward: index ", i[c], " is out of bounds for a plane of ", in,
                        " elements.");
            T& sum = to[i[c] * channels + c];
            sum = T(static_cast<C>(sum) + static_cast<C>(from[c]));
          }
        }
      }
    });
  });
  return gx;
}

Tensor max_pool_backward_kernel(const Tensor& grad, const Tensor& indices, IntList input_size, IntList, IntList,
                                IntList, IntList) {
  constexpr const char* op = "_max_pool_backward";
  const int64_t in = check_max_pool_backward(grad, indices, input_size);
  if (suggests_channels_last(indices)) return max_pool_backward_pixels(grad, indices, input_size, in);
  if (grad.numel() == 0) return zeros(input_size, grad.dtype());
  Tensor g = contiguous_values(grad), at = contiguous_values(indices), gx = empty_tensor(input_size, grad.dtype());
  const int64_t out = g.numel() / (g.size(0) * g.size(1));
  visit<kFloats>(g.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    parallel_for(g.numel() / out, std::max<int64_t>(1, 8192 / out), [&](int64_t b, int64_t e) {
      for (int64_t p = b; p < e; ++p) {
        const T* from = elements<T>(g) + p * out;
        const int64_t* i = elements<int64_t>(at) + p * out;
        T* to = elements<T>(gx) + p * in;
        std::memset(static_cast<void*>(to), 0, size_t(in) * sizeof(T));  // while the plane is in the cache
        for (int64_t k = 0; k < out; ++k) {
          if (i[k] < 0) continue;  // a window that covered only padding
          VESTA_CHECK(i[k] < in, index, op, ": index ", i[k], " is out of bounds for a plane of ", in, " elements.");
          to[i[k]] = T(static_cast<C>(to[i[k]]) + static_cast<C>(from[k]));
        }
      }
    });
  });
  return gx;
}

}  // namespace

void register_pool() {
  VESTA_ON_ISA(register_pool_kernels, single_pools, double_pools);
  VESTA_ON_ISA(register_pool_values, std::get<0>(values_kernels), std::get<1>(values_kernels),
               std::get<2>(values_kernels), std::get<3>(values_kernels));
  ops::_max_pool_values.set_kernel(DeviceType::cpu, max_pool_values_kernel);
  ops::_max_pool.set_kernel(DeviceType::cpu, max_pool_kernel);
  ops::_max_pool_backward.set_kernel(DeviceType::cpu, max_pool_backward_kernel);
}

}  // namespace vesta::cpu
