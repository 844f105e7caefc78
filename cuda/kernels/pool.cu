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

/// Finds the maxima of windows, one thread per output. `plain`: images have two dimensions and windows no gaps.
template <class T, class I, bool plain>
VESTA_KERNEL void max_pool_kernel(PoolArgs<I> a, int64_t n) {
  using C = compute_of<T>;
  const PoolLaunch& l = a.l;
  for (int64_t i = int64_t(global_index()); i < n; i += int64_t(gridDim.x) * blockDim.x) {
    const I number = I(i), pixel = I(a.channels.divide(number)), image = I(a.out.divide(pixel));
    const I place = pixel - image * I(a.out.divisor), layer = plain ? 0 : I(a.area.divide(place)),
            line = I(a.width.divide(place));
    const I corner[3] = {layer * a.stride[0] - a.padding[0], (line - layer * I(l.out[1])) * a.stride[1] - a.padding[1],
                         (place - line * I(l.out[2])) * a.stride[2] - a.padding[2]};
    I first[3] = {}, last[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
    VESTA_UNROLL
    for (int d = plain ? 1 : 0; d < 3; ++d) {
      if constexpr (plain) {
        first[d] = corner[d] < 0 ? -corner[d] : 0;
        last[d] = a.kernel[d] < a.in[d] - corner[d] ? a.kernel[d] : a.in[d] - corner[d];
      } else {
        const Taps<I> t = taps_inside(corner[d], a.kernel[d], a.dilation[d], a.in[d]);
        first[d] = t.first, last[d] = t.last, dilation[d] = a.dilation[d];
      }
    }
    const T* x = static_cast<const T*>(l.input) +
                 (int64_t(image) * (l.in[0] * l.in[1] * l.in[2]) * l.channels + (number - pixel * I(l.channels)));
    auto start = [&](I p, I q) {  // of a line of the window
      const I row = plain ? corner[1] + q : (corner[0] + p * dilation[0]) * a.in[1] + corner[1] + q * dilation[1];
      return row * a.in[2] + corner[2] + first[2] * dilation[2];
    };
    const bool exists = first[0] < last[0] && first[1] < last[1] && first[2] < last[2];
    I best_at = exists ? start(first[0], first[1]) : -1;
    T value = lowest<T>();
    C best = convert<C>(value);
    VESTA_ROLLED
    for (I p = first[0]; p < last[0]; ++p) {
      VESTA_ROLLED
      for (I q = first[1]; q < last[1]; ++q) {
        I at = start(p, q);
        VESTA_ROLLED
        for (I r = first[2]; r < last[2]; r += 2, at += 2 * dilation[2]) {
          const bool two = r + 1 < last[2];
          const I beside = two ? at + dilation[2] : at;  // both are loaded before one is compared
          const T t = x[at * I(l.channels)], u = x[beside * I(l.channels)];
          const C v = convert<C>(t), w = convert<C>(u);
          if (v > best || v != v) best = v, value = t, best_at = at;
          if (two && (w > best || w != w)) best = w, value = u, best_at = beside;
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

/// Adds gradients: a block takes a plane, 256 outputs at a time. Outputs that go to the same element would add to it
/// in any order. So each claims a slot for its element, the lowest of them adds in this round, and the others try
/// again. Elements that share a slot take turns too. Windows that do not overlap, and all that lie apart, need one
/// round, of two barriers: the next 256 claim in other slots, so that those of these are free before they are needed.
template <class T>
VESTA_KERNEL void max_pool_gradient_kernel(PoolGradientLaunch l) {
  using C = compute_of<T>;
  VESTA_SHARED(unsigned, claims, 2 * kSlots);
  for (unsigned i = threadIdx.x; i < 2 * kSlots; i += kPoolThreads) claims[i] = kFree;
  block_barrier();
  unsigned turn = 0;
  for (int64_t plane = blockIdx.x; plane < l.planes; plane += gridDim.x) {
    // elements of a plane, of the input and of the outputs, are `channels` apart
    const int64_t image = plane / l.channels, channel = plane - image * l.channels;
    T* to = static_cast<T*>(l.result) + image * l.channels * l.in + channel;
    const int64_t outputs = image * l.channels * l.out + channel;
    for (int64_t first = 0; first < l.out; first += kPoolThreads, ++turn) {
      const int64_t mine = first + threadIdx.x;
      const int64_t at =
          mine < l.out ? l.indices[outputs + mine * l.channels] : -1;  // -1: a window that covered only padding
      bool waits = at >= 0 && at < l.in;
      if (at >= l.in) report(l.fault, FaultKind::index, l.name, at, l.in);
      const C term = waits ? convert<C>(static_cast<const T*>(l.grad)[outputs + mine * l.channels]) : C(0);
      unsigned* const slot = &claims[turn % 2 * kSlots + (waits ? unsigned(at) % kSlots : 0)];
      for (bool more = true; more;) {
        if (waits) atomic_lower(slot, threadIdx.x);
        block_barrier();
        const bool wins = waits && *slot == threadIdx.x;
        more = block_any(waits && !wins);
        if (wins) {
          T& element = to[at * l.channels];
          element = convert<T>(convert<C>(element) + term);
          *slot = kFree;
          waits = false;
        }
        if (more) block_barrier();
      }
    }
  }
}

constexpr unsigned kPixelChannels = 32, kPixelRows = 16;  // of a block over pixels

/// Adds gradients of pixels: a block takes 32 channels of an image, 16 outputs of each at a time. Outputs of a channel
/// that go to the same element are added by the first of them, in order. The next outputs are loaded meanwhile, and go
/// to other places of shared memory: one barrier for 16 outputs. I counts the elements of an image.
template <class T, class I>
VESTA_KERNEL void max_pool_gradient_pixels_kernel(PoolGradientLaunch l, int64_t groups) {
  using C = compute_of<T>;
  constexpr unsigned kThreads = kPixelChannels * kPixelRows;
  VESTA_SHARED(I, all_places, 2 * kThreads);
  VESTA_SHARED(C, all_terms, 2 * kThreads);
  const unsigned lane = threadIdx.x % kPixelChannels, row = threadIdx.x / kPixelChannels;
  const int64_t image = blockIdx.x / groups, channel = (blockIdx.x - image * groups) * kPixelChannels + lane;
  T* const to = static_cast<T*>(l.result) + image * l.in * l.channels + channel;
  struct Output {
    int64_t at;  // -1: a window that covered only padding
    T term;
  };
  auto load = [&](int64_t output) {
    if (channel >= l.channels || output >= l.out) return Output{-1, convert<T>(C(0))};
    const int64_t i = (image * l.out + output) * l.channels + channel;
    return Output{l.indices[i], static_cast<const T*>(l.grad)[i]};
  };
  Output next = load(row);
  unsigned turn = 0;
  for (int64_t first = 0; first < l.out; first += kPixelRows, ++turn) {
    int64_t at = next.at;
    if (at >= l.in) report(l.fault, FaultKind::index, l.name, at, l.in), at = -1;
    const C term = convert<C>(next.term);
    next = load(first + kPixelRows + row);
    I* const places = all_places + turn % 2 * kThreads;
    C* const terms = all_terms + turn % 2 * kThreads;
    places[threadIdx.x] = I(at), terms[threadIdx.x] = term;
    block_barrier();  // what the last round has added is there, too
    if (at < 0) continue;
    bool is_first = true;
    for (unsigned r = 0; r < row; ++r) is_first = is_first && places[r * kPixelChannels + lane] != I(at);
    if (!is_first) continue;
    T sum = convert<T>(convert<C>(to[at * l.channels]) + term);
    for (unsigned r = row + 1; r < kPixelRows; ++r) {
      const unsigned other = r * kPixelChannels + lane;
      if (places[other] == I(at)) sum = convert<T>(convert<C>(sum) + terms[other]);
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
  const bool plain = l.in[0] == 1 && l.out[0] == 1 && l.kernel[0] == 1 && l.padding[0] == 0 && l.dilation[1] == 1 &&
                     l.dilation[2] == 1;
  for (int d = 0; d < 3; ++d) most *= double(l.in[d]) + 2.0 * double(l.kernel[d]) * double(l.dilation[d]);
  visit_device<kReals>(l.dtype, [&]<class T>() {
    if (most >= double(1 << 30) || n >= 1 << 30)
      launch_independent(l.name, max_pool_kernel<T, int64_t, false>, shape, PoolArgs<int64_t>(l), n);
    else if (plain) launch_independent(l.name, max_pool_kernel<T, int32_t, true>, shape, PoolArgs<int32_t>(l), n);
    else launch_independent(l.name, max_pool_kernel<T, int32_t, false>, shape, PoolArgs<int32_t>(l), n);
  });
}

void run_max_pool_gradient(const PoolGradientLaunch& l) {
  LaunchShape shape;
  shape.stream = l.stream;
  const int64_t groups = (l.channels + kPixelChannels - 1) / kPixelChannels, blocks = l.planes / l.channels * groups;
  if (l.channels > 1 && blocks < int64_t(1) << 31) {
    shape.grid[0] = unsigned(blocks), shape.block[0] = kPixelChannels * kPixelRows;
    visit_device<kFloats>(l.dtype, [&]<class T>() {
      if (l.in <= INT32_MAX) launch_block(l.name, max_pool_gradient_pixels_kernel<T, int32_t>, shape, l, groups);
      else launch_block(l.name, max_pool_gradient_pixels_kernel<T, int64_t>, shape, l, groups);
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
