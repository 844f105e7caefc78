// Batch normalisation (Ioffe and Szegedy 2015). Moments are sums around a value near the mean, so that a large mean
// costs no digits, and partial moments are combined by Chan, Golub and LeVeque's formula ("Updating formulae and a
// pairwise algorithm for computing sample variances", 1979): within a block in the type of the computation, as means
// beyond a value that all its threads share, since consumer GPUs have few units for double; across blocks in double.
#include <vesta/cuda/kernels/norm.h>

#include <type_traits>

#include <vesta/cuda/kernels/norm_sums.cuh>

namespace vesta::cuda {
namespace {

/// The number, mean and sum of squared deviations of some values.
template <class C>
struct Moments {
  C count, mean, squares;
};
template <class C>
VESTA_DEVICE Moments<C> combine(const Moments<C>& a, const Moments<C>& b) {
  const C n = a.count + b.count, d = b.mean - a.mean, squares = a.squares + b.squares;
  if (a.count == b.count) return {n, a.mean + d * C(0.5), squares + d * d * (a.count * C(0.5))};  // no division
  if (b.count == 0) return a;  // though d overflow
  return {n, a.mean + d * (b.count / n), squares + d * d * (a.count * b.count / n)};
}
/// The sums sum(g) and sum(g (x - mean)).
template <class C>
VESTA_DEVICE Pair<C> combine(const Pair<C>& a, const Pair<C>& b) {
  return add_pairs(a, b);
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

/// Elements that a thread loads and stores at once: 16 bytes of neighbouring channels or of the flat tensor, and four
/// neighbours of one channel.
template <class T>
constexpr int kWidePack = int(16 / sizeof(T));
constexpr int kRunPack = 4;
/// Packs of the same channels that a thread maps.
template <class T, bool gradient>
constexpr int kTurns = gradient && sizeof(T) == 2 ? 2 : 4;

/// The kernels' form of a launch. A block sums `width` channels side by side, or packs of channels; `tiles` blocks have
/// all channels of a piece.
struct NormArgs {
  BatchNormLaunch l;
  Divider inner, channels;
  unsigned width, tiles;
  bool pack_in_run;  // the elements of a flat pack are of one channel
  Divider image_runs;  // runs of `inner` elements of an image
  int64_t stride = 0;  // threads that map an image's pixels, a multiple of the packs of a pixel
  unsigned blocks = 0;  // of these
};

/// Loads N neighbouring elements, which exist, as they are, in one access if addresses allow it: which thread has which
/// depends on the shape alone.
template <int N, class T>
VESTA_DEVICE Elements<T, N> loaded(const T* x, int64_t at, bool packed) {
  if (N > 1 && packed) return *reinterpret_cast<const Elements<T, N>*>(x + at);
  Elements<T, N> pack;
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) pack.v[j] = x[at + j];
  return pack;
}

/// Stores N neighbouring elements in the same way.
template <int N, class T>
VESTA_DEVICE void store(T* y, int64_t at, bool packed, const Elements<T, N>& pack) {
  if (N > 1 && packed) {
    *reinterpret_cast<Elements<T, N>*>(y + at) = pack;
    return;
  }
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) y[at + j] = pack.v[j];
}

/// What a thread of the sums has: K channels from `channel` on, of a piece of their elements. It reads N elements at
/// once: of one channel (K = 1), or one of each of its channels (K = N, in pixels).
template <int N, int K>
struct Part {
  int64_t channel, piece;
  unsigned lane, lanes;
  VESTA_DEVICE explicit Part(const NormArgs& a)
      : channel((int64_t(blockIdx.x % a.tiles) * a.width + threadIdx.x % a.width) * K),
        piece(blockIdx.x / a.tiles),
        lane(threadIdx.x / a.width),
        lanes(kTeamThreads / a.width) {}
  /// Calls use(load(offset)) for each pack, in order; `ahead` packs are loaded before the first is used.
  template <int ahead, class Load, class Use>
  VESTA_DEVICE void each(const NormArgs& a, Load load, Use use) const {
    constexpr int kStep = K > 1 ? 1 : N;
    const BatchNormLaunch& l = a.l;
    const int64_t count = l.batch * l.inner, begin = piece * l.piece;
    const int64_t end = begin + l.piece < count ? begin + l.piece : count;
    if (channel >= l.channels) return;
    const auto offset = [&](int64_t i) {
      if constexpr (K > 1) {
        return i * l.channels + channel;
      } else {
        const int64_t n = a.inner.divide(i);
        return (n * l.channels + channel) * l.inner + (i - n * l.inner);
      }
    };
    const int64_t stride = int64_t(lanes) * kStep;
    int64_t i = begin + int64_t(lane) * kStep;
    decltype(load(i)) packs[ahead];
    VESTA_ROLLED
    for (; i + (ahead - 1) * stride < end; i += ahead * stride) {
      VESTA_UNROLL
      for (int k = 0; k < ahead; ++k) packs[k] = load(offset(i + k * stride));
      VESTA_UNROLL
      for (int k = 0; k < ahead; ++k) use(packs[k]);
    }
    if (i >= end) return;
    VESTA_UNROLL
    for (int k = 0; k < ahead - 1; ++k) {
      if (i + k * stride < end) packs[k] = load(offset(i + k * stride));
    }
    VESTA_UNROLL
    for (int k = 0; k < ahead - 1; ++k) {
      if (i + k * stride < end) use(packs[k]);
    }
  }
  /// Returns whether this thread has what the threads of its channels combine to.
  VESTA_DEVICE bool has_result(const NormArgs& a) const { return lane == 0 && channel < a.l.channels; }
  /// Combines the threads of each channel. A barrier must stand between two calls.
  template <class S>
  VESTA_DEVICE void combine_threads(const NormArgs& a, S* s) const {
    VESTA_SHARED(S, parts, K * kTeamThreads);
    VESTA_UNROLL
    for (int j = 0; j < K; ++j) parts[j * kTeamThreads + threadIdx.x] = s[j];
    for (unsigned half = lanes / 2; half > 0; half /= 2) {
      block_barrier();
      if (lane < half) {
        VESTA_UNROLL
        for (int j = 0; j < K; ++j) {
          S* mine = parts + j * kTeamThreads + threadIdx.x;
          *mine = s[j] = combine(s[j], mine[half * a.width]);
        }
      }
    }
  }
  /// Writes widen(number of the channel within the thread, result).
  template <class S, class F>
  VESTA_DEVICE void write(const NormArgs& a, const S* s, F widen) const {
    if (!has_result(a)) return;
    VESTA_UNROLL
    for (int j = 0; j < K; ++j) {
      const auto wide = widen(j, s[j]);
      reinterpret_cast<std::remove_const_t<decltype(wide)>*>(a.l.sums)[(channel + j) * a.l.pieces + piece] = wide;
    }
  }
};

// What float cannot hold the squares of is summed once more, made smaller by a power of two: deviations from 2^48 on.
constexpr float kFarMean = 0x1p48f, kFarSquares = 0x1p96f, kNearer = 0x1p-80f;

/// The sums of a thread over its elements of K channels: around the first one, in units of 1 / scale.
template <class C, int K>
struct ShiftedSums {
  C shift[K] = {}, sum[K] = {}, squares[K] = {};
  int64_t count = 0;
  template <int N, class T>
  VESTA_DEVICE void add(const Elements<T, N>& pack, C scale) {
    C v[N];
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) v[j] = convert<C>(pack.v[j]) * scale;
    if (count == 0) {
      VESTA_UNROLL
      for (int j = 0; j < K; ++j) shift[j] = v[j];
    }
    count += K > 1 ? 1 : N;
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      const int k = K > 1 ? j : 0;
      const C d = v[j] - shift[k];
      sum[k] = sum[k] + d, squares[k] = squares[k] + d * d;
    }
  }
  /// Makes moments around `first` of them.
  VESTA_DEVICE void moments(const C* first, Moments<C>* m) const {
    const C weight = count ? C(1) / C(count) : C(0);
    VESTA_UNROLL
    for (int j = 0; j < K; ++j) {
      const C rest = sum[j] * weight;
      // what is too large for the type stays infinite
      const C around = math::isfinite(squares[j]) ? squares[j] - sum[j] * rest : squares[j];
      m[j] = {C(count), count ? (shift[j] - first[j]) + rest : C(0), around};
    }
  }
};

