// Batch normalisation (Ioffe and Szegedy 2015). Moments are sums around a value near the mean, so that a large mean
// costs no digits, and partial moments are combined by Chan, Golub and LeVeque's formula ("Updating formulae and a
// pairwise algorithm for computing sample variances", 1979): within a block in the type of the computation, as means
// beyond a value that all its threads share, since consumer GPUs have few units for double; across blocks in double.
#include <vesta/cuda/kernels/norm.h>

#include <type_traits>

#include <vesta/cuda/kernels/rows.cuh>

namespace vesta::cuda {
namespace {

/// The number, mean and sum of squared deviations of some values.
template <class C>
struct Moments {
  C count, mean, squares;
};
template <class C>
VESTA_DEVICE Moments<C> combine(const Moments<C>& a, const Moments<C>& b) {
  const C n = a.count + b.count, d = b.mean - a.mean;
  if (n == 0) return a;
  return {n, a.mean + d * (b.count / n), a.squares + b.squares + d * d * (a.count * b.count / n)};
}
/// The sums sum(g) and sum(g (x - mean)); the third member is not used.
template <class C>
struct GradientSums {
  C sum, product, unused;
};
template <class C>
VESTA_DEVICE GradientSums<C> combine(const GradientSums<C>& a, const GradientSums<C>& b) {
  return {a.sum + b.sum, a.product + b.product, 0};
}

VESTA_DEVICE double read(const ChannelVector& v, int64_t c, double otherwise) {
  if (!v.data) return otherwise;
  const int64_t at = c * v.stride;
  switch (v.dtype) {
    case DType::float16: return double(convert<float>(reinterpret_cast<const Half*>(v.data)[at]));
    case DType::bfloat16: return double(convert<float>(reinterpret_cast<const BFloat16*>(v.data)[at]));
    case DType::float64: return reinterpret_cast<const double*>(v.data)[at];
    default: return double(reinterpret_cast<const float*>(v.data)[at]);
  }
}
VESTA_DEVICE void write(const ChannelVector& v, int64_t c, double value) {
  if (!v.data) return;
  const int64_t at = c * v.stride;
  switch (v.dtype) {
    case DType::float16: reinterpret_cast<Half*>(v.data)[at] = convert<Half>(value); return;
    case DType::bfloat16: reinterpret_cast<BFloat16*>(v.data)[at] = convert<BFloat16>(value); return;
    case DType::float64: reinterpret_cast<double*>(v.data)[at] = value; return;
    default: reinterpret_cast<float*>(v.data)[at] = float(value);
  }
}

/// The kernels' form of a launch. A block sums `width` channels: 32 where their elements lie side by side.
struct NormArgs {
  BatchNormLaunch l;
  Divider inner, channels;
  unsigned width, tiles;
  bool pack_in_run;  // the elements of a pack are of one channel
};

/// Calls f(offset) for a thread's runs of N elements of its channel and piece.
template <int N, class F>
VESTA_DEVICE void each_run(const NormArgs& a, int64_t channel, int64_t part, F f) {
  const BatchNormLaunch& l = a.l;
  const int64_t count = l.batch * l.inner, begin = part * l.piece;
  const int64_t end = begin + l.piece < count ? begin + l.piece : count;
  const unsigned lanes = kTeamThreads / a.width;
  if (channel >= l.channels) return;
  for (int64_t i = begin + int64_t(threadIdx.x / a.width) * N; i < end; i += int64_t(lanes) * N) {
    const int64_t n = a.inner.divide(i);
    f((n * l.channels + channel) * l.inner + (i - n * l.inner));
  }
}

/// Loads N neighbouring elements, in one access if addresses allow it: which thread has which depends on the shape
/// alone.
template <int N, class T>
VESTA_DEVICE void load_run(const T* x, int64_t at, bool packed, compute_of<T>* to) {
  if constexpr (N == kPack) load_columns(x, at, at + N, packed, compute_of<T>(0), to);
  else to[0] = convert<compute_of<T>>(x[at]);
}

/// Calls f with the length of runs as an integral constant: kPack where no run of that length leaves a channel.
template <class F>
VESTA_DEVICE void with_run_length(const NormArgs& a, F f) {
  if (a.pack_in_run) f(std::integral_constant<int, kPack>());
  else f(std::integral_constant<int, 1>());
}

/// Combines the threads of a channel and writes widen(result) for this piece.
template <class S, class F>
VESTA_DEVICE void write_sums(const NormArgs& a, int64_t channel, int64_t part, S s, F widen) {
  VESTA_SHARED(S, parts, kTeamThreads);
  const unsigned lane = threadIdx.x / a.width;
  parts[threadIdx.x] = s;
  for (unsigned half = kTeamThreads / a.width / 2; half > 0; half /= 2) {
    block_barrier();
    if (lane < half) parts[threadIdx.x] = s = combine(s, parts[threadIdx.x + half * a.width]);
  }
  if (lane != 0 || channel >= a.l.channels) return;
  const auto wide = widen(s);
  reinterpret_cast<std::remove_const_t<decltype(wide)>*>(a.l.sums)[channel * a.l.pieces + part] = wide;
}

template <class T>
VESTA_KERNEL void moments_kernel(NormArgs a) {
  using C = compute_of<T>;
  const int64_t part = blockIdx.x / a.tiles, channel = int64_t(blockIdx.x % a.tiles) * a.width + threadIdx.x % a.width;
  const T* x = reinterpret_cast<const T*>(a.l.x);
  C shift = 0, sum = 0, squares = 0;
  int64_t count = 0;
  with_run_length(a, [&](auto length) {
    constexpr int N = decltype(length)::value;
    each_run<N>(a, channel, part, [&](int64_t at) {
      C v[N];
      load_run<N>(x, at, a.l.packed, v);
      if (count == 0) shift = v[0];
      count += N;
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) {
        const C d = v[j] - shift;
        sum = sum + d, squares = squares + d * d;
      }
    });
  });
  // the first value of the piece, which the first thread of a channel begins with
  VESTA_SHARED(C, firsts, kTeamThreads);
  if (threadIdx.x < a.width) firsts[threadIdx.x] = shift;
  block_barrier();
  const C first = firsts[threadIdx.x % a.width];
  Moments<C> m{0, 0, 0};
  if (count) m = {C(count), (shift - first) + sum / C(count), squares - sum * (sum / C(count))};
  write_sums(a, channel, part, m, [&](const Moments<C>& s) {
    return Moments<double>{double(s.count), double(first) + double(s.mean), double(s.squares)};
  });
}

template <class T>
VESTA_KERNEL void gradient_sums_kernel(NormArgs a) {
  using C = compute_of<T>;
  const int64_t part = blockIdx.x / a.tiles, channel = int64_t(blockIdx.x % a.tiles) * a.width + threadIdx.x % a.width;
  const T *x = reinterpret_cast<const T*>(a.l.x), *g = reinterpret_cast<const T*>(a.l.grad);
  const C mean = channel < a.l.channels ? C(read(a.l.mean, channel, 0)) : C(0);
  C sum = 0, product = 0;
  with_run_length(a, [&](auto length) {
    constexpr int N = decltype(length)::value;
    each_run<N>(a, channel, part, [&](int64_t at) {
      C v[N], w[N];
      load_run<N>(g, at, a.l.packed, v);
      load_run<N>(x, at, a.l.packed, w);
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) sum = sum + v[j], product = product + v[j] * (w[j] - mean);
    });
  });
  write_sums(a, channel, part, GradientSums<C>{sum, product, C(0)},
             [](const GradientSums<C>& s) { return GradientSums<double>{double(s.sum), double(s.product), 0}; });
}

