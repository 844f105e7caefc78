// Group normalisation (Wu and He 2018), in one of two ways (GroupNormLaunch). Both read contiguous inputs and those
// with channels last 16 bytes at a time, and sum them in the same order: the same bits.
//
// By a team, a thread takes squares of four channels times four positions. In three steps, sums are made by
// accumulators: each has every group_lanes-th position of a piece of a channel. A pack is of that many accumulators'
// elements in either format: neighbouring positions of a channel, or one position of neighbouring channels.
#include <vesta/cuda/kernels/group_norm.h>
#include <vesta/cuda/kernels/norm_sums.cuh>

namespace vesta::cuda {
namespace {

constexpr int kSide = int(kGroupTile);

template <class T>
struct GroupNormArgs {
  using C = compute_of<T>;
  const T *x, *grad;
  T* y;
  C *mean, *rstd;
  ColumnVector<T> weight, bias;
  int64_t images, channels, inner, groups, depth;  // depth: channels of a group
  Divider by_group, by_channel_tile;
  int64_t channel_tiles, position_tiles;           // of a group
  bool channels_last, packed;
  C eps;
  unsigned width;
  unsigned* counters;
  C *parts, *weight_gradient, *bias_gradient;
  int64_t piece, pieces;
  unsigned channel_blocks;  // of four channels, of all groups
};

/// The values of a tile, [channel][position].
template <class C>
struct Tile {
  C v[kSide][kSide];
};

/// A tile of an image: its channels [channel, channel + channels), positions [position, position + positions).
template <class T>
struct Place {
  using C = compute_of<T>;
  int64_t at, channel;  // of the first element; in all channels
  int64_t next_channel, next_position;
  int channels, positions;
  bool packed, last;

