// The interface between the reduction driver and its kernels, per operation and dtype.
#pragma once
#include <cstdint>

#include <vesta/core/cpu/isa.h>
#include <vesta/core/dtype.h>

namespace vesta::cpu {

enum class Reduction : uint8_t { sum, product, max, min, any, all, squares };
inline constexpr int kNumReductions = 7;

/// The longest run that one call of `run` reduces, and the most rows that one call of `columns` does: the leaves of
/// the tree.
inline constexpr int64_t kReduceRun = 65536;
inline constexpr int64_t kReduceRows = 1024;

/// The kernels that reduce runs of elements to accumulators of type `acc`, or, where that is none of the dtypes, of
/// acc_bytes bytes.
struct ReduceKernels {
  DType acc = DType::float32;
  int64_t acc_bytes = 4;
  /// Reduces n contiguous elements to one accumulator.
  void (*run)(const char* x, int64_t n, char* acc) = nullptr;
  /// Does that for rows `stride` bytes apart; null where `run` is as good.
  void (*runs)(const char* x, int64_t stride, int64_t rows, int64_t n, char* acc) = nullptr;
  /// Reduces `rows` rows of `cols` contiguous elements, `stride` bytes apart, to `cols` accumulators.
  void (*columns)(const char* x, int64_t stride, int64_t rows, int64_t cols, char* acc) = nullptr;
  /// Combines n accumulators: into[i] = into[i] op from[i].
  void (*combine)(char* into, const char* from, int64_t n) = nullptr;
  /// Writes the result of reducing nothing, n times.
  void (*identity)(char* acc, int64_t n) = nullptr;
  /// Returns the index of the first extremum of n contiguous elements (max and min only); NaN wins.
  int64_t (*find)(const char* x, int64_t n) = nullptr;
  /// Writes the same for `cols` columns of contiguous elements whose rows, fewer than 2^31, lie `stride` bytes apart.
  void (*find_columns)(const char* x, int64_t stride, int64_t rows, int64_t cols, int64_t* places) = nullptr;
};

/// A kernel that computes the statistics of `cols` columns of contiguous elements in `rows` rows `stride` bytes apart.
using ColumnMoments = void (*)(const char* x, int64_t stride, int64_t rows, int64_t cols, char* statistics);

}  // namespace vesta::cpu

VESTA_DECLARE_ON_ISA(void register_column_moments(vesta::cpu::ColumnMoments (&table)[vesta::kNumDTypes]))