template <class T, int N, int K>
VESTA_KERNEL void moments_kernel(NormArgs a) {
  using C = compute_of<T>;
  const Part<N, K> part(a);
  const T* x = reinterpret_cast<const T*>(a.l.x);
  const auto load = [&](int64_t at) { return loaded<N>(x, at, a.l.packed); };
  ShiftedSums<C, K> sums;
  part.template each<8>(a, load, [&](const Elements<T, N>& pack) { sums.add(pack, C(1)); });
  // the first values of the piece, which the first thread of a channel begins with
  VESTA_SHARED(C, firsts, kTeamThreads);
  const auto share_firsts = [&] {
    if (threadIdx.x < a.width) {
      VESTA_UNROLL
      for (int j = 0; j < K; ++j) firsts[threadIdx.x * K + j] = sums.shift[j];
    }
    block_barrier();
  };
  share_firsts();
  const C* first = firsts + threadIdx.x % a.width * K;
  Moments<C> m[K];
  sums.moments(first, m);
  part.combine_threads(a, m);
  C begin[K];
  double unit[K];
  VESTA_UNROLL
  for (int j = 0; j < K; ++j) begin[j] = first[j], unit[j] = 1;
  if constexpr (std::is_same_v<C, float> && !std::is_same_v<T, Half>) {  // no float16 is that large
    bool far[K], any = false;  // of each channel by itself: in its unit, those beside it would be lost
    VESTA_UNROLL
    for (int j = 0; j < K; ++j) {
      const C squares = m[j].squares, mean = m[j].mean;
      far[j] = part.has_result(a) && !(squares < kFarSquares && mean < kFarMean && mean > -kFarMean);
      any = any || far[j];
    }
    if (block_any(any)) {
      sums = {};
      part.template each<1>(a, load, [&](const Elements<T, N>& pack) { sums.add(pack, kNearer); });
      share_firsts();
      Moments<C> nearer[K];
      sums.moments(first, nearer);
      part.combine_threads(a, nearer);
      VESTA_UNROLL
      for (int j = 0; j < K; ++j) {
        if (far[j]) m[j] = nearer[j], begin[j] = first[j], unit[j] = 1 / double(kNearer);
      }
    }
  }
  part.write(a, m, [&](int j, const Moments<C>& s) {
    return Moments<double>{double(s.count), (double(begin[j]) + double(s.mean)) * unit[j],
                           double(s.squares) * (unit[j] * unit[j])};
  });
}