  VESTA_DEVICE Place(const GroupNormArgs<T>& a, int64_t image, int64_t first, int64_t end, int64_t position)
      : channel(first), packed(a.packed), last(a.channels_last) {
    next_channel = last ? 1 : a.inner, next_position = last ? a.channels : 1;
    at = image * a.channels * a.inner + first * next_channel + position * next_position;
    channels = int(end - first < kSide ? end - first : kSide);
    positions = int(a.inner - position < kSide ? a.inner - position : kSide);
    packed = packed && (last ? channels : positions) == kSide;
  }
  VESTA_DEVICE bool holds(int c, int p) const { return c < channels && p < positions; }
  /// Loads the tile; what is missing is 0.
  VESTA_DEVICE void load(const T* from, Tile<C>& to) const {
    Tile<C> rows;  // as they lie in memory
    VESTA_UNROLL
    for (int i = 0; i < kSide; ++i) {
      const bool row = i < (last ? positions : channels);
      const T* p = from + at + i * (last ? next_position : next_channel);
      if (packed && row) {
        const auto pack = *reinterpret_cast<const Elements<T, kSide>*>(p);
        VESTA_UNROLL
        for (int j = 0; j < kSide; ++j) rows.v[i][j] = convert<C>(pack.v[j]);
      } else {
        VESTA_UNROLL
        for (int j = 0; j < kSide; ++j) {
          rows.v[i][j] = row && j < (last ? channels : positions) ? convert<C>(p[j]) : C(0);
        }
      }
    }
    VESTA_UNROLL
    for (int c = 0; c < kSide; ++c) {
      VESTA_UNROLL
      for (int p = 0; p < kSide; ++p) to.v[c][p] = last ? rows.v[p][c] : rows.v[c][p];
    }
  }
  VESTA_DEVICE void store(T* to, const Tile<C>& from) const {
    VESTA_UNROLL
    for (int i = 0; i < kSide; ++i) {
      if (i >= (last ? positions : channels)) continue;
      T* p = to + at + i * (last ? next_position : next_channel);
      Elements<T, kSide> pack;
      VESTA_UNROLL
      for (int j = 0; j < kSide; ++j) pack.v[j] = convert<T>(last ? from.v[j][i] : from.v[i][j]);
      if (packed) {
        *reinterpret_cast<Elements<T, kSide>*>(p) = pack;
        continue;
      }
      VESTA_UNROLL
      for (int j = 0; j < kSide; ++j) {
        if (j < (last ? channels : positions)) p[j] = pack.v[j];
      }
    }
  }
  /// Loads what the channels of the tile have of a vector.
  VESTA_DEVICE void load(const ColumnVector<T>& from, C* to) const {
    VESTA_UNROLL
    for (int c = 0; c < kSide; ++c) to[c] = c < channels ? from[channel + c] : C(0);
  }
};

/// Calls f(place) for the tiles of a group that a member of a team has.
template <class T, class F>
VESTA_DEVICE void each_tile(const GroupNormArgs<T>& a, const GroupOrBlock& team, F f) {
  if (int64_t(team.row) >= a.images * a.groups) return;
  const int64_t image = a.by_group.divide(int64_t(team.row)), group = int64_t(team.row) - image * a.groups;
  const int64_t begin = group * a.depth;
  for (int64_t i = team.rank; i < a.channel_tiles * a.position_tiles; i += team.size) {
    const int64_t position = a.by_channel_tile.divide(i), channel = i - position * a.channel_tiles;
    f(Place<T>(a, image, begin + channel * kSide, begin + a.depth, position * kSide));
  }
}

template <class T>
VESTA_KERNEL void group_norm_kernel(GroupNormArgs<T> a) {
  using C = compute_of<T>;
  const GroupOrBlock team(a.width);
  const C n = C(a.depth * a.inner);
  C sum = 0;
  Tile<C> t;
  each_tile(a, team, [&](const Place<T>& place) {
    place.load(a.x, t);
    VESTA_UNROLL
    for (int c = 0; c < kSide; ++c) sum = sum + ((t.v[c][0] + t.v[c][1]) + (t.v[c][2] + t.v[c][3]));
  });
  const C mean = team.reduce(sum, [](C p, C q) { return p + q; }) / n;
  Pair<C> s{C(0), C(0)};
  each_tile(a, team, [&](const Place<T>& place) {
    place.load(a.x, t);
    VESTA_UNROLL
    for (int c = 0; c < kSide; ++c) {
      VESTA_UNROLL
      for (int p = 0; p < kSide; ++p) {
        const C d = place.holds(c, p) ? t.v[c][p] - mean : C(0);
        s.a = s.a + d, s.b = s.b + d * d;
      }
    }
  });
  s = team.reduce(s, [](const Pair<C>& p, const Pair<C>& q) { return add_pairs(p, q); });
  const C rest = s.a / n, variance = (s.b - s.a * rest) / n, rstd = C(1) / math::sqrt(variance + a.eps);
  if (int64_t(team.row) < a.images * a.groups && team.rank == 0) {
    a.mean[team.row] = mean + rest, a.rstd[team.row] = rstd;
  }
  each_tile(a, team, [&](const Place<T>& place) {
    C w[kSide], b[kSide];
    place.load(a.weight, w), place.load(a.bias, b);
    place.load(a.x, t);
    VESTA_UNROLL
    for (int c = 0; c < kSide; ++c) {
      VESTA_UNROLL
      for (int p = 0; p < kSide; ++p) t.v[c][p] = ((t.v[c][p] - mean) - rest) * rstd * w[c] + b[c];
    }
    place.store(a.y, t);
  });
}

// As in row_norm.cu, with h = g * weight: dx = rstd * (h - sum(h) / n - x^ * sum(h x^) / n).
template <class T>
VESTA_KERNEL void group_norm_backward_kernel(GroupNormArgs<T> a) {
  using C = compute_of<T>;
  if (blockIdx.x == 0) {
    for (unsigned i = threadIdx.x; i < a.channel_blocks; i += kTeamThreads) a.counters[i] = 0;
  }
  const GroupOrBlock team(a.width);
  const bool exists = int64_t(team.row) < a.images * a.groups;
  const C n = C(a.depth * a.inner), mean = exists ? a.mean[team.row] : C(0), rstd = exists ? a.rstd[team.row] : C(0);
  Pair<C> s{C(0), C(0)};
  Tile<C> g, x;
  C w[kSide];
  each_tile(a, team, [&](const Place<T>& place) {
    place.load(a.weight, w), place.load(a.grad, g), place.load(a.x, x);
    VESTA_UNROLL
    for (int c = 0; c < kSide; ++c) {
      VESTA_UNROLL
      for (int p = 0; p < kSide; ++p) {
        const C h = place.holds(c, p) ? g.v[c][p] * w[c] : C(0);
        s.a = s.a + h, s.b = s.b + (place.holds(c, p) ? h * ((x.v[c][p] - mean) * rstd) : C(0));
      }
    }
  });
  s = team.reduce(s, [](const Pair<C>& p, const Pair<C>& q) { return add_pairs(p, q); });
  const C average = s.a / n, slope = s.b / n;
  each_tile(a, team, [&](const Place<T>& place) {
    place.load(a.weight, w), place.load(a.grad, g), place.load(a.x, x);
    VESTA_UNROLL
    for (int c = 0; c < kSide; ++c) {
      VESTA_UNROLL
      for (int p = 0; p < kSide; ++p) {
        g.v[c][p] = rstd * (g.v[c][p] * w[c] - average - (x.v[c][p] - mean) * rstd * slope);
      }
    }
    place.store(a.y, g);
  });
}

/// Sums g x^ and g over the images and positions of four channels: a block sums a piece, and the last block of the four
/// adds the pieces, in order and in double. The order of blocks does not change a bit.
template <class T>
VESTA_KERNEL void channel_sums_kernel(GroupNormArgs<T> a) {
  using C = compute_of<T>;
  VESTA_SHARED(unsigned, is_last, 1);
  const unsigned four = blockIdx.x % a.channel_blocks;
  const int64_t part = blockIdx.x / a.channel_blocks, channel = int64_t(four) * kSide;
  const int64_t tiles = a.images * a.position_tiles, begin = part * a.piece;
  const int64_t end = begin + a.piece < tiles ? begin + a.piece : tiles;
  Pair<C> s[kSide] = {};
  Tile<C> g, x;
  for (int64_t i = begin + threadIdx.x; i < end; i += kTeamThreads) {
    const int64_t image = i / a.position_tiles;
    const Place<T> place(a, image, channel, a.channels, (i - image * a.position_tiles) * kSide);
    place.load(a.grad, g), place.load(a.x, x);
    VESTA_UNROLL
    for (int c = 0; c < kSide; ++c) {
      const int64_t row = image * a.groups + (c < place.channels ? channel + c : channel) / a.depth;
      const C mean = a.mean[row], rstd = a.rstd[row];
      VESTA_UNROLL
      for (int p = 0; p < kSide; ++p) {
        s[c].a = s[c].a + (place.holds(c, p) ? g.v[c][p] * ((x.v[c][p] - mean) * rstd) : C(0));
        s[c].b = s[c].b + g.v[c][p];
      }
    }
  }
  VESTA_UNROLL
  for (int c = 0; c < kSide; ++c) {
    s[c] = block_reduce(s[c], [](const Pair<C>& p, const Pair<C>& q) { return add_pairs(p, q); }, unsigned(c));
    if (threadIdx.x == 0 && channel + c < a.channels) {
      a.parts[2 * part * a.channels + channel + c] = s[c].a,
                                                a.parts[(2 * part + 1) * a.channels + channel + c] = s[c].b;
    }
  }
  if (threadIdx.x == 0) {
    device_fence();
    is_last[0] = atomic_add(a.counters + four, 1u) + 1 == unsigned(a.pieces);
  }
  block_barrier();
  if (!is_last[0] || threadIdx.x >= unsigned(kSide) || channel + threadIdx.x >= a.channels) return;
  device_fence();
  const volatile C* parts = a.parts;  // of other blocks
  const int64_t c = channel + threadIdx.x;
  Pair<double> t{0, 0};
  for (int64_t p = 0; p < a.pieces; ++p) {
    t.a = t.a + double(parts[2 * p * a.channels + c]), t.b = t.b + double(parts[(2 * p + 1) * a.channels + c]);
  }
  a.weight_gradient[c] = C(t.a), a.bias_gradient[c] = C(t.b);
}

template <class T>
GroupNormArgs<T> args_of(const GroupNormLaunch& l, unsigned width) {
  using C = compute_of<T>;
  const int64_t depth = l.channels / l.groups, channel_tiles = (depth + kSide - 1) / kSide;
  return {reinterpret_cast<const T*>(l.x),
          reinterpret_cast<const T*>(l.grad),
          reinterpret_cast<T*>(l.y),
          reinterpret_cast<C*>(l.mean),
          reinterpret_cast<C*>(l.rstd),
          {l.weight, l.wide_weight, C(1)},
          {l.bias, l.wide_bias, C(0)},
          l.images,
          l.channels,
          l.inner,
          l.groups,
          depth,
          Divider(l.groups),
          Divider(channel_tiles),
          channel_tiles,
          (l.inner + kSide - 1) / kSide,
          l.channels_last,
          l.packed,
          C(l.eps),
          width,
          l.counters,
          reinterpret_cast<C*>(l.parts),
          reinterpret_cast<C*>(l.weight_gradient),
          reinterpret_cast<C*>(l.bias_gradient),
          l.piece,
          l.pieces,
          unsigned((l.channels + kSide - 1) / kSide)};
}

// ---- in three steps ----

constexpr unsigned kRowThreads = 8;  // that share a row: a channel of an image
constexpr unsigned kRows = kTeamThreads / kRowThreads;  // of a block

/// The operands of the sums and of what is made of them. A row is a channel of an image, in all `rows`.
struct GroupSumsArgs {
  const char *x, *grad;
  ChannelVector weight, bias;
  char *mean, *rstd, *map, *weight_gradient, *bias_gradient;
  Pair<double>* sums;  // [pieces, rows]
  int64_t images, channels, inner, groups, depth, rows, piece, pieces;
  Divider by_channels, by_depth, by_packs;
  int64_t packs;  // of the channels of a pixel
  bool last, packed;
  double eps;
  unsigned row_blocks, width;
  /// Returns the positions of a piece.
  VESTA_DEVICE int64_t length(int64_t p) const { return p + 1 < pieces ? piece : inner - p * piece; }
};

/// Where a row is: number r of the block's rows.
struct RowPlace {
  int64_t image, channel;
  bool exists;
  template <int N>
  static VESTA_DEVICE RowPlace of(const GroupSumsArgs& a, unsigned r) {
    const int64_t at = int64_t(blockIdx.x % a.row_blocks) * kRows + r;
    if (a.last) {  // rows of packs, the last of which may have channels less
      const int64_t pack = at / N, image = a.by_packs.divide(pack), channel = (pack - image * a.packs) * N + at % N;
      return {image, channel, image < a.images && channel < a.channels};
    }
    const int64_t image = a.by_channels.divide(at);
    return {image, at - image * a.channels, image < a.images};
  }
  VESTA_DEVICE int64_t row(const GroupSumsArgs& a) const { return image * a.channels + channel; }
  /// Returns the offset of a position of the row.
  VESTA_DEVICE int64_t offset(const GroupSumsArgs& a, int64_t position) const {
    return a.last ? (image * a.inner + position) * a.channels + channel : row(a) * a.inner + position;
  }
  VESTA_DEVICE int64_t group(const GroupSumsArgs& a) const { return image * a.groups + a.by_depth.divide(channel); }
};

/// What a thread of the sums has: N accumulators, of one row or of N, and the packs of their elements.
template <class T>
struct Accumulators {
  static constexpr int N = int(16 / sizeof(T)), kAhead = N > 4 ? 6 : 8;  // packs that are loaded before one is used
  static constexpr unsigned kLanes = unsigned(group_lanes(sizeof(T)));
  static_assert(kLanes == N * kRowThreads && kTeamThreads == kLanes * (kRows / N));
  int64_t first, step, count;  // the offset of the first pack, from one to the next, and how many
  int64_t position, end;  // of the first pack, and of the piece
  RowPlace place;  // of the first accumulator
  bool last;

