#include <vesta/cuda/kernels/pool.h>

#include <algorithm>
#include <limits>

#include <vesta/core/ops/tap_range.h>
#include <vesta/cuda/kernels/types.cuh>

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

/// Finds the maxima of windows, one thread per output.
template <class T>
VESTA_KERNEL void max_pool_kernel(PoolLaunch l, int64_t n) {
  using C = compute_of<T>;
  const int64_t area = l.out[1] * l.out[2], out = l.out[0] * area, in = l.in[0] * l.in[1] * l.in[2];
  for (int64_t i = int64_t(global_index()); i < n; i += int64_t(gridDim.x) * blockDim.x) {
    const int64_t pixel = i / l.channels, image = pixel / out, place = pixel - image * out, layer = place / area,
                  row = (place - layer * area) / l.out[2];
    const int64_t corner[3] = {layer * l.stride[0] - l.padding[0], row * l.stride[1] - l.padding[1],
                               place % l.out[2] * l.stride[2] - l.padding[2]};
    const TapRange layers = taps_inside(corner[0], l.kernel[0], l.dilation[0], l.in[0]),
                   rows = taps_inside(corner[1], l.kernel[1], l.dilation[1], l.in[1]),
                   columns = taps_inside(corner[2], l.kernel[2], l.dilation[2], l.in[2]);
    const T* x = static_cast<const T*>(l.input) + image * in * l.channels + (i - pixel * l.channels);
    int64_t best_at = -1;
    C best{};
    for (int64_t a = layers.first; a < layers.last; ++a) {
      for (int64_t b = rows.first; b < rows.last; ++b) {
        const int64_t z = corner[0] + a * l.dilation[0], r = corner[1] + b * l.dilation[1];
        const int64_t line = (z * l.in[1] + r) * l.in[2] + corner[2];
        for (int64_t k = columns.first; k < columns.last; ++k) {
          const int64_t at = line + k * l.dilation[2];
          const C v = convert<C>(x[at * l.channels]);
          if (best_at < 0 || v > best || v != v) best = v, best_at = at;
        }
      }
    }
    static_cast<T*>(l.values)[i] = best_at < 0 ? lowest<T>() : x[best_at * l.channels];
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
  visit_device<kReals>(l.dtype, [&]<class T>() {
    launch_independent(l.name, max_pool_kernel<T>,
                       linear_shape(uint64_t(std::min<int64_t>(n, 1 << 30)), kPoolThreads, l.stream), l, n);
  });
}

void run_max_pool_gradient(const PoolGradientLaunch& l) {
  LaunchShape shape;
  shape.grid[0] = unsigned(std::min<int64_t>(l.planes, 1 << 20)), shape.block[0] = kPoolThreads;
  shape.stream = l.stream;
  visit_device<kFloats>(l.dtype, [&]<class T>() { launch_block(l.name, max_pool_gradient_kernel<T>, shape, l); });
}

void run_max_pool_gradient_in_any_order(const PoolGradientLaunch& l) {
  const int64_t n = l.planes * l.out;
  const LaunchShape shape = linear_shape(uint64_t(std::min<int64_t>(n, 1 << 30)), kPoolThreads, l.stream);
  visit_device<kAddedInPlace>(
      l.dtype, [&]<class T>() { launch_independent(l.name, max_pool_gradient_any_kernel<T>, shape, l, n); });
}

}  // namespace vesta::cuda