/// Maps an element, with a channel's four numbers (BatchNormLaunch::map).
template <bool gradient, class C>
VESTA_DEVICE C mapped(bool training, C x, C g, C center, C scale, C third, C fourth) {
  const C d = x - center;
  if constexpr (gradient) {
    const C rest = training ? multiply_add(d, third, fourth) : fourth;  // in evaluation x has no part, NaN or not
    return multiply_add(g, scale, rest);
  } else return multiply_add(d, scale, third);
}

/// Sums over pieces. In evaluation the gradient of x needs no sum: `maps` writes it on the way.
template <class T, int N, int K, bool maps>
VESTA_KERNEL void gradient_sums_kernel(NormArgs a) {
  using C = compute_of<T>;
  const Part<N, K> part(a);
  const T *x = reinterpret_cast<const T*>(a.l.x), *g = reinterpret_cast<const T*>(a.l.grad);
  C mean[K], scale[maps ? K : 1];
  Pair<C> s[K];
  VESTA_UNROLL
  for (int j = 0; j < K; ++j) {
    const bool exists = part.channel < a.l.channels;
    mean[j] = exists ? C(read(a.l.mean, part.channel + j, 0)) : C(0);
    if constexpr (maps) {
      scale[j] = exists ? C(read(a.l.invstd, part.channel + j, 1) * read(a.l.weight, part.channel + j, 1)) : C(0);
    }
    s[j] = {0, 0};
  }
  struct Both {
    Elements<T, N> g, x;
    int64_t at;
  };
  const auto load = [&](int64_t at) { return Both{loaded<N>(g, at, a.l.packed), loaded<N>(x, at, a.l.packed), at}; };
  part.template each<4>(a, load, [&](const Both& packs) {
    Elements<T, N> r;
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      const int k = K > 1 ? j : 0;
      const C v = convert<C>(packs.g.v[j]), w = convert<C>(packs.x.v[j]);
      s[k].a = s[k].a + v, s[k].b = s[k].b + v * (w - mean[k]);
      if constexpr (maps) r.v[j] = convert<T>(mapped<true>(false, w, v, mean[k], scale[k], C(0), C(0)));
    }
    if constexpr (maps) store(reinterpret_cast<T*>(a.l.y), packs.at, a.l.packed, r);
  });
  part.combine_threads(a, s);
  part.write(a, s, [](int, const Pair<C>& t) { return Pair<double>{double(t.a), double(t.b)}; });
}