  VESTA_DEVICE explicit Accumulators(const GroupSumsArgs& a) : last(a.last) {
    constexpr unsigned kWidth = kRows / N;  // packs side by side
    place = RowPlace::of<N>(a, last ? threadIdx.x % kWidth * N : threadIdx.x / kRowThreads);
    const int64_t begin = blockIdx.x / a.row_blocks * a.piece;
    end = begin + a.piece < a.inner ? begin + a.piece : a.inner;
    position = begin + (last ? threadIdx.x / kWidth : threadIdx.x % kRowThreads * N);
    first = place.offset(a, position), step = (last ? a.channels : 1) * int64_t(kLanes);
    count = place.exists && position < end ? (end - position + kLanes - 1) / kLanes : 0;
  }
  /// Returns whether accumulator j has an element in pack i.
  VESTA_DEVICE bool has(const GroupSumsArgs& a, int64_t i, int j) const {
    return last ? place.channel + j < a.channels : position + i * kLanes + j < end;
  }
  /// Calls begin(load(offset)) for the first pack, use(load(offset)) for each, in order; `ahead` are loaded first.
  template <int ahead, class Load, class Begin, class Use>
  VESTA_DEVICE void each(Load load, Begin begin, Use use) const {
    const int64_t full = count - count % ahead;
    VESTA_ROLLED
    for (int64_t i = 0; i < full; i += ahead) {
      decltype(load(first)) packs[ahead];
      VESTA_UNROLL
      for (int k = 0; k < ahead; ++k) packs[k] = load(first + (i + k) * step);
      if (i == 0) begin(packs[0]);
      VESTA_UNROLL
      for (int k = 0; k < ahead; ++k) use(packs[k]);
    }
    if (full == count) return;
    decltype(load(first)) packs[ahead - 1] = {};
    VESTA_UNROLL
    for (int k = 0; k < ahead - 1; ++k) {
      if (full + k < count) packs[k] = load(first + (full + k) * step);
    }
    if (full == 0) begin(packs[0]);
    VESTA_UNROLL
    for (int k = 0; k < ahead - 1; ++k) {
      if (full + k < count) use(packs[k]);
    }
  }
  /// Gives each thread the accumulators of one row: N neighbouring lanes of it, from lane threadIdx.x % kRowThreads * N
  /// on, of row threadIdx.x / kRowThreads of the block. All threads take part.
  template <class S>
  VESTA_DEVICE void turn(S* s) const {
    constexpr unsigned kWidth = kRows / N, kLine = kLanes + 1;
    VESTA_SHARED(S, shared, kRows * kLine);
    if (!last) return;
    VESTA_UNROLL
    for (unsigned j = 0; j < N; ++j) {
      shared[(threadIdx.x % kWidth * N + j) * kLine + threadIdx.x / kWidth] = s[j];
    }
    block_barrier();
    VESTA_UNROLL
    for (unsigned j = 0; j < N; ++j) {
      s[j] = shared[threadIdx.x / kRowThreads * kLine + threadIdx.x % kRowThreads * N + j];
    }
  }
};

/// The sums of an accumulator around its first element.
template <class C>
struct ShiftedSum {
  C shift, sum, squares;
};

/// Sums pieces of rows: their means and the squares around them. What accumulators have is combined by Chan, Golub and
/// LeVeque's formula, as means beyond the first element of the row's piece.
template <class T>
VESTA_KERNEL void VESTA_BOUNDS(kTeamThreads, 3) group_moments_kernel(GroupSumsArgs a) {
  using C = compute_of<T>;
  using Part = Accumulators<T>;
  constexpr int N = Part::N;
  const Part part(a);
  const T* x = reinterpret_cast<const T*>(a.x);
  const int64_t piece = blockIdx.x / a.row_blocks;
  const RowPlace row = RowPlace::of<N>(a, threadIdx.x / kRowThreads);  // that this thread combines
  const C near = row.exists ? convert<C>(x[row.offset(a, piece * a.piece)]) : C(0);
  ShiftedSum<C> s[N] = {};
  const auto add = [&](ShiftedSum<C>& t, C v) {
    const C d = v - t.shift;
    t.sum = t.sum + d, t.squares = multiply_add(d, d, t.squares);
  };
  if (a.packed) {
    part.template each<Part::kAhead>([&](int64_t at) { return load_words(x + at); },
                                     [&](const PackWords& pack) {
                                       C v[N];
                                       widen<T>(pack, v);
                                       VESTA_UNROLL
                                       for (int j = 0; j < N; ++j) s[j].shift = v[j];
                                     },
                                     [&](const PackWords& pack) {
                                       C v[N];
                                       widen<T>(pack, v);
                                       VESTA_UNROLL
                                       for (int j = 0; j < N; ++j) add(s[j], v[j]);
                                     });
  } else {
    VESTA_ROLLED
    for (int64_t i = 0; i < part.count; ++i) {
      T v[N];
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) v[j] = part.has(a, i, j) ? x[part.first + i * part.step + j] : T{};
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) {
        if (!part.has(a, i, j)) continue;
        if (i == 0) s[j].shift = convert<C>(v[j]);
        add(s[j], convert<C>(v[j]));
      }
    }
  }
  part.turn(s);
  const int64_t length = a.length(piece), least = length / Part::kLanes;  // elements of each accumulator, or one more
  const int more = int(length % Part::kLanes), lane = int(threadIdx.x % kRowThreads) * N;
  const C weight = least > 0 ? C(1) / C(least) : C(0), less = C(1) / C(least + 1);
  const auto sum = [](C p, C q) { return p + q; };
  C total = 0, squares = 0;
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) {
    const bool longer = lane + j < more, any = longer || least > 0;
    const C rest = s[j].sum * (longer ? less : weight);
    s[j].squares = any ? s[j].squares - s[j].sum * rest : C(0);
    s[j].shift = any ? (s[j].shift - near) + rest : C(0);
    total = multiply_add(s[j].shift, C(longer ? least + 1 : least), total);
  }
  const C mean = group_reduce(total, kRowThreads, sum) / C(length);
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) {
    const C d = s[j].shift - mean, n = C(lane + j < more ? least + 1 : least);
    squares = squares + multiply_add(d * d, n, s[j].squares);
  }
  squares = group_reduce(squares, kRowThreads, sum);
  if (row.exists && threadIdx.x % kRowThreads == 0) {
    a.sums[piece * a.rows + row.row(a)] = {double(near) + double(mean), double(squares)};
  }
}

