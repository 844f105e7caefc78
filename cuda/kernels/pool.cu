#include <vesta/cuda/kernels/pool.h>

#include <algorithm>
#include <limits>

#include <vesta/core/ops/tap_range.h>
#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kPoolThreads = 256;
constexpr unsigned kFree = 0xffffffffu;  // no output claims this slot
constexpr unsigned kSlots = 2048;        // for the elements that 256 outputs go to: 8 KiB of shared memory

template <class T>
VESTA_HD T lowest() {
  if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::lowest();
  else return convert<T>(-INFINITY);
}

/// A launch with prepared divisors, and numbers of type I for places in an image; of 32 bits where all places of the
/// outputs fit too.
template <class I>
struct PoolArgs {
  using Divisor = std::conditional_t<sizeof(I) == 4, FastDivisor, Divider>;
  PoolLaunch l;
  Divisor channels, out, area, width;
  I in[3], kernel[3], stride[3], padding[3], dilation[3];
  explicit PoolArgs(const PoolLaunch& launch)
      : l(launch),
        channels(divisor(l.channels)),
        out(divisor(l.out[0] * l.out[1] * l.out[2])),
        area(divisor(l.out[1] * l.out[2])),
        width(divisor(l.out[2])) {
    for (int d = 0; d < 3; ++d) {
      in[d] = I(l.in[d]), kernel[d] = I(l.kernel[d]), stride[d] = I(l.stride[d]);
      padding[d] = I(l.padding[d]), dilation[d] = I(l.dilation[d]);
    }
  }
  static Divisor divisor(int64_t d) {
    if constexpr (sizeof(I) == 4) return FastDivisor(uint32_t(d));
    else return Divider(d);
  }
};

/// Finds the maxima of windows, one thread per output.
template <class T, class I>
VESTA_KERNEL void max_pool_kernel(PoolArgs<I> a, int64_t n) {
  using C = compute_of<T>;
  const PoolLaunch& l = a.l;
  for (int64_t i = int64_t(global_index()); i < n; i += int64_t(gridDim.x) * blockDim.x) {
    const I number = I(i), pixel = I(a.channels.divide(number)), image = I(a.out.divide(pixel));
    const I place = pixel - image * I(a.out.divisor), layer = I(a.area.divide(place)), line = I(a.width.divide(place));
    const I corner[3] = {layer * a.stride[0] - a.padding[0], (line - layer * I(l.out[1])) * a.stride[1] - a.padding[1],
                         (place - line * I(l.out[2])) * a.stride[2] - a.padding[2]};
    I first[3], last[3];
    VESTA_UNROLL
    for (int d = 0; d < 3; ++d) {
      const Taps<I> t = taps_inside(corner[d], a.kernel[d], a.dilation[d], a.in[d]);
      first[d] = t.first, last[d] = t.last;
    }
    const T* x = static_cast<const T*>(l.input) +
                 (int64_t(image) * (l.in[0] * l.in[1] * l.in[2]) * l.channels + (number - pixel * I(l.channels)));
    I best_at = -1;
    T value = lowest<T>();
    C best = convert<C>(value);
    for (I p = first[0]; p < last[0]; ++p) {
      for (I q = first[1]; q < last[1]; ++q) {
        I at = ((corner[0] + p * a.dilation[0]) * a.in[1] + corner[1] + q * a.dilation[1]) * a.in[2] + corner[2] +
               first[2] * a.dilation[2];
        for (I r = first[2]; r < last[2]; ++r, at += a.dilation[2]) {
          const T t = x[at * I(l.channels)];
          const C v = convert<C>(t);
          if (best_at < 0 || v > best || v != v) best = v, value = t, best_at = at;
        }
      }
    }
    static_cast<T*>(l.values)[i] = value;
    l.indices[i] = best_at;
  }
}

/// The elements that a thread of the packed kernels has: neighbouring channels, 16 bytes.
template <class T>
constexpr int kPoolPack = int(16 / sizeof(T));