/// The pieces of a team's channel; a thread holds its first four.
template <class S, class Team>
class Pieces {
  static constexpr int kHeld = 4;
  const Team& team_;
  const S* parts_;
  int64_t count_;
  S held_[kHeld];
  VESTA_DEVICE void load(int64_t first, S* to) const {
    VESTA_UNROLL
    for (int k = 0; k < kHeld; ++k) {
      const int64_t p = first + k * int64_t(team_.size);
      to[k] = p < count_ ? parts_[p] : S{};
    }
  }

 public:
  VESTA_DEVICE Pieces(const Team& team, const BatchNormLaunch& l, int64_t channel)
      : team_(team),
        parts_(reinterpret_cast<const S*>(l.sums) + channel * l.pieces),
        count_(channel < l.channels ? l.pieces : 0) {
    load(team.rank, held_);
  }
  /// Returns the sum of f(piece); every member of the team gets it.
  template <class F>
  VESTA_DEVICE double sum(F f) const {
    double sum = 0;
    VESTA_UNROLL
    for (int k = 0; k < kHeld; ++k) sum = sum + f(held_[k]);
    const int64_t step = int64_t(team_.size) * kHeld;
    for (int64_t first = int64_t(team_.rank) + step; first < count_; first += step) {
      S some[kHeld];
      load(first, some);
      VESTA_UNROLL
      for (int k = 0; k < kHeld; ++k) sum = sum + f(some[k]);
    }
    return team_.reduce(sum, [](double p, double q) { return p + q; });
  }
};

/// Combines the pieces of a channel: first their mean, then the squares around it.
template <class Team>
VESTA_DEVICE Moments<double> moments_of_pieces(const Team& team, const BatchNormLaunch& l, int64_t channel) {
  const Pieces<Moments<double>, Team> pieces(team, l, channel);
  const double count = double(l.batch) * double(l.inner), weight = 1 / count;
  const double mean = pieces.sum([&](const Moments<double>& m) { return m.mean * (m.count * weight); });
  const double squares = pieces.sum([&](const Moments<double>& m) {
    const double d = m.mean - mean;
    return m.count > 0 ? m.squares + d * d * m.count : 0;
  });
  return {count, mean, squares};
}
template <class Team>
VESTA_DEVICE Pair<double> gradient_sums_of_pieces(const Team& team, const BatchNormLaunch& l, int64_t channel) {
  const Pieces<Pair<double>, Team> pieces(team, l, channel);
  const double sum = pieces.sum([](const Pair<double>& s) { return s.a; });
  return {sum, pieces.sum([](const Pair<double>& s) { return s.b; })};
}