/// Sums g and g (x - mean) over pieces of rows, mean that of the group.
template <class T>
VESTA_KERNEL void VESTA_BOUNDS(kTeamThreads, 3) group_backward_sums_kernel(GroupSumsArgs a) {
  using C = compute_of<T>;
  using Part = Accumulators<T>;
  constexpr int N = Part::N;
  const Part part(a);
  const T *x = reinterpret_cast<const T*>(a.x), *g = reinterpret_cast<const T*>(a.grad);
  const C* means = reinterpret_cast<const C*>(a.mean);
  C mean[N];
  Pair<C> s[N];
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) {
    RowPlace place = part.place;
    place.channel += part.last ? j : 0;
    mean[j] = place.exists && place.channel < a.channels ? means[place.group(a)] : C(0);
    s[j] = {C(0), C(0)};
  }
  const auto add = [&](int j, C v, C w) { s[j].a = s[j].a + v, s[j].b = multiply_add(v, w - mean[j], s[j].b); };
  if (a.packed) {
    struct Both {
      PackWords g, x;
    };
    part.template each<Part::kAhead / 2>([&](int64_t at) { return Both{load_words(g + at), load_words(x + at)}; },
                                         [](const Both&) {},
                                         [&](const Both& both) {
                                           C v[N], w[N];
                                           widen<T>(both.g, v), widen<T>(both.x, w);
                                           VESTA_UNROLL
                                           for (int j = 0; j < N; ++j) add(j, v[j], w[j]);
                                         });
  } else {
    VESTA_ROLLED
    for (int64_t i = 0; i < part.count; ++i) {
      T v[N], w[N];
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) {
        const int64_t at = part.first + i * part.step + j;
        v[j] = part.has(a, i, j) ? g[at] : T{}, w[j] = part.has(a, i, j) ? x[at] : T{};
      }
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) {
        if (part.has(a, i, j)) add(j, convert<C>(v[j]), convert<C>(w[j]));
      }
    }
  }
  part.turn(s);
  Pair<C> total = s[0];
  VESTA_UNROLL
  for (int j = 1; j < N; ++j) total = add_pairs(total, s[j]);
  total = group_reduce(total, kRowThreads, [](const Pair<C>& p, const Pair<C>& q) { return add_pairs(p, q); });
  const RowPlace row = RowPlace::of<N>(a, threadIdx.x / kRowThreads);
  if (row.exists && threadIdx.x % kRowThreads == 0) {
    a.sums[blockIdx.x / a.row_blocks * a.rows + row.row(a)] = {double(total.a), double(total.b)};
  }
}

