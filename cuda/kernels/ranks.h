// The arguments of the kernel that finds the first elements of lines in order.
#pragma once
#include <vesta/core/dtype_set.h>

#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

inline constexpr int64_t kMostRanks = 1024;  // that a block keeps

/// A search for the `count` smallest, or largest, elements of each of `lines` contiguous lines, of equals the first
/// ones. A block takes a piece of a line; where a line has several, it gives the best of each, from which a second
/// launch chooses.
struct RanksLaunch {
  DType dtype = DType::float32;  // a real one or bool
  StreamHandle stream = nullptr;
  int64_t lines = 1, length = 1;  // length < 2^31
  int64_t piece = 1, pieces = 1;  // elements of a piece, and pieces of a line
  int64_t inner = 1;              // result i of line n lies at (n / inner * count + i) * inner + n % inner
  unsigned count = 1;             // at most kMostRanks and the elements of each piece
  bool largest = false;
  const void* in = nullptr;
  const int64_t* chosen = nullptr;  // [lines, piece]: the indices to choose from; null: all of the piece
  int64_t* places = nullptr;
};

/// Queues places = the indices of the first elements, in order.
void run_ranks(const RanksLaunch& l);

}  // namespace vesta::cuda