/// Finds the maxima of K x K windows without dilation: a thread has N channels of an output, and loads all of its
/// window before it compares.
template <class T, int K, int N>
VESTA_KERNEL void max_pool_square_kernel(PoolArgs<int32_t> a, int64_t n) {
  using C = compute_of<T>;
  const PoolLaunch& l = a.l;
  const int32_t i = int32_t(global_index());
  if (i >= n) return;
  const int32_t pixel = int32_t(a.channels.divide(uint32_t(i)));  // a.channels counts packs
  const int32_t line = int32_t(a.width.divide(uint32_t(pixel))), image = int32_t(a.area.divide(uint32_t(pixel)));
  const int32_t y = (line - image * int32_t(l.out[1])) * a.stride[1] - a.padding[1];
  const int32_t x = (pixel - line * int32_t(l.out[2])) * a.stride[2] - a.padding[2];
  const int32_t channel = (i - pixel * int32_t(a.channels.divisor)) * N, channels = int32_t(l.channels);
  const T* const from = static_cast<const T*>(l.input) + int64_t(image) * (a.in[1] * a.in[2]) * channels + channel;
  Elements<T, N> taps[K][K];
  bool inside[K][K];
  VESTA_UNROLL
  for (int q = 0; q < K; ++q) {
    VESTA_UNROLL
    for (int r = 0; r < K; ++r) {
      inside[q][r] = uint32_t(y + q) < uint32_t(a.in[1]) && uint32_t(x + r) < uint32_t(a.in[2]);
      if (inside[q][r]) {
        taps[q][r] = *reinterpret_cast<const Elements<T, N>*>(from + ((y + q) * a.in[2] + x + r) * channels);
      }
    }
  }
  Elements<T, N> values;
  Elements<int64_t, N> places;
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) {
    values.v[j] = lowest<T>();
    C best = convert<C>(values.v[j]);
    int32_t best_at = -1;
    VESTA_UNROLL
    for (int q = 0; q < K; ++q) {
      VESTA_UNROLL
      for (int r = 0; r < K; ++r) {
        const T t = taps[q][r].v[j];
        const C v = convert<C>(t);
        const bool wins = inside[q][r] && (best_at < 0 || v > best || v != v);
        if (wins) best = v, values.v[j] = t, best_at = (y + q) * a.in[2] + x + r;
      }
    }
    places.v[j] = best_at;
  }
  const int64_t at = int64_t(pixel) * channels + channel;
  *reinterpret_cast<Elements<T, N>*>(static_cast<T*>(l.values) + at) = values;
  *reinterpret_cast<Elements<int64_t, N>*>(l.indices + at) = places;
}

/// Lowers *p to v if that is lower.
VESTA_DEVICE void atomic_lower(unsigned* p, unsigned v) {
  unsigned seen = kFree;
  while (v < seen) {
    const unsigned old = atomic_cas(p, seen, v);
    if (old == seen) return;
    seen = old;
  }
}

/// Adds gradients: a block takes a plane, 256 outputs at a time. Outputs that go to the same element would add to it
/// in any order. So each claims a slot for its element, the lowest of them adds in this round, and the others try
/// again. Elements that share a slot take turns too. Windows that do not overlap, and all that lie apart, need one
/// round.
template <class T>
VESTA_KERNEL void max_pool_gradient_kernel(PoolGradientLaunch l) {
  using C = compute_of<T>;
  VESTA_SHARED(unsigned, claims, kSlots);
  for (unsigned i = threadIdx.x; i < kSlots; i += kPoolThreads) claims[i] = kFree;
  for (int64_t plane = blockIdx.x; plane < l.planes; plane += gridDim.x) {
    // elements of a plane, of the input and of the outputs, are `channels` apart
    const int64_t image = plane / l.channels, channel = plane - image * l.channels;
    T* to = static_cast<T*>(l.result) + image * l.channels * l.in + channel;
    const int64_t outputs = image * l.channels * l.out + channel;
    for (int64_t first = 0; first < l.out; first += kPoolThreads) {
      const int64_t mine = first + threadIdx.x;
      const int64_t at =
          mine < l.out ? l.indices[outputs + mine * l.channels] : -1;  // -1: a window that covered only padding
      bool waits = at >= 0 && at < l.in;
      if (at >= l.in) report(l.fault, FaultKind::index, l.name, at, l.in);
      const C term = waits ? convert<C>(static_cast<const T*>(l.grad)[outputs + mine * l.channels]) : C(0);
      unsigned* const slot = &claims[waits ? unsigned(at) % kSlots : 0];
      while (block_any(waits)) {
        if (waits) atomic_lower(slot, threadIdx.x);
        block_barrier();
        const bool wins = waits && *slot == threadIdx.x;
        block_barrier();
        if (wins) {
          T& element = to[at * l.channels];
          element = convert<T>(convert<C>(element) + term);
          *slot = kFree;
          waits = false;
        }
      }
    }
  }
}

