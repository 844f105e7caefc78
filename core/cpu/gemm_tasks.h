// How matrix products are cut into tasks. Internal to gemm.cpp.
#pragma once

#include <vesta/core/cpu/gemm.h>
#include <vesta/core/cpu/gemm_kernel.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/rounding.h>

#include <algorithm>
#include <cstdint>
#include <span>

namespace vesta::cpu {

/// One product with typed pointers.
template <class T>
struct Matrices {
  std::int64_t m, n, k;
  const T* a;
  std::int64_t a_row, a_col;
  const T* b;
  std::int64_t b_row, b_col;
  T* c;
  std::int64_t c_row;
  const T* bias;
  bool accumulate;
  std::uint16_t* half = nullptr;  // if set, the result is rounded to 16-bit floats here, with rows c_row apart; no c
  const HalfFormat* format = nullptr;

  Matrices rows(std::int64_t begin, std::int64_t end) const {
    Matrices part = *this;
    part.m = end - begin;
    part.a += begin * a_row;
    if (half != nullptr) part.half += begin * c_row;
    else part.c += begin * c_row;
    return part;
  }
  Matrices columns(std::int64_t begin, std::int64_t end) const {
    Matrices part = *this;
    part.n = end - begin;
    part.b += begin * b_col;
    if (half != nullptr) part.half += begin;
    else part.c += begin;
    if (bias != nullptr) part.bias += begin;
    return part;
  }
};

/// A cut of rows or columns into `count` blocks of whole tiles whose heights differ by one tile at most, so that
/// threads get equal work.
class Cut {
 public:
  Cut(std::int64_t size, std::int64_t tile, std::int64_t blocks)
      : count(std::clamp<std::int64_t>(blocks, 1, std::max<std::int64_t>(ceil_div(size, tile), 1))),
        size_(size),
        tile_(tile) {}
  /// Cuts into blocks of at most about `most`, a multiple of four of them where there are several.
  static Cut into(std::int64_t size, std::int64_t tile, std::int64_t most) {
    const std::int64_t blocks = ceil_div(size, most);
    return {size, tile, blocks > 1 ? round_up(blocks, 4) : blocks};
  }
  std::int64_t begin(std::int64_t i) const { return std::min(size_, ceil_div(size_, tile_) * i / count * tile_); }
  std::int64_t end(std::int64_t i) const { return begin(i + 1); }
  std::int64_t highest() const { return ceil_div(ceil_div(size_, tile_), count) * tile_; }

  std::int64_t count;

 private:
  std::int64_t size_, tile_;
};

/// Returns into how many blocks, `most` at most, to cut the rows of tasks, `columns` blocks of columns wide, that each
/// pack their columns of B.
inline std::int64_t cheapest_rows(std::int64_t columns, std::int64_t rows, std::int64_t most) {
  // Rows that are multiplied by a column of B in the time in which it is packed (dnn_bench, matmul section).
  constexpr std::int64_t kPackedRows = 24;
  const std::int64_t threads = num_threads();
  std::int64_t best = 1, least = 0;
  for (std::int64_t down = 1; down <= most; ++down) {
    const std::int64_t cost = ceil_div(columns * down, threads) * (ceil_div(rows, down) + kPackedRows);
    if (down == 1 || cost < least) best = down, least = cost;
  }
  return best;
}

/// The operands' offsets of each product of a batch, by its linear index.
struct BatchSteps {
  std::span<const BatchDim> dims;
  struct Offsets {
    std::int64_t a = 0, b = 0, c = 0;
  };
  Offsets at(std::int64_t index) const {
    Offsets offsets;
    for (std::size_t d = dims.size(); d-- > 0;) {
      const std::int64_t i = index % dims[d].size;
      index /= dims[d].size;
      offsets.a += i * dims[d].a;
      offsets.b += i * dims[d].b;
      offsets.c += i * dims[d].c;
    }
    return offsets;
  }
  std::int64_t count() const {
    std::int64_t n = 1;
    for (const BatchDim& dim : dims) n *= dim.size;
    return n;
  }
};

/// Returns the product with pointers to T, of which C and the bias are, too.
template <class T>
Matrices<T> typed(const Gemm& args) {
  return {args.m,
          args.n,
          args.k,
          static_cast<const T*>(args.a),
          args.a_row,
          args.a_col,
          static_cast<const T*>(args.b),
          args.b_row,
          args.b_col,
          static_cast<T*>(args.c),
          args.c_row,
          static_cast<const T*>(args.bias),
          args.accumulate};
}

/// Returns the product whose operands lie `by` further.
template <class T>
Matrices<T> shifted(Matrices<T> p, const BatchSteps::Offsets& by) {
  p.a += by.a;
  p.b += by.b;
  p.c += by.c;
  return p;
}

/// Packs at most `tall` rows of A from `row` on, of the block of k from k0 on, to where they lie in a packed A.
template <class T>
void pack_rows(const GemmKernels<T>& kernels, const Matrices<T>& q, std::int64_t row, std::int64_t tall,
               std::int64_t k0, T* packed) {
  const std::int64_t k_len = std::min(kBlockK, q.k - k0);
  kernels.pack_a(std::min(tall, q.m - row), k_len, q.a + row * q.a_row + k0 * q.a_col, q.a_row, q.a_col,
                 packed + k0 * round_up(q.m, kernels.tile_rows) + row * k_len);
}

/// The operands of a large product, packed by all threads.
template <class T>
struct SharedPanels {
  const GemmKernels<T>& kernels;
  T *a, *b;  ///< a is null where each task takes A for itself
  std::int64_t columns;  ///< of B, padded
  bool b_is_packed = false;  ///< before

  /// Packs B, and A if it is packed here, the first time.
  void pack(const Matrices<T>& q, bool first) const {
    const std::int64_t nc = kernels.tile_cols, k_blocks = ceil_div(q.k, kBlockK), tall = 16 * kernels.tile_rows;
    const std::int64_t strip = std::min(8 * nc, round_up(ceil_div(q.n * k_blocks, 8), nc)),
                       strips = b_is_packed ? 0 : ceil_div(q.n, strip);
    const std::int64_t talls = first && a != nullptr ? ceil_div(q.m, tall) : 0;
    if (strips + talls == 0) return;
    parallel_for((strips + talls) * k_blocks, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        const std::int64_t k0 = t % k_blocks * kBlockK, part = t / k_blocks;
        if (part < strips) {
          const std::int64_t c0 = part * strip, k_len = std::min(kBlockK, q.k - k0);
          kernels.pack_b(std::min(strip, q.n - c0), k_len, q.b + k0 * q.b_row + c0 * q.b_col, q.b_row, q.b_col,
                         b + k0 * columns + c0 * k_len);
        } else {
          pack_rows(kernels, q, (part - strips) * tall, tall, k0, a);
        }
      }
    });
  }
};

}  // namespace vesta::cpu
