// The parts that kernels of attention share: operands' heads, masks, dropout, and which part of the work a block has.
#pragma once
#include <vesta/core/base/philox.h>
#include <vesta/cuda/kernels/attention.h>
#include <vesta/cuda/kernels/rows.cuh>

namespace vesta::cuda {
namespace {

/// The rows of one head of an operand; zeros outside.
template <class T>
struct HeadRows {
  using C = compute_of<T>;
  T* data;
  int64_t stride, rows, columns;
  bool packed, aligned;
  VESTA_DEVICE HeadRows(const AttentionOperand& o, int64_t batch, int64_t head, int64_t n, int64_t size)
      : data(static_cast<T*>(o.data) + batch * o.batch + head * o.head),
        stride(o.row),
        rows(n),
        columns(size),
        packed(o.packed),
        aligned(o.aligned) {}
  VESTA_DEVICE C at(int64_t row, int64_t column) const { return convert<C>(data[row * stride + column]); }
  VESTA_DEVICE void load(int64_t row, int64_t column, C* to) const {
    const bool inside = row < rows;
    load_columns(data + (inside ? row * stride : 0), column, inside ? columns : 0, packed, C(0), to);
  }
};

/// The keys that one head's queries see: scores are -inf for others, and outside.
template <class T>
struct Seen {
  using C = compute_of<T>;
  const AttentionLaunch& l;
  int64_t first;
  VESTA_DEVICE Seen(const AttentionLaunch& launch, int64_t batch, int64_t head)
      : l(launch), first(batch * launch.mask.batch + head * launch.mask.head) {}
  VESTA_DEVICE bool exists(int64_t query, int64_t key) const {
    return query < l.queries && key < l.keys && !(l.causal && key > query);
  }
  VESTA_DEVICE int64_t place(int64_t query, int64_t key) const {
    return first + query * l.mask.row + key * l.mask.column;
  }
  VESTA_DEVICE C masked(C score, int64_t query, int64_t key) const {
    if (!exists(query, key)) return C(-INFINITY);
    const int64_t at = place(query, key);
    switch (l.mask.kind) {
      case AttentionMask::boolean: return static_cast<const bool*>(l.mask.data)[at] ? score : C(-INFINITY);
      case AttentionMask::same: return score + convert<C>(static_cast<const T*>(l.mask.data)[at]);
      case AttentionMask::single: return score + convert<C>(static_cast<const float*>(l.mask.data)[at]);
      default: return score;
    }
  }
};

/// The factors of dropout for the weights of a head: that of weight i of all is native_dropout's of element i.
template <class C>
struct Kept {
  uint64_t seed, offset, first, keys, block = ~uint64_t(0);
  uint32_t last;
  C scale;
  bool on;
  Philox4 words{};
  VESTA_DEVICE Kept(const AttentionLaunch& l, int64_t batch, int64_t head)
      : seed(l.seed),
        offset(l.offset),
        first(uint64_t(batch * l.heads + head) * uint64_t(l.queries) * uint64_t(l.keys)),
        keys(uint64_t(l.keys)),
        last(last_event(l.kept)),
        scale(l.kept > 0 ? C(1 / l.kept) : C(0)),
        on(l.kept < 1) {}
  /// Returns the factor of a weight. Neighbouring keys of a query share a block of random numbers: take them in order.
  VESTA_DEVICE C factor(int64_t query, int64_t key) { return !on ? C(1) : keeps(query, key) ? scale : C(0); }
  VESTA_DEVICE bool keeps(int64_t query, int64_t key) {
    const uint64_t i = first + uint64_t(query) * keys + uint64_t(key);
    if (i / 4 != block) block = i / 4, words = philox_block(seed, offset, block);
    const unsigned n = unsigned(i % 4);
    const uint32_t low = n % 2 ? words.word[1] : words.word[0], high = n % 2 ? words.word[3] : words.word[2];
    return (n < 2 ? low : high) <= last;
  }
};

/// A block's part of the work: a tile of rows of a head, and some columns of the result.
struct AttentionPart {
  /// The partition of the work: heads of all batches, rows of a head in tiles, columns in pieces.
  struct Cut {
    int64_t batch, heads, rows, columns;
    int tile, wide;
    VESTA_HD int64_t tiles() const { return (rows + tile - 1) / tile; }
    VESTA_HD int64_t pieces() const { return (columns + wide - 1) / wide; }
    VESTA_HD int64_t count() const { return batch * heads * tiles() * pieces(); }
  };
  /// The dependence of the work of a tile on its position: `even`: nothing; a head's tiles follow each other, so that
  /// what they read is in L2. Otherwise the most work is done first, of all heads, so that blocks end together.
  enum Order { even, first_most, last_most };
  int64_t batch, head, row, column;
  VESTA_DEVICE AttentionPart(int64_t number, const Cut& cut, Order order) {
    const int64_t pieces = cut.pieces(), tiles = cut.tiles(), heads = cut.batch * cut.heads;
    column = number % pieces * cut.wide, number /= pieces;
    int64_t tile, of_all;
    if (order == even) tile = number % tiles, of_all = number / tiles;
    else tile = number / heads, of_all = number % heads;
    row = (order == last_most ? tiles - 1 - tile : tile) * cut.tile;
    batch = of_all / cut.heads, head = of_all % cut.heads;
  }
};

template <class Kernel>
void queue_attention(const char* name, Kernel* kernel, const AttentionLaunch& l, const AttentionPart::Cut& cut,
                     unsigned threads, unsigned shared_bytes = 0) {
  LaunchShape shape;
  shape.grid[0] = unsigned(cut.count() < INT32_MAX ? cut.count() : INT32_MAX);
  shape.block[0] = threads, shape.shared_bytes = shared_bytes;
  shape.stream = l.stream;
  launch_block(name, kernel, shape, l, cut);
}

}  // namespace
}  // namespace vesta::cuda
