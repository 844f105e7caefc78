// Copies: plans without a kernel.
#pragma once
#include <vesta/core/ops/pointwise.h>

namespace vesta::cpu {

/// Copies the plan's one input to its destination with conversion; any strides.
void run_copy(const PointwisePlan& plan);

/// A matrix to be transposed: element (i, j) lies at `from + i * from_row + j * item` and goes to `to + j * to_row + i
/// * item` (bytes).
struct Transposition {
  const char* from;
  char* to;
  int64_t from_row, to_row;
  int64_t rows, columns;  // of `from`
  int64_t item;           // 1, 2, 4, 8 or 16
  bool non_temporal = false;       // whether the result bypasses the caches, which could not hold it
};

/// Fewer rows or columns than this are transposed in one pass over all of them, if they are dense on the other side.
inline constexpr int64_t kFewLines = 8;

/// Lines of dense memory that are copied: `from_step` and `to_step` bytes apart, `bytes` long.
struct CopiedLines {
  const char* from;
  char* to;
  int64_t from_step, to_step, lines, bytes;
  bool non_temporal = false;  // whether the result bypasses the caches
};

/// Items copied along two dimensions: steps in bytes along the first and the second one. A step of 0 repeats an item.
struct CopiedPlane {
  const char* from;
  char* to;
  int64_t from_step[2], to_step[2], size[2];
  int64_t item;  // 1, 2, 4, 8 or 16
};

/// A piece of each row of a result: pieces of `bytes`, `step` bytes apart.
struct RowPiece {
  const char* from;
  int64_t step, bytes;
};

/// Dense rows, one behind the other, concatenated from pieces.
struct JoinedRows {
  const RowPiece* pieces;
  int64_t count, rows;
  char* to;
  bool non_temporal = false;  // whether the result bypasses the caches
};

/// Transposes a matrix with the instruction set in use, on this thread.
void transpose_matrix(const Transposition& t);

}  // namespace vesta::cpu