/// Combines the pieces of a channel in place, neighbours first. A warp per channel.
template <class S>
VESTA_DEVICE S combine_pieces(const NormArgs& a, int64_t channel, S s) {
  const S* parts = reinterpret_cast<const S*>(a.l.sums) + channel * a.l.pieces;
  if (channel < a.l.channels) {
    for (int64_t p = lane_index(); p < a.l.pieces; p += 32) s = combine(s, parts[p]);
  }
  for (unsigned step = 16; step > 0; step /= 2) {
    const unsigned other = lane_index() ^ step;
    S w;  // three doubles, each shuffled by itself
    double *to = reinterpret_cast<double*>(&w), *from = reinterpret_cast<double*>(&s);
    for (int i = 0; i < 3; ++i) to[i] = shuffle(from[i], other);
    s = lane_index() < other ? combine(s, w) : combine(w, s);
  }
  return s;
}

/// Computes for each channel its statistics, the running ones, and the map.
VESTA_KERNEL void statistics_kernel(NormArgs a) {
  const BatchNormLaunch& l = a.l;
  const int64_t c = int64_t(blockIdx.x) * (kTeamThreads / 32) + warp_index();
  Moments<double> m{0, 0, 0};
  if (l.training) m = combine_pieces(a, c, m);
  if (c >= l.channels || lane_index() != 0) return;
  double mean = read(l.running_mean, c, 0), variance = read(l.running_var, c, 1);
  if (l.training) {
    const double count = double(l.batch) * double(l.inner), old_mean = mean, old_variance = variance;
    mean = count > 0 ? m.mean : 0.0 / count;
    variance = m.squares / count;
    if (l.update) {
      write(l.running_mean, c, (1 - l.momentum) * old_mean + l.momentum * mean);
      write(l.running_var, c, (1 - l.momentum) * old_variance + l.momentum * (variance * count / (count - 1)));
    }
  }
  const double inverse = 1 / math::sqrt(variance + l.eps), scale = inverse * read(l.weight, c, 1);
  write(l.mean, c, mean);
  write(l.invstd, c, inverse);
  // What is subtracted is a number of the dtype of statistics: large means cost no digits.
  const double center = read(l.mean, c, 0), rest = mean - center;
  l.map[4 * c] = center, l.map[4 * c + 1] = scale;
  l.map[4 * c + 2] = read(l.bias, c, 0) - (math::isfinite(center) ? rest * scale : 0);
}