constexpr unsigned kPixelChannels = 32, kPixelRows = 16;  // of a block over pixels

/// Adds gradients of pixels: a block takes 32 channels of an image, 16 outputs of each at a time. Outputs of a channel
/// that go to the same element are added by the first of them, in order.
template <class T>
VESTA_KERNEL void max_pool_gradient_pixels_kernel(PoolGradientLaunch l, int64_t groups) {
  using C = compute_of<T>;
  VESTA_SHARED(int64_t, places, kPixelChannels* kPixelRows);
  VESTA_SHARED(C, terms, kPixelChannels * kPixelRows);
  const unsigned lane = threadIdx.x % kPixelChannels, row = threadIdx.x / kPixelChannels;
  const int64_t image = blockIdx.x / groups, channel = (blockIdx.x - image * groups) * kPixelChannels + lane;
  T* const to = static_cast<T*>(l.result) + image * l.in * l.channels + channel;
  for (int64_t first = 0; first < l.out; first += kPixelRows) {
    const int64_t i = (image * l.out + first + row) * l.channels + channel;
    const bool exists = channel < l.channels && first + row < l.out;
    int64_t at = exists ? l.indices[i] : -1;  // -1: a window that covered only padding
    if (at >= l.in) report(l.fault, FaultKind::index, l.name, at, l.in), at = -1;
    const C term = at >= 0 ? convert<C>(static_cast<const T*>(l.grad)[i]) : C(0);
    block_barrier();  // the last round's places have been read, and its sums written
    places[threadIdx.x] = at, terms[threadIdx.x] = term;
    block_barrier();
    if (at < 0) continue;
    bool is_first = true;
    for (unsigned r = 0; r < row; ++r) is_first = is_first && places[r * kPixelChannels + lane] != at;
    if (!is_first) continue;
    T sum = convert<T>(convert<C>(to[at * l.channels]) + term);
    for (unsigned r = row + 1; r < kPixelRows; ++r) {
      const unsigned other = r * kPixelChannels + lane;
      if (places[other] == at) sum = convert<T>(convert<C>(sum) + terms[other]);
    }
    to[at * l.channels] = sum;
  }
}

/// A gradient's launch with prepared divisors. Windows reach `reach` elements beyond their first.
struct WindowGradientArgs {
  PoolGradientLaunch l;
  FastDivisor channels, area, width, plane, stride[3];
  int32_t in[3], out[3], reach[3], padding[3];
  WindowGradientArgs(const PoolGradientLaunch& launch, int pack)
      : l(launch),
        channels(uint32_t(l.channels / pack)),
        area(uint32_t(l.window.in[1] * l.window.in[2])),
        width(uint32_t(l.window.in[2])),
        plane(uint32_t(l.in)) {
    const PoolLaunch& w = l.window;
    for (int d = 0; d < 3; ++d) {
      in[d] = int32_t(w.in[d]), out[d] = int32_t(w.out[d]), stride[d] = FastDivisor(uint32_t(w.stride[d]));
      reach[d] = int32_t((w.kernel[d] - 1) * w.dilation[d]), padding[d] = int32_t(w.padding[d]);
    }
  }
};

