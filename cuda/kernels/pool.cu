#include <vesta/cuda/kernels/pool.h>

#include <algorithm>
#include <limits>

#include <vesta/core/ops/tap_range.h>
#include <vesta/cuda/kernels/alignment.h>
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

/// A launch with prepared divisors, and numbers of type I for indices in an image; of 32 bits where all indices of the
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
    if (l.indices) l.indices[i] = best_at;
  }
}

/// The elements that a thread of the packed kernels has: neighbouring channels, 16 bytes.
template <class T>
constexpr int kPoolPack = int(16 / sizeof(T));

VESTA_DEVICE int32_t nearest_inside(int32_t at, int32_t n) { return at < 0 ? 0 : at < n ? at : n - 1; }

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
  // A tap beside the image is read again from its edge, which is in the window: the same maximum, and the same index of
  // it. Nothing is left out, so that all loads are made at once.
  int32_t rows[K], columns[K];
  VESTA_UNROLL
  for (int k = 0; k < K; ++k) {
    rows[k] = nearest_inside(y + k, a.in[1]) * a.in[2], columns[k] = nearest_inside(x + k, a.in[2]);
  }
  Elements<T, N> taps[K][K];
  VESTA_UNROLL
  for (int q = 0; q < K; ++q) {
    VESTA_UNROLL
    for (int r = 0; r < K; ++r) {
      taps[q][r] = *reinterpret_cast<const Elements<T, N>*>(from + (rows[q] + columns[r]) * channels);
    }
  }
  Elements<T, N> values;
  Elements<int64_t, N> places;
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) {
    values.v[j] = taps[0][0].v[j];
    C best = convert<C>(values.v[j]);
    int32_t best_at = rows[0] + columns[0];
    VESTA_UNROLL
    for (int t = 1; t < K * K; ++t) {
      const T tap = taps[t / K][t % K].v[j];
      const C v = convert<C>(tap);
      const bool wins = v > best || v != v;
      best = wins ? v : best, values.v[j] = wins ? tap : values.v[j];
      best_at = wins ? rows[t / K] + columns[t % K] : best_at;
    }
    places.v[j] = best_at;
  }
  const int64_t at = int64_t(pixel) * channels + channel;
  *reinterpret_cast<Elements<T, N>*>(static_cast<T*>(l.values) + at) = values;
  if (l.indices) *reinterpret_cast<Elements<int64_t, N>*>(l.indices + at) = places;
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
VESTA_KERNEL void max_pool_backward_kernel(PoolGradientLaunch l) {
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
VESTA_KERNEL void max_pool_backward_pixels_kernel(PoolGradientLaunch l, int64_t groups) {
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
    block_barrier();  // the last round's indices have been read, and its sums written
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
  FastDivisor packs, runs, height, lines, stride[3];  // lines: of a plane
  int32_t in[3], out[3], reach[3], padding[3];
  bool whole;  // whether each run is stored at once
  WindowGradientArgs(const PoolGradientLaunch& launch, int pack, int run)
      : l(launch),
        packs(uint32_t(l.channels / pack)),
        runs(uint32_t((l.window.in[2] + run - 1) / run)),
        height(uint32_t(l.window.in[1])),
        lines(uint32_t(l.window.in[0] * l.window.in[1])) {
    const PoolLaunch& w = l.window;
    for (int d = 0; d < 3; ++d) {
      in[d] = int32_t(w.in[d]), out[d] = int32_t(w.out[d]), stride[d] = FastDivisor(uint32_t(w.stride[d]));
      reach[d] = int32_t((w.kernel[d] - 1) * w.dilation[d]), padding[d] = int32_t(w.padding[d]);
    }
    whole = l.channels == 1 && w.in[2] % run == 0 && is_aligned(l.result);
  }
  int64_t threads() const {
    return l.planes / l.channels * int64_t(packs.divisor) * int64_t(lines.divisor) * int64_t(runs.divisor);
  }
  /// Finds the outputs along d whose windows cover elements from `begin` to `last`.
  VESTA_DEVICE void outputs(int d, int32_t begin, int32_t last, int32_t& first_output, int32_t& last_output) const {
    const int32_t reached = begin + padding[d] - reach[d];
    first_output = reached <= 0 ? 0 : int32_t(stride[d].divide(uint32_t(reached) + stride[d].divisor - 1));
    last_output = int32_t(stride[d].divide(uint32_t(last + padding[d])));
    if (last_output >= out[d]) last_output = out[d] - 1;
  }
};

/// Adds gradients: a thread has N channels of M neighbours along a line of the input and looks at the outputs whose
/// windows cover them, once at each, in order. Nobody else adds to its elements.
template <class T, int M, int N>
VESTA_KERNEL void max_pool_backward_windows_kernel(WindowGradientArgs a, uint32_t n) {
  using C = compute_of<T>;
  constexpr int kLoads = N == 1 ? 4 : 2;  // outputs that are loaded before they are compared
  const PoolGradientLaunch& l = a.l;
  const uint32_t i = global_index();
  if (i >= n) return;
  const uint32_t unit = a.packs.divide(i), row = a.runs.divide(unit), image = a.lines.divide(row);
  const int32_t line = int32_t(row - image * a.lines.divisor), layer = int32_t(a.height.divide(uint32_t(line)));
  const int32_t x = int32_t(unit - row * a.runs.divisor) * M, y = line - layer * a.in[1], place = line * a.in[2] + x;
  const int32_t channels = int32_t(l.channels), channel = int32_t(i - unit * a.packs.divisor) * N;
  const int32_t end = x + M < a.in[2] ? x + M : a.in[2];
  int32_t first[3], last[3];  // of the outputs along each dimension
  a.outputs(0, layer, layer, first[0], last[0]);
  a.outputs(1, y, y, first[1], last[1]);
  a.outputs(2, x, end - 1, first[2], last[2]);
  const int64_t outputs = int64_t(image) * l.out * channels + channel;
  const int64_t* const indices = l.indices + outputs;
  const T* const grad = static_cast<const T*>(l.grad) + outputs;
  C sum[M][N] = {};
  VESTA_ROLLED
  for (int32_t o = first[0]; o <= last[0]; ++o) {
    VESTA_ROLLED
    for (int32_t p = first[1]; p <= last[1]; ++p) {
      VESTA_ROLLED
      for (int32_t q = first[2]; q <= last[2]; q += kLoads) {
        const int32_t from = ((o * a.out[1] + p) * a.out[2] + q) * channels;
        Elements<int64_t, N> places[kLoads];
        Elements<T, N> terms[kLoads];
        VESTA_UNROLL
        for (int k = 0; k < kLoads; ++k) {
          const int32_t at = from + (q + k <= last[2] ? k : 0) * channels;
          places[k] = *reinterpret_cast<const Elements<int64_t, N>*>(indices + at);
          terms[k] = *reinterpret_cast<const Elements<T, N>*>(grad + at);
        }
        VESTA_UNROLL
        for (int k = 0; k < kLoads; ++k) {
          // what nothing equals, where there is no output: a branch would draw the loads behind it
          const int32_t begin = q + k <= last[2] ? place : 1 << 30;
          C v[N];
          widen<T, N>(terms[k], v);
          VESTA_UNROLL
          for (int j = 0; j < N; ++j) {
            const int64_t own = places[k].v[j];
            // The high words, 0 but for -1, are used, else nvcc loads the low ones alone: eight accesses for four.
            const int32_t at = int32_t(own) + int32_t(own >> 32) - begin;
            VESTA_UNROLL
            for (int m = 0; m < M; ++m) {
              if (at == m) sum[m][j] = convert<C>(convert<T>(sum[m][j] + v[j]));  // as the others round
            }
          }
        }
      }
    }
  }
  T* const to = static_cast<T*>(l.result) + (int64_t(image) * l.in + place) * channels + channel;
  if constexpr (N == 1) {
    C run[M];
    VESTA_UNROLL
    for (int m = 0; m < M; ++m) run[m] = sum[m][0];
    const Elements<T, M> pack = narrowed<T, M>(run);
    if (a.whole) return store_whole(to, pack);
    VESTA_UNROLL
    for (int m = 0; m < M; ++m) {
      if (x + m < end) to[m * channels] = pack.v[m];
    }
  } else {
    VESTA_UNROLL
    for (int m = 0; m < M; ++m) {
      if (x + m < end) store_whole(to + m * channels, narrowed<T, N>(sum[m]));
    }
  }
}

/// Adds gradients in any order, one thread per output.
template <class T>
VESTA_KERNEL void max_pool_backward_any_kernel(PoolGradientLaunch l, int64_t n) {
  for (int64_t i = int64_t(global_index()); i < n; i += int64_t(gridDim.x) * blockDim.x) {
    const int64_t at = l.indices[i], pixel = i / l.channels;
    if (at >= l.in) report(l.fault, FaultKind::index, l.name, at, l.in);
    if (at < 0 || at >= l.in) continue;
    T* to = static_cast<T*>(l.result) + (pixel / l.out * l.in + at) * l.channels + (i - pixel * l.channels);
    atomic_add(to, static_cast<const T*>(l.grad)[i]);
  }
}

/// Calls f<K>() for square windows that the kernel of these takes; else returns false.
template <class F>
bool with_square(const PoolLaunch& l, F f) {
  const bool planar = l.in[0] == 1 && l.out[0] == 1 && l.kernel[0] == 1 && l.padding[0] == 0;
  bool square = l.kernel[1] == l.kernel[2] && l.dilation[1] == 1 && l.dilation[2] == 1;
  for (int d = 1; d < 3; ++d) {  // and each window has an element of the image
    square = square && l.padding[d] < l.kernel[d] && (l.out[d] - 1) * l.stride[d] - l.padding[d] < l.in[d];
  }
  if (!planar || !square || l.kernel[1] < 2 || l.kernel[1] > 3) return false;
  if (l.kernel[1] == 2) f.template operator()<2>();
  else f.template operator()<3>();
  return true;
}

/// Returns where a window begins: floor((i + u) * alpha) - floor(u * alpha), each number rounded to T as the ops that
/// the CPU takes round it; the last window ends with the plane.
template <class T>
VESTA_DEVICE int64_t window_start(const FractionalPoolLaunch& l, int d, int64_t i, T sample) {
  using C = compute_of<T>;
  const int64_t last = l.in[d] - l.kernel[d];
  if (i == l.out[d] - 1) return last;
  const auto rounded = [](C v) { return convert<C>(convert<T>(v)); };
  const C alpha = C(double(last) / double(l.out[d] - 1)), u = convert<C>(sample);
  const C moved = math::floor(rounded(rounded(rounded(C(i)) + u) * alpha)), base = math::floor(rounded(u * alpha));
  const int64_t start = convert<int64_t>(rounded(moved - base));
  if (start >= 0 && start <= last) return start;
  report(l.fault, FaultKind::index, l.name, start, l.in[d], d);
  return 0;
}

/// Finds the maxima of windows that begin anywhere, one thread per output.
template <class T>
VESTA_KERNEL void fractional_max_pool_kernel(FractionalPoolLaunch l, Divider outputs, Divider area, Divider width) {
  using C = compute_of<T>;
  const int64_t i = int64_t(blockIdx.x) * kPoolThreads + threadIdx.x, plane = outputs.divide(i);
  if (plane >= l.planes) return;
  const int64_t place = i - plane * outputs.divisor, layer = area.divide(place), line = width.divide(place);
  const int64_t at[3] = {layer, line - layer * l.out[1], place - line * l.out[2]};
  const T* const samples = static_cast<const T*>(l.samples) + plane * l.dims;
  int64_t start[3];
  VESTA_UNROLL
  for (int d = 0; d < 3; ++d) {
    start[d] = d > 0 || l.dims == 3 ? window_start<T>(l, d, at[d], samples[l.dims == 2 ? 2 - d : d]) : 0;
  }
  const T* const x = static_cast<const T*>(l.input) + plane * (l.in[0] * l.in[1] * l.in[2]);
  int64_t best_at = (start[0] * l.in[1] + start[1]) * l.in[2] + start[2];
  T value = x[best_at];
  C best = convert<C>(value);
  for (int64_t p = start[0]; p < start[0] + l.kernel[0]; ++p) {
    for (int64_t q = start[1]; q < start[1] + l.kernel[1]; ++q) {
      const int64_t from = (p * l.in[1] + q) * l.in[2] + start[2];
      for (int64_t r = from; r < from + l.kernel[2]; ++r) {
        const T t = x[r];
        const C v = convert<C>(t);
        if (v > best || v != v) best = v, value = t, best_at = r;
      }
    }
  }
  static_cast<T*>(l.values)[i] = value;
  l.indices[i] = best_at;
}

}  // namespace