/// A channel's numbers in BatchNormLaunch::map.
struct MapEntry {
  double v[4];
};
template <class C>
VESTA_DEVICE void write_map(const BatchNormLaunch& l, int64_t c, const MapEntry& entry) {
  C* map = reinterpret_cast<C*>(l.map);
  VESTA_UNROLL
  for (int k = 0; k < 4; ++k) map[k * l.channels + c] = C(entry.v[k]);
}

/// Computes for each channel its statistics, the running ones, and the map.
template <class C, class Team>
VESTA_KERNEL void statistics_kernel(NormArgs a) {
  const BatchNormLaunch& l = a.l;
  const Team team(32);
  const int64_t c = int64_t(team.row);
  Moments<double> m{0, 0, 0};
  double mean = 0, variance = 1, weight = 1, bias = 0;
  const bool writes = c < l.channels && team.rank == 0;
  if (writes) {  // on the way while the pieces are
    mean = read(l.running_mean, c, 0), variance = read(l.running_var, c, 1);
    weight = read(l.weight, c, 1), bias = read(l.bias, c, 0);
  }
  if (l.training) m = moments_of_pieces(team, l, c);
  if (!writes) return;
  if (l.training) {
    const double count = double(l.batch) * double(l.inner), old_mean = mean, old_variance = variance;
    mean = count > 0 ? m.mean : 0.0 / count;
    variance = m.squares / count;
    if (l.update) {
      write(l.running_mean, c, (1 - l.momentum) * old_mean + l.momentum * mean);
      write(l.running_var, c, (1 - l.momentum) * old_variance + l.momentum * (variance * count / (count - 1)));
    }
  }
  const double inverse = 1 / math::sqrt(variance + l.eps), scale = inverse * weight;
  write(l.mean, c, mean);
  write(l.invstd, c, inverse);
  // What is subtracted is a number of the dtype of statistics: large means cost no digits.
  const double center = read(l.mean, c, 0), rest = mean - center;
  write_map<C>(l, c, {center, scale, bias - (math::isfinite(center) ? rest * scale : 0), 0});
}

// With x^ = (x - mean) * invstd and m elements a channel:
//   d bias = sum g,  d weight = sum g x^,
//   dx = weight * invstd * (g - sum(g) / m - x^ * sum(g x^) / m)   in training,  weight * invstd * g  otherwise.
template <class C, class Team>
VESTA_KERNEL void gradient_statistics_kernel(NormArgs a) {
  const BatchNormLaunch& l = a.l;
  const Team team(32);
  const int64_t c = int64_t(team.row);
  double mean = 0, inverse = 1, weight = 1;
  const bool writes = c < l.channels && team.rank == 0;
  if (writes) {  // on the way while the pieces are
    mean = read(l.mean, c, 0), inverse = read(l.invstd, c, 1), weight = read(l.weight, c, 1);
  }
  const Pair<double> s = gradient_sums_of_pieces(team, l, c);
  if (!writes) return;
  const double count = double(l.batch) * double(l.inner);
  write(l.weight_gradient, c, count > 0 ? s.b * inverse : 0);
  write(l.bias_gradient, c, s.a);
  const double scale = inverse * weight;
  double slope = 0, offset = 0;
  if (l.training) {
    slope = -scale * s.b * inverse * inverse / count;
    offset = -scale * s.a / count;
  }
  write_map<C>(l, c, {mean, scale, slope, offset});
}