/// Adds gradients: a thread has N channels of an element of the input and looks at the outputs whose windows cover it,
/// up to `columns` along a row, in order. Nobody else adds to its element.
template <class T, int columns, int N>
VESTA_KERNEL void max_pool_gradient_windows_kernel(WindowGradientArgs a, int64_t n) {
  using C = compute_of<T>;
  const PoolGradientLaunch& l = a.l;
  const int32_t i = int32_t(global_index());
  if (i >= n) return;
  const int32_t pixel = int32_t(a.channels.divide(uint32_t(i))), image = int32_t(a.plane.divide(uint32_t(pixel)));
  const int32_t place = pixel - image * int32_t(l.in), layer = int32_t(a.area.divide(uint32_t(place)));
  const int32_t line = int32_t(a.width.divide(uint32_t(place)));
  const int32_t at[3] = {layer, line - layer * a.in[1], place - line * a.in[2]};
  int32_t first[3], last[3];  // of the outputs along each dimension
  VESTA_UNROLL
  for (int d = 0; d < 3; ++d) {
    const int32_t end = at[d] + a.padding[d], begin = end - a.reach[d];
    first[d] = begin <= 0 ? 0 : int32_t(a.stride[d].divide(uint32_t(begin) + a.stride[d].divisor - 1));
    last[d] = int32_t(a.stride[d].divide(uint32_t(end)));
    if (last[d] >= a.out[d]) last[d] = a.out[d] - 1;
  }
  const int32_t channel = (i - pixel * int32_t(a.channels.divisor)) * N, channels = int32_t(l.channels);
  const int64_t outputs = int64_t(image) * l.out * channels + channel;
  C sum[N] = {};
  VESTA_ROLLED
  for (int32_t o = first[0]; o <= last[0]; ++o) {
    VESTA_ROLLED
    for (int32_t p = first[1]; p <= last[1]; ++p) {
      const int64_t row = outputs + int64_t((o * a.out[1] + p) * a.out[2] + first[2]) * channels;
      Elements<int64_t, N> places[columns];
      Elements<T, N> terms[columns];
      VESTA_UNROLL
      for (int k = 0; k < columns; ++k) {
        if (first[2] + k > last[2]) continue;
        places[k] = *reinterpret_cast<const Elements<int64_t, N>*>(l.indices + row + k * channels);
        terms[k] = *reinterpret_cast<const Elements<T, N>*>(static_cast<const T*>(l.grad) + row + k * channels);
      }
      VESTA_UNROLL
      for (int k = 0; k < columns; ++k) {
        if (first[2] + k > last[2]) continue;
        VESTA_UNROLL
        for (int j = 0; j < N; ++j) {
          if (int32_t(places[k].v[j]) != place) continue;
          sum[j] = convert<C>(convert<T>(sum[j] + convert<C>(terms[k].v[j])));  // as the others round
        }
      }
    }
  }
  Elements<T, N> result;
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) result.v[j] = convert<T>(sum[j]);
  *reinterpret_cast<Elements<T, N>*>(static_cast<T*>(l.result) + int64_t(pixel) * channels + channel) = result;
}

/// Adds gradients in any order, one thread per output.
template <class T>
VESTA_KERNEL void max_pool_gradient_any_kernel(PoolGradientLaunch l, int64_t n) {
  for (int64_t i = int64_t(global_index()); i < n; i += int64_t(gridDim.x) * blockDim.x) {
    const int64_t at = l.indices[i], pixel = i / l.channels;
    if (at >= l.in) report(l.fault, FaultKind::index, l.name, at, l.in);
    if (at < 0 || at >= l.in) continue;
    T* to = static_cast<T*>(l.result) + (pixel / l.out * l.in + at) * l.channels + (i - pixel * l.channels);
    atomic_add(to, static_cast<const T*>(l.grad)[i]);
  }
}

bool is_aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

/// Calls f<K>() for square windows that the kernel of these takes; else returns false.
template <class F>
bool with_square(const PoolLaunch& l, F f) {
  const bool planar = l.in[0] == 1 && l.out[0] == 1 && l.kernel[0] == 1 && l.padding[0] == 0;
  const bool square = l.kernel[1] == l.kernel[2] && l.dilation[1] == 1 && l.dilation[2] == 1;
  if (!planar || !square || l.kernel[1] < 2 || l.kernel[1] > 3) return false;
  if (l.kernel[1] == 2) f.template operator()<2>();
  else f.template operator()<3>();
  return true;
}

}  // namespace