void run_fractional_max_pool(const FractionalPoolLaunch& l) {
  const int64_t outputs = l.out[0] * l.out[1] * l.out[2];
  const LaunchShape shape = linear_shape(uint64_t(l.planes * outputs), kPoolThreads, l.stream);
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    launch_independent(l.name, fractional_max_pool_kernel<T>, shape, l, Divider(outputs), Divider(l.out[1] * l.out[2]),
                       Divider(l.out[2]));
  });
}

void run_max_pool(const PoolLaunch& l) {
  const int64_t n = l.planes * l.out[0] * l.out[1] * l.out[2];
  const LaunchShape shape = linear_shape(uint64_t(std::min<int64_t>(n, 1 << 30)), kPoolThreads, l.stream);
  // indices in an image, and beyond it by a window
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

bool run_max_pool_backward_of_windows(const PoolGradientLaunch& l) {
  const PoolLaunch& w = l.window;
  int64_t outputs = 1;  // that cover an element
  double largest = 0;
  for (int d = 0; d < 3; ++d) {
    const int64_t reach = (w.kernel[d] - 1) * w.dilation[d];
    outputs *= reach / w.stride[d] + 1;
    largest = std::max(largest, double(w.in[d]) + double(w.padding[d]) + double(reach) + double(w.stride[d]));
  }
  if (outputs > 16 || largest > double(1 << 30) || l.planes * std::max(l.in, l.out) >= 1 << 30) return false;
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    const auto run = [&]<int M, int N>() {
      const WindowGradientArgs a(l, N, M);
      launch_independent(l.name, max_pool_backward_windows_kernel<T, M, N>,
                         linear_shape(uint64_t(a.threads()), kPoolThreads, l.stream), a, uint32_t(a.threads()));
    };
    constexpr int N = kPoolPack<T>;
    const bool packed = l.channels % N == 0 && is_aligned(l.grad) && is_aligned(l.indices) && is_aligned(l.result);
    if (packed) run.template operator()<2, N>();
    else run.template operator()<4, 1>();
  });
  return true;
}