/// Maps pixels, whose channels are a multiple of a pack: a thread has the same channels in each of its packs, and loads
/// these all before it stores one.
template <class T, bool gradient>
VESTA_KERNEL void map_pixels_kernel(NormArgs a) {
  using C = compute_of<T>;
  constexpr int N = kWidePack<T>, kPacks = kTurns<T, gradient>;
  const BatchNormLaunch& l = a.l;
  const unsigned image = l.images == 1 ? 0 : blockIdx.x / a.blocks;
  const int64_t t = int64_t(blockIdx.x - image * a.blocks) * blockDim.x + threadIdx.x;
  const int64_t packs = a.image_runs.divisor / N, before = image * packs, rows = l.images * l.channels;
  if (t >= a.stride) return;
  const int64_t channel = image * l.channels + (t - a.channels.divide(t) * a.channels.divisor) * N;
  const C* map = reinterpret_cast<const C*>(l.map);
  C numbers[4][N];
  VESTA_UNROLL
  for (int k = 0; k < (gradient ? 4 : 3); ++k) {
    load_columns<N>(map, k * rows + channel, 4 * rows, true, C(0), numbers[k]);
  }
  Elements<T, N> x[kPacks], g[gradient ? kPacks : 1];
  VESTA_UNROLL
  for (int k = 0; k < kPacks; ++k) {
    const int64_t pack = t + k * a.stride;
    if (pack >= packs) continue;
    x[k] = reinterpret_cast<const Elements<T, N>*>(l.x)[before + pack];
    if constexpr (gradient) g[k] = reinterpret_cast<const Elements<T, N>*>(l.grad)[before + pack];
  }
  VESTA_UNROLL
  for (int k = 0; k < kPacks; ++k) {
    const int64_t pack = t + k * a.stride;
    if (pack >= packs) continue;
    Elements<T, N> y;
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      y.v[j] =
          convert<T>(mapped<gradient>(l.training, convert<C>(x[k].v[j]), gradient ? convert<C>(g[k].v[j]) : C(0),
                                      numbers[0][j], numbers[1][j], numbers[2][j], gradient ? numbers[3][j] : C(0)));
    }
    reinterpret_cast<Elements<T, N>*>(l.y)[before + pack] = y;
  }
}

/// Maps a pack of neighbouring elements per thread, of any shape.
template <class T, bool gradient>
VESTA_KERNEL void map_kernel(NormArgs a) {
  using C = compute_of<T>;
  constexpr int N = kWidePack<T>;
  const BatchNormLaunch& l = a.l;
  const int64_t total = l.batch * l.channels * l.inner;
  const int64_t first = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (first >= total) return;
  C x[N], g[N] = {};
  load_columns<N>(reinterpret_cast<const T*>(l.x), first, total, l.packed, C(0), x);
  if constexpr (gradient) load_columns<N>(reinterpret_cast<const T*>(l.grad), first, total, l.packed, C(0), g);
  const C* map = nullptr;
  const int64_t rows = l.images * l.channels;
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) {
    if (j == 0 || !a.pack_in_run) {
      const int64_t run = a.inner.divide(first + j), image = l.images == 1 ? 0 : a.image_runs.divide(run);
      map = reinterpret_cast<const C*>(l.map) + (image * l.channels + run - a.channels.divide(run) * l.channels);
    }
    x[j] = mapped<gradient>(l.training, x[j], g[j], map[0], map[rows], map[2 * rows], gradient ? map[3 * rows] : C(0));
  }
  store_columns<N>(reinterpret_cast<T*>(l.y), first, total, l.packed, x);
}