/// Adds f(i, load(i)) for i below n over a team, four loaded before one is used; every member gets the sums.
template <class Load, class F>
VESTA_DEVICE Pair<double> sum_loaded(const GroupOrBlock& team, int64_t n, Load load, F f) {
  constexpr int kAhead = 4;
  Pair<double> s{0, 0};
  VESTA_ROLLED
  for (int64_t i = team.rank; i < n; i += kAhead * int64_t(team.size)) {
    decltype(load(i)) some[kAhead];
    VESTA_UNROLL
    for (int k = 0; k < kAhead; ++k) {
      const int64_t at = i + k * int64_t(team.size);
      some[k] = load(at < n ? at : i);
    }
    VESTA_UNROLL
    for (int k = 0; k < kAhead; ++k) {
      const int64_t at = i + k * int64_t(team.size);
      if (at < n) s = add_pairs(s, f(at, some[k]));
    }
  }
  return team.reduce(s, [](const Pair<double>& p, const Pair<double>& q) { return add_pairs(p, q); });
}

/// The sums of a group: element i is piece i / depth of its channel i % depth.
struct GroupSums {
  const GroupSumsArgs& a;
  int64_t row;  // the group's first
  VESTA_DEVICE int64_t piece(int64_t i) const { return a.by_depth.divide(i); }
  VESTA_DEVICE Pair<double> operator()(int64_t i) const {
    const int64_t p = piece(i);
    return a.sums[p * a.rows + row + (i - p * a.depth)];
  }
};

