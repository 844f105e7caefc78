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

/// A launch with prepared divisors, and numbers of type I for places in an image.
template <class I>
struct PoolArgs {
  PoolLaunch l;
  Divider channels, out, area, width;
  I in[3], kernel[3], stride[3], padding[3], dilation[3];
  explicit PoolArgs(const PoolLaunch& launch)
      : l(launch), channels(l.channels), out(l.out[0] * l.out[1] * l.out[2]), area(l.out[1] * l.out[2]), width(l.out[2]) {
    for (int d = 0; d < 3; ++d) {
      in[d] = I(l.in[d]), kernel[d] = I(l.kernel[d]), stride[d] = I(l.stride[d]);
      padding[d] = I(l.padding[d]), dilation[d] = I(l.dilation[d]);
    }
  }
};

/// Finds the maxima of windows, one thread per output.
template <class T, class I>
VESTA_KERNEL void max_pool_kernel(PoolArgs<I> a, int64_t n) {
  using C = compute_of<T>;
  const PoolLaunch& l = a.l;
  for (int64_t i = int64_t(global_index()); i < n; i += int64_t(gridDim.x) * blockDim.x) {
    const int64_t pixel = a.channels.divide(i), image = a.out.divide(pixel), place = pixel - image * a.out.divisor;
    const int64_t layer = a.area.divide(place), line = a.width.divide(place);
    const I corner[3] = {I(layer) * a.stride[0] - a.padding[0],
                         I(line - layer * l.out[1]) * a.stride[1] - a.padding[1],
                         I(place - line * l.out[2]) * a.stride[2] - a.padding[2]};
    I first[3], last[3];
    VESTA_UNROLL
    for (int d = 0; d < 3; ++d) {
      const Taps<I> t = taps_inside(corner[d], a.kernel[d], a.dilation[d], a.in[d]);
      first[d] = t.first, last[d] = t.last;
    }
    const T* x = static_cast<const T*>(l.input) +
                 (image * (l.in[0] * l.in[1] * l.in[2]) * l.channels + (i - pixel * l.channels));
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

/// Lowers *p to v if that is lower.
VESTA_DEVICE void atomic_lower(unsigned* p, unsigned v) {
  unsigned seen = kFree;
  while (v < seen) {
    const unsigned old = atomic_cas(p, seen, v);
    if (old == seen) return;
    seen = old;
  }
}

/// Returns on every thread of the block whether any thread passes true.
VESTA_DEVICE bool any_of_block(bool mine) {
  VESTA_SHARED(int, found, 1);
  block_barrier();
  if (threadIdx.x == 0) found[0] = 0;
  block_barrier();
  if (mine) found[0] = 1;
  block_barrier();
  return found[0] != 0;
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
      while (any_of_block(waits)) {
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
  VESTA_SHARED(int64_t, places, kPixelChannels * kPixelRows);
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

}  // namespace

void run_max_pool(const PoolLaunch& l) {
  const int64_t n = l.planes * l.out[0] * l.out[1] * l.out[2];
  const LaunchShape shape = linear_shape(uint64_t(std::min<int64_t>(n, 1 << 30)), kPoolThreads, l.stream);
  // places in an image, and beyond it by a window
  double most = double(l.channels);
  for (int d = 0; d < 3; ++d) most *= double(l.in[d]) + 2.0 * double(l.kernel[d]) * double(l.dilation[d]);
  visit_device<kReals>(l.dtype, [&]<class T>() {
    if (most < double(1 << 30)) launch_independent(l.name, max_pool_kernel<T, int32_t>, shape, PoolArgs<int32_t>(l), n);
    else launch_independent(l.name, max_pool_kernel<T, int64_t>, shape, PoolArgs<int64_t>(l), n);
  });
}

void run_max_pool_gradient(const PoolGradientLaunch& l) {
  LaunchShape shape;
  shape.stream = l.stream;
  const int64_t groups = (l.channels + kPixelChannels - 1) / kPixelChannels, blocks = l.planes / l.channels * groups;
  if (l.channels > 1 && blocks < int64_t(1) << 31) {
    shape.grid[0] = unsigned(blocks), shape.block[0] = kPixelChannels * kPixelRows;
    visit_device<kFloats>(l.dtype, [&]<class T>() {
      launch_block(l.name, max_pool_gradient_pixels_kernel<T>, shape, l, groups);
    });
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