void run_max_pool_backward(const PoolGradientLaunch& l) {
  LaunchShape shape;
  shape.stream = l.stream;
  const int64_t groups = (l.channels + kPixelChannels - 1) / kPixelChannels, blocks = l.planes / l.channels * groups;
  if (l.channels > 1 && blocks < int64_t(1) << 31) {
    shape.grid[0] = unsigned(blocks), shape.block[0] = kPixelChannels * kPixelRows;
    visit_device<kFloats>(
        l.dtype, [&]<class T>() { launch_block(l.name, max_pool_backward_pixels_kernel<T>, shape, l, groups); });
    return;
  }
  shape.grid[0] = unsigned(std::min<int64_t>(l.planes, 1 << 20)), shape.block[0] = kPoolThreads;
  visit_device<kFloats>(l.dtype, [&]<class T>() { launch_block(l.name, max_pool_backward_kernel<T>, shape, l); });
}

void run_max_pool_backward_in_any_order(const PoolGradientLaunch& l) {
  const int64_t n = l.planes * l.out;
  const LaunchShape shape = linear_shape(uint64_t(std::min<int64_t>(n, 1 << 30)), kPoolThreads, l.stream);
  visit_device<kAddedInPlace>(
      l.dtype, [&]<class T>() { launch_independent(l.name, max_pool_backward_any_kernel<T>, shape, l, n); });
}

}  // namespace vesta::cuda
