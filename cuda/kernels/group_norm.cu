// Group normalisation (Wu and He 2018): a team for each group of channels of an image. Threads take squares of four
// channels times four positions, so that contiguous inputs and those with channels last are both read 16 bytes at a
// time, and are summed in the same order: the same bits.
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
template <class T, class Team, class F>
VESTA_DEVICE void each_tile(const GroupNormArgs<T>& a, const Team& team, F f) {
  if (int64_t(team.row) >= a.images * a.groups) return;
  const int64_t image = a.by_group.divide(int64_t(team.row)), group = int64_t(team.row) - image * a.groups;
  const int64_t begin = group * a.depth;
  for (int64_t i = team.rank; i < a.channel_tiles * a.position_tiles; i += team.size) {
    const int64_t position = a.by_channel_tile.divide(i), channel = i - position * a.channel_tiles;
    f(Place<T>(a, image, begin + channel * kSide, begin + a.depth, position * kSide));
  }
}

template <class T, class Team>
VESTA_KERNEL void group_norm_kernel(GroupNormArgs<T> a) {
  using C = compute_of<T>;
  const Team team(a.width);
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
template <class T, class Team>
VESTA_KERNEL void group_norm_gradient_kernel(GroupNormArgs<T> a) {
  using C = compute_of<T>;
  if (blockIdx.x == 0) {
    for (unsigned i = threadIdx.x; i < a.channel_blocks; i += kTeamThreads) a.counters[i] = 0;
  }
  const Team team(a.width);
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

/// Calls f.template operator()<T, Team>(shape, args): a team of lanes where these are enough for two tiles each.
template <class F>
void with_groups(const GroupNormLaunch& l, F f) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    const auto a = args_of<T>(l, 0);
    const unsigned width = team_width(a.channel_tiles * a.position_tiles * 16, 16);
    auto with_width = a;
    with_width.width = width;
    const LaunchShape shape = team_shape(uint64_t(l.images * l.groups), width, l.stream);
    if (width > 32) f.template operator()<T, BlockTeam>(shape, with_width);
    else f.template operator()<T, GroupTeam>(shape, with_width);
  });
}

}  // namespace

void group_norm(const GroupNormLaunch& l) {
  with_groups(l, [&]<class T, class Team>(const LaunchShape& shape, const GroupNormArgs<T>& a) {
    launch_block("native_group_norm", group_norm_kernel<T, Team>, shape, a);
  });
}

void group_norm_gradient(const GroupNormLaunch& l) {
  with_groups(l, [&]<class T, class Team>(const LaunchShape& shape, const GroupNormArgs<T>& a) {
    launch_block("_group_norm_backward", group_norm_gradient_kernel<T, Team>, shape, a);
    const uint64_t blocks = uint64_t(a.channel_blocks) * uint64_t(a.pieces);
    launch_block("_group_norm_backward", channel_sums_kernel<T>,
                 linear_shape(blocks * kTeamThreads, kTeamThreads, l.stream), a);
  });
}

}  // namespace vesta::cuda
