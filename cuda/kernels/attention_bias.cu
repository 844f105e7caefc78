// Masks in the form of cuDNN's fused attention, numbers that are added to scores, and what they promise: a query that
// may see nothing has a result of zero. Note [Masks as numbers] in cuda/lib/cudnn_attention.cpp
#include <vesta/cuda/kernels/attention.h>
#include <vesta/cuda/kernels/rows.cuh>

namespace vesta::cuda {
namespace {

constexpr DTypeSet kSixteenBits = set_of(DType::float16) | set_of(DType::bfloat16);
constexpr int kColumns = 8;  // of a mask, that a lane takes at once

/// What a key that is hidden has, and what lower numbers become.
template <class T>
constexpr float kHidden = std::is_same_v<T, Half> ? -65504.0f : -67108864.0f;
template <class T>
constexpr float kLowest = std::is_same_v<T, Half> ? -49152.0f : -1048576.0f;

/// Converts masks of M, a warp for each row: uint8_t for booleans, else T or float.
template <class M, class T>
VESTA_KERNEL void attention_bias_kernel(AttentionBiasLaunch l, Divider queries, Divider heads, int64_t rows) {
  using Pack = Elements<M, kColumns>;
  constexpr int kPacks = sizeof(M) == 4 ? 2 : 4;  // under way at once
  constexpr int N = 16 / int(sizeof(T)), kStep = 32 * kColumns;
  const GroupTeam team(32);
  const int64_t number = int64_t(team.row);
  if (number >= rows) return;  // the whole warp
  const int64_t of_all = queries.divide(number), query = number - of_all * l.queries;
  const int64_t batch = heads.divide(of_all), head = of_all - batch * l.heads;
  const M* const from =
      static_cast<const M*>(l.mask.data) + batch * l.mask.batch + head * l.mask.head + query * l.mask.row;
  T* const to = static_cast<T*>(l.bias) + number * l.row;
  const int64_t end = l.causal && query + 1 < l.keys ? query + 1 : l.keys;
  bool sees = false;
  const auto put = [&](int64_t column, const Pack& m) {
    const int count = end - column < kColumns ? int(end - column) : kColumns;  // that may be seen
    VESTA_UNROLL
    for (int i = 0; i < kColumns; i += N) {
      Elements<T, N> pack;
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) {
        bool shown;
        float v = 0;
        if constexpr (std::is_same_v<M, uint8_t>) {
          shown = m.v[i + j] != 0;
        } else {
          v = convert<float>(m.v[i + j]);
          shown = v != -INFINITY;
          v = v < kLowest<T> ? kLowest<T> : v;  // NaN stays
        }
        sees = sees || (shown && i + j < count);
        pack.v[j] = convert<T>(shown ? v : kHidden<T>);
      }
      *reinterpret_cast<Elements<T, N>*>(to + column + i) = pack;
    }
  };
  int64_t column = int64_t(team.rank) * kColumns;
  if (l.mask.aligned) {
    for (; column + kColumns <= l.keys; column += kPacks * kStep) {
      Pack m[kPacks];
      VESTA_UNROLL
      for (int p = 0; p < kPacks; ++p) {
        const int64_t at = column + p * kStep;
        m[p] = *reinterpret_cast<const Pack*>(from + (at + kColumns <= l.keys ? at : column));
      }
      VESTA_UNROLL
      for (int p = 0; p < kPacks; ++p) {
        if (column + p * kStep + kColumns <= l.keys) put(column + p * kStep, m[p]);
      }
    }
    column = l.keys / kColumns * kColumns + int64_t(team.rank) * kColumns;
  }
  VESTA_ROLLED
  for (; column < l.row; column += kStep) {
    Pack m;
    VESTA_UNROLL
    for (int j = 0; j < kColumns; ++j) m.v[j] = column + j < l.keys ? from[(column + j) * l.mask.column] : M();
    put(column, m);
  }
  if (!l.blind) return;
  sees = any_lane(sees);
  if (team.rank == 0) l.blind[number] = !sees;
}

/// Makes zeros of the results of queries that see nothing; columns whose values are not finite are NaN, as products of
/// weights of zero are.
template <class T>
VESTA_KERNEL void attention_blind_kernel(AttentionLaunch l, AttentionBlind b, Divider packs, Divider queries,
                                         Divider heads, int64_t count) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int64_t number = packs.divide(i), column = (i - number * packs.divisor) * kColumns;
  const int64_t of_all = queries.divide(number), query = number - of_all * l.queries;
  const int64_t batch = heads.divide(of_all), head = of_all - batch * l.heads;
  if (!b.blind[batch * b.batch + head * b.head + query]) return;
  T* const at = static_cast<T*>(l.out.data) + batch * l.out.batch + head * l.out.head + query * l.out.row + column;
  auto pack = *reinterpret_cast<const Elements<T, kColumns>*>(at);
  VESTA_UNROLL
  for (int j = 0; j < kColumns; ++j) {
    const float v = convert<float>(pack.v[j]);
    pack.v[j] = convert<T>(v - v == 0 ? 0.0f : float(NAN));
  }
  *reinterpret_cast<Elements<T, kColumns>*>(at) = pack;
  if (column == 0) static_cast<float*>(l.top)[number] = INFINITY;
}

template <class M, class T>
void run_bias(const AttentionBiasLaunch& l) {
  const int64_t rows = l.batch * l.heads * l.queries;
  launch_block("attention_bias", attention_bias_kernel<M, T>, team_shape(uint64_t(rows), 32, l.stream), l,
               Divider(l.queries), Divider(l.heads), rows);
}

}  // namespace

void attention_bias(const AttentionBiasLaunch& l) {
  visit_device<kSixteenBits>(l.dtype, [&]<class T>() {
    if (l.mask.kind == AttentionMask::boolean) run_bias<uint8_t, T>(l);
    else if (l.mask.kind == AttentionMask::same) run_bias<T, T>(l);
    else run_bias<float, float>(l);
  });
}

void attention_blind(const AttentionLaunch& l, const AttentionBlind& b) {
  visit_device<kSixteenBits>(l.dtype, [&]<class T>() {
    const int64_t packs = l.value_size / kColumns, count = l.batch * l.heads * l.queries * packs;
    launch_independent("attention_blind", attention_blind_kernel<T>, linear_shape(uint64_t(count), 256, l.stream), l, b,
                       Divider(packs), Divider(l.queries), Divider(l.heads), count);
  });
}

}  // namespace vesta::cuda