// With x^ = (x - mean) * invstd and m elements a channel:
//   d bias = sum g,  d weight = sum g x^,
//   dx = weight * invstd * (g - sum(g) / m - x^ * sum(g x^) / m)   in training,  weight * invstd * g  otherwise.
VESTA_KERNEL void gradient_statistics_kernel(NormArgs a) {
  const BatchNormLaunch& l = a.l;
  const int64_t c = int64_t(blockIdx.x) * (kTeamThreads / 32) + warp_index();
  const GradientSums<double> s = combine_pieces(a, c, GradientSums<double>{0, 0, 0});
  if (c >= l.channels || lane_index() != 0) return;
  const double mean = read(l.mean, c, 0), inverse = read(l.invstd, c, 1), count = double(l.batch) * double(l.inner);
  write(l.weight_gradient, c, count > 0 ? s.product * inverse : 0);
  write(l.bias_gradient, c, s.sum);
  const double scale = inverse * read(l.weight, c, 1);
  double slope = 0, offset = 0;
  if (l.training) {
    slope = -scale * s.product * inverse * inverse / count;
    offset = -scale * s.sum / count;
  }
  l.map[4 * c] = mean, l.map[4 * c + 1] = scale, l.map[4 * c + 2] = slope, l.map[4 * c + 3] = offset;
}

/// Maps four neighbouring elements per thread (BatchNormLaunch::map).
template <class T, bool gradient>
VESTA_KERNEL void map_kernel(NormArgs a) {
  using C = compute_of<T>;
  const BatchNormLaunch& l = a.l;
  const int64_t total = l.batch * l.channels * l.inner;
  const int64_t first = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * kPack;
  if (first >= total) return;
  C x[kPack], g[kPack] = {};
  load_columns(reinterpret_cast<const T*>(l.x), first, total, l.packed, C(0), x);
  if constexpr (gradient) load_columns(reinterpret_cast<const T*>(l.grad), first, total, l.packed, C(0), g);
  const double* map = nullptr;
  VESTA_UNROLL
  for (int j = 0; j < kPack; ++j) {
    if (j == 0 || !a.pack_in_run) {
      const int64_t run = a.inner.divide(first + j);
      map = l.map + 4 * (run - a.channels.divide(run) * l.channels);
    }
    const C d = x[j] - C(map[0]);
    if constexpr (gradient) {
      const C of_x = l.training ? d * C(map[2]) : C(0);  // in evaluation x has no part, NaN or not
      x[j] = g[j] * C(map[1]) + of_x + C(map[3]);
    } else x[j] = d * C(map[1]) + C(map[2]);
  }
  store_columns(reinterpret_cast<T*>(l.y), first, total, l.packed, x);
}

}  // namespace

void batch_norm(const BatchNormLaunch& l) {
  NormArgs a{l,
             Divider(l.inner > 0 ? l.inner : 1),
             Divider(l.channels > 0 ? l.channels : 1),
             l.inner == 1 ? 32u : 1u,
             0,
             l.inner % kPack == 0};
  a.tiles = unsigned((l.channels + a.width - 1) / a.width);
  const LaunchShape sums = linear_shape(uint64_t(a.tiles) * uint64_t(l.pieces) * kTeamThreads, kTeamThreads, l.stream);
  const LaunchShape channels = linear_shape(uint64_t(l.channels) * 32, kTeamThreads, l.stream);
  const uint64_t elements = uint64_t(l.batch) * uint64_t(l.channels) * uint64_t(l.inner);
  const LaunchShape all = linear_shape((elements + kPack - 1) / kPack, kTeamThreads, l.stream);
  if (l.channels == 0) return;
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    if (l.weight_gradient.data) {  // of an empty batch there is no memory of grad
      launch_block("_batch_norm_backward", gradient_sums_kernel<T>, sums, a);
      launch_block("_batch_norm_backward", gradient_statistics_kernel, channels, a);
      if (elements) launch_independent("_batch_norm_backward", map_kernel<T, true>, all, a);
      return;
    }
    if (l.training) launch_block("batch_norm", moments_kernel<T>, sums, a);
    launch_block("batch_norm", statistics_kernel, channels, a);
    if (elements) launch_independent("batch_norm", map_kernel<T, false>, all, a);
  });
}

}  // namespace vesta::cuda