/// Computes each group's statistics, and for each of its rows the map.
template <class C>
VESTA_KERNEL void group_statistics_kernel(GroupSumsArgs a) {
  const GroupOrBlock team(a.width);
  const int64_t group = int64_t(team.row), row = group * a.depth,
                n = group < a.images * a.groups ? a.depth * a.pieces : 0;
  const GroupSums sums{a, row};
  const double count = double(a.depth) * double(a.inner), weight = 1 / count;
  const double mean = sum_loaded(team, n, sums, [&](int64_t i, const Pair<double>& s) {
                        return Pair<double>{s.a * (double(a.length(sums.piece(i))) * weight), 0};
                      }).a;
  const double squares = sum_loaded(team, n, sums, [&](int64_t i, const Pair<double>& s) {
                           const double d = s.a - mean;
                           return Pair<double>{s.b + d * d * double(a.length(sums.piece(i))), 0};
                         }).a;
  if (n == 0) return;
  const double inverse = 1 / math::sqrt(squares * weight + a.eps);
  // What is subtracted is a number of the dtype of statistics: large means cost no digits.
  const C center = C(mean);
  const double rest = math::isfinite(center) ? mean - double(center) : 0;
  if (team.rank == 0) reinterpret_cast<C*>(a.mean)[group] = center, reinterpret_cast<C*>(a.rstd)[group] = C(inverse);
  C* map = reinterpret_cast<C*>(a.map);
  const int64_t channel = row - a.by_channels.divide(row) * a.channels;
  for (int64_t c = team.rank; c < a.depth; c += team.size) {
    const double scale = inverse * read(a.weight, channel + c, 1);
    map[row + c] = center, map[a.rows + row + c] = C(scale);
    map[2 * a.rows + row + c] = C(read(a.bias, channel + c, 0) - rest * scale);
  }
}