/// Queues the map.
template <class T, bool gradient>
void map_elements(const char* name, NormArgs a) {
  constexpr int N = kWidePack<T>;
  const BatchNormLaunch& l = a.l;
  const int64_t elements = l.batch * l.channels * l.inner;
  if (elements == 0) return;
  if (l.inner == 1 && l.channels % N == 0 && l.packed) {
    const int64_t packs = elements / N / l.images, groups = l.channels / N;
    a.channels = Divider(groups);
    constexpr int kPacks = kTurns<T, gradient>;
    a.stride = ((packs + kPacks - 1) / kPacks + groups - 1) / groups * groups;
    a.blocks = unsigned((a.stride + kTeamThreads - 1) / kTeamThreads);
    const LaunchShape shape =
        linear_shape(uint64_t(a.blocks) * uint64_t(l.images) * kTeamThreads, kTeamThreads, l.stream);
    return launch_independent(name, map_pixels_kernel<T, gradient>, shape, a);
  }
  const LaunchShape shape = linear_shape(uint64_t(elements + N - 1) / N, kTeamThreads, l.stream);
  launch_independent(name, map_kernel<T, gradient>, shape, a);
}

/// Queues the sums over pieces; in evaluation with the gradient of x.
template <class T, bool gradient, bool training>
void sum_pieces(const char* name, NormArgs a) {
  constexpr int kWide = kWidePack<T>;
  const BatchNormLaunch& l = a.l;
  const auto queue = [&]<int N, int K>() {
    const int64_t groups = (l.channels + K - 1) / K;
    a.width = 1;
    while (l.inner == 1 && a.width < 32 && a.width < groups) a.width *= 2;
    a.tiles = unsigned((groups + a.width - 1) / a.width);
    const uint64_t blocks = uint64_t(a.tiles) * uint64_t(l.pieces);
    const LaunchShape shape = linear_shape(blocks * kTeamThreads, kTeamThreads, l.stream);
    if constexpr (gradient && training) launch_block(name, gradient_sums_kernel<T, N, K, false>, shape, a);
    else if constexpr (gradient) launch_block(name, gradient_sums_kernel<T, N, K, true>, shape, a);
    else launch_block(name, moments_kernel<T, N, K>, shape, a);
  };
  if (l.inner == 1 && l.channels % kWide == 0) queue.template operator()<kWide, kWide>();
  else if (l.inner % kRunPack == 0) queue.template operator()<kRunPack, 1>();
  else queue.template operator()<1, 1>();
}

template <class T>
NormArgs args_of(const BatchNormLaunch& l) {
  const int64_t inner = l.inner > 0 ? l.inner : 1, runs = l.batch / l.images * l.channels;
  return {l, Divider(inner), Divider(l.channels), 1, 1, l.inner % kWidePack<T> == 0, Divider(runs > 0 ? runs : 1)};
}

}  // namespace

void map_normalized(const char* name, const BatchNormLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    if (l.grad) map_elements<T, true>(name, args_of<T>(l));
    else map_elements<T, false>(name, args_of<T>(l));
  });
}

void batch_norm(const BatchNormLaunch& l) {
  if (l.channels == 0) return;
  const bool gradient = l.weight_gradient.data != nullptr;
  const char* const name = gradient ? "_batch_norm_backward" : "batch_norm";
  const bool by_block = l.pieces > 128 && (gradient || l.training);  // a warp loads 128 pieces at once
  const LaunchShape channels = team_shape(uint64_t(l.channels), by_block ? kTeamThreads : 32, l.stream);
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    using C = compute_of<T>;
    const NormArgs a = args_of<T>(l);
    if (gradient) {
      if (l.training) sum_pieces<T, true, true>(name, a);
      else sum_pieces<T, true, false>(name, a);
      if (by_block) launch_block(name, gradient_statistics_kernel<C, BlockTeam>, channels, a);
      else launch_block(name, gradient_statistics_kernel<C, GroupTeam>, channels, a);
      if (l.training) map_elements<T, true>(name, a);
    } else {
      if (l.training) sum_pieces<T, false, true>(name, a);
      if (by_block) launch_block(name, statistics_kernel<C, BlockTeam>, channels, a);
      else launch_block(name, statistics_kernel<C, GroupTeam>, channels, a);
      map_elements<T, false>(name, a);
    }
  });
}

}  // namespace vesta::cuda
