// Attention that never writes the matrix of scores (Dao et al., "FlashAttention", 2022; the running maximum is that of
// Milakov and Gimelshein). A tour: a block owns a tile of rows of the result and walks over tiles of the other side.
// For each it computes a tile of scores, turns it into weights, and adds weights times rows of a third operand to sums
// in registers. Forward, rows are queries, and sums are scaled whenever a larger score turns up. In the gradient, rows
// of queries walk over keys, those of keys and of values over queries. No block adds to another block's sums, so the
// result does not depend on their order.
//
// The sums of an element run over the other side's tiles in order: their bits depend on sizes of tiles that follow from
// the dtype and the size of heads alone, not on rows, heads or batch. Where at most 16 queries meet many keys, these
// are cut into ranges of a fixed length, whose sums are joined in order: there bits depend on whether queries are so
// few.
//
//   attention_fused.cuh   float32 and 16-bit floats up to heads of 128, by tensor cores; tiles in attention_warps.cuh
//   attention_simt.cuh    everything else; tiles in attention_tiles.cuh
//   attention_parts.cuh   what they share
#pragma once
#include <vesta/cuda/kernels/attention_fused.cuh>
#include <vesta/cuda/kernels/attention_simt.cuh>

namespace vesta::cuda {
namespace {

/// Sums grad * out over the columns of each query: what the gradient of a softmax takes away.
template <class T>
VESTA_KERNEL void attention_inner_kernel(AttentionLaunch l, int64_t rows) {
  using C = compute_of<T>;
  const GroupTeam team(32);
  const bool exists = int64_t(team.row) < rows;
  const int64_t number = exists ? int64_t(team.row) : 0, query = number % l.queries, head = number / l.queries;
  const HeadRows<T> g(l.grad, head / l.heads, head % l.heads, l.queries, l.value_size);
  const HeadRows<T> y(l.out, head / l.heads, head % l.heads, l.queries, l.value_size);
  C sum = 0;
  for (int64_t c = int64_t(team.rank) * kPack; exists && c < l.value_size; c += int64_t(team.size) * kPack) {
    C a[kPack], b[kPack];
    g.load(query, c, a), y.load(query, c, b);
    sum = sum + ((a[0] * b[0] + a[1] * b[1]) + (a[2] * b[2] + a[3] * b[3]));
  }
  sum = team.reduce(sum, [](C a, C b) { return a + b; });
  if (exists && team.rank == 0) static_cast<C*>(l.inner)[number] = sum;
}

template <DTypeSet Set>
bool run_attention(const AttentionLaunch& l, bool gradient) {
  return visit_device<Set>(l.dtype, [&]<class T>() {
    if (gradient) {
      const int64_t rows = l.batch * l.heads * l.queries;
      launch_block("attention_inner", attention_inner_kernel<T>, team_shape(uint64_t(rows), 32, l.stream), l, rows);
    }
    if constexpr (sizeof(T) <= 4) {
      if (gradient ? run_fused_backward<T>(l) : run_fused<T>(l)) return;
    }
    if (gradient) run_backward<T>(l);
    else run_forward<T>(l);
  });
}

}  // namespace
}  // namespace vesta::cuda