// As in row_norm.cu, with h = g * weight: dx = rstd * (h - sum(h) / n - x^ * sum(h x^) / n).
/// Computes the map of each group's rows, and with later teams the gradients of each channel's weight and bias.
template <class C>
VESTA_KERNEL void group_backward_statistics_kernel(GroupSumsArgs a) {
  const GroupOrBlock team(a.width);
  const C *means = reinterpret_cast<const C*>(a.mean), *scales = reinterpret_cast<const C*>(a.rstd);
  const int64_t groups = a.images * a.groups;
  if (int64_t(team.row) >= groups) {
    const int64_t c = int64_t(team.row) - groups, group = a.by_depth.divide(c < a.channels ? c : 0);
    struct Scaled {
      Pair<double> s;
      C scale;
    };
    const Pair<double> s = sum_loaded(
        team, c < a.channels ? a.images * a.pieces : 0,
        [&](int64_t i) {
          const int64_t image = i / a.pieces, piece = i - image * a.pieces;
          return Scaled{a.sums[piece * a.rows + image * a.channels + c], scales[image * a.groups + group]};
        },
        [](int64_t, const Scaled& v) { return Pair<double>{v.s.a, v.s.b * double(v.scale)}; });
    if (c >= a.channels || team.rank != 0) return;
    reinterpret_cast<C*>(a.bias_gradient)[c] = C(s.a), reinterpret_cast<C*>(a.weight_gradient)[c] = C(s.b);
    return;
  }
  const int64_t group = int64_t(team.row), row = group * a.depth;
  const int64_t channel = row - a.by_channels.divide(row) * a.channels;
  const GroupSums sums{a, row};
  const Pair<double> s = sum_loaded(team, a.depth * a.pieces, sums, [&](int64_t i, const Pair<double>& v) {
    const double w = read(a.weight, channel + (i - sums.piece(i) * a.depth), 1);
    return Pair<double>{w * v.a, w * v.b};
  });
  const double count = double(a.depth) * double(a.inner), inverse = double(scales[group]);
  const C center = means[group], slope = C(-inverse * inverse * inverse * s.b / count),
          offset = C(-inverse * s.a / count);
  C* map = reinterpret_cast<C*>(a.map);
  for (int64_t c = team.rank; c < a.depth; c += team.size) {
    map[row + c] = center, map[a.rows + row + c] = C(inverse * read(a.weight, channel + c, 1));
    map[2 * a.rows + row + c] = slope, map[3 * a.rows + row + c] = offset;
  }
}

