// How matrix products read their operands: in place, copied, packed, or by whole lines. Internal to gemm.cpp.
#pragma once

#include <vesta/core/cpu/gemm_kernel.h>
#include <vesta/core/cpu/gemm_tasks.h>

#include <algorithm>
#include <cstdint>

namespace vesta::cpu {

// Tuned with benchmarks/cpp/dnn_bench (matmul section).
inline constexpr std::int64_t kDirectBytes = 40 * 1024;  // a block of B this compact is read in place, without packing
inline constexpr std::int64_t kRowsInPlace = 96;  // rows of A up to which B is read in place
inline constexpr std::int64_t kRowsInPlaceFarApart = 32;  // where rows of B are a multiple of a page apart
inline constexpr std::int64_t kFewTiles = 3;  // tiles of rows for which panels of B are not worth a long strip
inline constexpr std::int64_t kThinRows = 8;  // rows of A up to which columns of B are read in place, not packed
inline constexpr std::int64_t kThinColumns = 4;  // columns of B up to which rows of A are read in place

/// How a tile finds the rows of A: in place, copied side by side, or packed k-major.
enum class RowsOfA : unsigned char { in_place, copied, packed };

/// Returns whether lines `stride` elements apart lie a multiple of a page apart, so that they share sets of L1.
template <class T>
bool page_apart(std::int64_t stride) {
  return stride * static_cast<std::int64_t>(sizeof(T)) % 4096 == 0;
}

/// A is read in place unless both its strides are long, or so many panels pass over it that packing pays, which are few
/// where it is transposed: its columns touch a page each. Rows or columns a multiple of a page apart compete for the
/// same lines of L1: columns are packed then, and where a tile has more rows than L1 has ways and packing does not pay,
/// they are copied to lie a line apart.
template <class T>
RowsOfA rows_of_a(const GemmKernels<T>& kernels, const Matrices<T>& p) {
  constexpr std::int64_t kWays = 8;  // of L1
  if (p.m == 1 || p.k == 1) return RowsOfA::in_place;
  const bool by_rows = p.a_col == 1;
  if (!by_rows && p.a_row != 1) return RowsOfA::packed;
  const bool far_apart = page_apart<T>(by_rows ? p.a_row : p.a_col);
  if (!by_rows) {
    const bool in_place = p.n <= 2 * kernels.tile_cols || (p.m <= 2 * kernels.tile_rows && !far_apart);
    return in_place ? RowsOfA::in_place : RowsOfA::packed;
  }
  const bool few = p.n <= 16 * kernels.tile_cols || p.m <= 2 * kernels.tile_rows;
  if (far_apart && std::min<std::int64_t>(p.m, kernels.tile_rows) > kWays) {
    return few || p.m <= kFewTiles * kernels.tile_rows ? RowsOfA::copied : RowsOfA::packed;
  }
  if (few || (!far_apart && p.n < 32 * kernels.tile_cols)) return RowsOfA::in_place;
  return RowsOfA::packed;
}

/// Returns whether a B whose rows have unit stride is as good as a packed one: a block of it is used once, or lies in
/// L1.
template <class T>
bool needs_no_packing(const GemmKernels<T>& kernels, const Matrices<T>& p) {
  if (p.b_col != 1 && p.n != 1) return false;
  const std::int64_t span =
      std::min(p.k, kBlockK) * std::max(std::abs(p.b_row), p.n) * static_cast<std::int64_t>(sizeof(T));
  return p.m <= kernels.tile_rows || span <= kDirectBytes;
}

/// Such a B is read in place for few rows, too, which packing would take as long as their products. Rows of B a
/// multiple of a page apart share sets of L1, so that each tile fetches them from L2 again.
template <class T>
bool reads_b_in_place(const GemmKernels<T>& kernels, const Matrices<T>& p) {
  if (needs_no_packing(kernels, p)) return true;
  return p.b_col == 1 && !kernels.packs_rows && p.m <= (page_apart<T>(p.b_row) ? kRowsInPlaceFarApart : kRowsInPlace);
}

/// Few rows times a B of whole columns (a linear layer over few rows), or rows times few columns.
template <class T>
bool has_few_rows(const Matrices<T>& p) {
  return p.m <= kThinRows && p.b_row == 1 && p.b_col != 1 && p.n > p.m && !p.accumulate;
}
template <class T>
bool has_few_columns(const Matrices<T>& p) {
  return p.n <= kThinColumns && p.a_col == 1 && p.a_row != 1 && p.m >= p.n && p.m > 1 && !p.accumulate;
}

/// More rows, up to a vector of them, times such a B: packed, it would serve one tile of rows or two. So its columns
/// are the rows of the transposed product, read in place, where that is fast.
template <class T>
Matrices<T> transposed(const Matrices<T>& p, std::int64_t row) {
  return {p.n, p.m, p.k, p.b, p.b_col, p.b_row, p.a, p.a_col, p.a_row, nullptr, row, nullptr, false};
}
template <class T>
bool has_some_rows(const GemmKernels<T>& kernels, const Matrices<T>& p) {
  return p.m > kThinRows && p.m <= kernels.tile_cols / 2 && p.b_row == 1 && p.b_col != 1 && p.n > p.m &&
         !p.accumulate && rows_of_a(kernels, transposed(p, 1)) == RowsOfA::in_place;
}

}  // namespace vesta::cpu