void run_max_pool(const PoolLaunch& l) {
  const int64_t n = l.planes * l.out[0] * l.out[1] * l.out[2];
  const LaunchShape shape = linear_shape(uint64_t(std::min<int64_t>(n, 1 << 30)), kPoolThreads, l.stream);
  // places in an image, and beyond it by a window
  double most = double(l.channels);
  for (int d = 0; d < 3; ++d) most *= double(l.in[d]) + 2.0 * double(l.kernel[d]) * double(l.dilation[d]);
  const bool is_small = most < double(1 << 30) && n < 1 << 30;
  visit_device<kReals>(l.dtype, [&]<class T>() {
    if constexpr (!std::is_integral_v<T>) {
      const auto run = [&]<int K>() {
        constexpr int N = kPoolPack<T>;
        PoolArgs<int32_t> a(l);
        const bool packed = l.channels % N == 0 && is_aligned(l.input) && is_aligned(l.values) && is_aligned(l.indices);
        const int64_t threads = packed ? n / N : n;
        if (packed) a.channels = FastDivisor(uint32_t(l.channels / N));
        const LaunchShape one_each = linear_shape(uint64_t(threads), kPoolThreads, l.stream);
        if (packed) launch_independent(l.name, max_pool_square_kernel<T, K, N>, one_each, a, threads);
        else launch_independent(l.name, max_pool_square_kernel<T, K, 1>, one_each, a, threads);
      };
      if (is_small && with_square(l, run)) return;
    }
    if (is_small) launch_independent(l.name, max_pool_kernel<T, int32_t>, shape, PoolArgs<int32_t>(l), n);
    else launch_independent(l.name, max_pool_kernel<T, int64_t>, shape, PoolArgs<int64_t>(l), n);
  });
}

bool run_max_pool_gradient_of_windows(const PoolGradientLaunch& l) {
  const PoolLaunch& w = l.window;
  int64_t outputs = 1, columns = 0;  // that cover an element
  double largest = 0;
  for (int d = 0; d < 3; ++d) {
    const int64_t reach = (w.kernel[d] - 1) * w.dilation[d];
    columns = reach / w.stride[d] + 1, outputs *= columns;
    largest = std::max(largest, double(w.in[d]) + double(w.padding[d]) + double(reach) + double(w.stride[d]));
  }
  if (outputs > 16 || columns > 3 || largest > double(1 << 30) || l.planes * std::max(l.in, l.out) >= 1 << 30)
    return false;
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    const auto run = [&]<int most, int N>() {
      const int64_t threads = l.planes * l.in / N;
      const LaunchShape shape = linear_shape(uint64_t(threads), kPoolThreads, l.stream);
      const WindowGradientArgs a(l, N);
      launch_independent(l.name, max_pool_gradient_windows_kernel<T, most, N>, shape, a, threads);
    };
    const auto with_pack = [&]<int most>() {
      constexpr int N = kPoolPack<T>;
      const bool packed = l.channels % N == 0 && is_aligned(l.grad) && is_aligned(l.indices) && is_aligned(l.result);
      if (packed) run.template operator()<most, N>();
      else run.template operator()<most, 1>();
    };
    if (columns == 1) with_pack.template operator()<1>();
    else if (columns == 2) with_pack.template operator()<2>();
    else with_pack.template operator()<3>();
  });
  return true;
}

void run_max_pool_gradient(const PoolGradientLaunch& l) {
  LaunchShape shape;
  shape.stream = l.stream;
  const int64_t groups = (l.channels + kPixelChannels - 1) / kPixelChannels, blocks = l.planes / l.channels * groups;
  if (l.channels > 1 && blocks < int64_t(1) << 31) {
    shape.grid[0] = unsigned(blocks), shape.block[0] = kPixelChannels * kPixelRows;
    visit_device<kFloats>(
        l.dtype, [&]<class T>() { launch_block(l.name, max_pool_gradient_pixels_kernel<T>, shape, l, groups); });
    return;
  }
  shape.grid[0] = unsigned(std::min<int64_t>(l.planes, 1 << 20)), shape.block[0] = kPoolThreads;
  visit_device<kFloats>(l.dtype, [&]<class T>() { launch_block(l.name, max_pool_gradient_kernel<T>, shape, l); });
}

void run_max_pool_gradient_in_any_order(const PoolGradientLaunch& l) {
  const int64_t n = l.planes * l.out;
  const LaunchShape shape = linear_shape(uint64_t(std::min<int64_t>(n, 1 << 30)), kPoolThreads, l.stream);
  visit_device<kAddedInPlace>(
      l.dtype, [&]<class T>() { launch_independent(l.name, max_pool_gradient_any_kernel<T>, shape, l, n); });
}

}  // namespace vesta::cuda