/// Queues the three steps.
void run_in_steps(const char* name, const GroupNormLaunch& l) {
  const DType wide = l.dtype == DType::float64 ? DType::float64 : DType::float32;
  const auto vector = [&](const char* data, bool is_wide) {
    return ChannelVector{const_cast<char*>(data), is_wide ? wide : l.dtype, 1};
  };
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    using C = compute_of<T>;
    constexpr int64_t N = Accumulators<T>::N;
    const int64_t depth = l.depth(), rows = l.images * l.channels, packs = (l.channels + N - 1) / N;
    const uint64_t held = uint64_t(l.channels_last ? l.images * packs * N : rows);
    GroupSumsArgs a{l.x,
                    l.grad,
                    vector(l.weight, l.wide_weight),
                    vector(l.bias, l.wide_bias),
                    l.mean,
                    l.rstd,
                    l.map,
                    l.weight_gradient,
                    l.bias_gradient,
                    reinterpret_cast<Pair<double>*>(l.sums),
                    l.images,
                    l.channels,
                    l.inner,
                    l.groups,
                    depth,
                    rows,
                    l.piece,
                    l.pieces,
                    Divider(l.channels),
                    Divider(depth),
                    Divider(packs),
                    packs,
                    l.channels_last,
                    l.packed && (l.channels_last ? l.channels : l.inner) % N == 0,
                    l.eps,
                    unsigned((held + kRows - 1) / kRows),
                    32};
    const LaunchShape sums =
        linear_shape(uint64_t(a.row_blocks) * uint64_t(l.pieces) * kTeamThreads, kTeamThreads, l.stream);
    const int64_t numbers = depth * l.pieces, of_channel = l.grad ? l.images * l.pieces : 0;
    if (numbers > 128 || of_channel > 128) a.width = kTeamThreads;
    const LaunchShape teams = team_shape(uint64_t(l.images * l.groups + (l.grad ? l.channels : 0)), a.width, l.stream);
    if (l.grad) {
      launch_block(name, group_backward_sums_kernel<T>, sums, a);
      launch_block(name, group_backward_statistics_kernel<C>, teams, a);
    } else {
      launch_block(name, group_moments_kernel<T>, sums, a);
      launch_block(name, group_statistics_kernel<C>, teams, a);
    }
  });
  BatchNormLaunch m;
  m.stream = l.stream, m.dtype = l.dtype, m.x = l.x, m.grad = l.grad, m.y = l.y, m.map = l.map, m.packed = l.packed;
  m.batch = l.images, m.channels = l.channels, m.inner = l.inner, m.images = l.images, m.training = true;
  if (l.channels_last) m.batch = l.images * l.inner, m.inner = 1;
  map_normalized(name, m);
}

/// Calls f.template operator()<T>(shape, args): a team of lanes where these are enough for two tiles each.
template <class F>
void with_groups(const GroupNormLaunch& l, F f) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    const auto a = args_of<T>(l, 0);
    const unsigned width = team_width(a.channel_tiles * a.position_tiles * 16, 16);
    auto with_width = a;
    with_width.width = width;
    f.template operator()<T>(team_shape(uint64_t(l.images * l.groups), width, l.stream), with_width);
  });
}

}  // namespace

void group_norm(const GroupNormLaunch& l) {
  constexpr const char* name = "native_group_norm";
  if (!l.by_team()) return run_in_steps(name, l);
  with_groups(l, [&]<class T>(const LaunchShape& shape, const GroupNormArgs<T>& a) {
    launch_block(name, group_norm_kernel<T>, shape, a);
  });
}

void group_norm_backward(const GroupNormLaunch& l) {
  constexpr const char* name = "_group_norm_backward";
  if (!l.by_team()) return run_in_steps(name, l);
  with_groups(l, [&]<class T>(const LaunchShape& shape, const GroupNormArgs<T>& a) {
    launch_block(name, group_norm_backward_kernel<T>, shape, a);
    const uint64_t blocks = uint64_t(a.channel_blocks) * uint64_t(a.pieces);
    launch_block(name, channel_sums_kernel<T>, linear_shape(blocks * kTeamThreads, kTeamThreads, l.stream), a);
  });
}

}  // namespace vesta::cuda
