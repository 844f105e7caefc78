// The arguments of the sorting kernels.
#pragma once
#include <vesta/core/dtype_set.h>
#include <vesta/cuda/kernels/radix_sort.h>

namespace vesta::cuda {

/// A stable sort along the middle dimension of [outer, length, inner], contiguous. Elements are numbered line by line:
/// element i is the (i % length)-th of line i / length.
struct LineSort {
  DType dtype = DType::float32;  // a real one or bool
  StreamHandle stream = nullptr;
  int64_t outer = 1, length = 1, inner = 1;
  bool descending = false;
  const void* in = nullptr;
  void* values = nullptr;
  int64_t* places = nullptr;
};

/// Queues a sort of lines of at most kSortTile elements: a block takes as many lines as fit into a tile.
void run_sort_lines(const LineSort& l);

// Longer lines are sorted together: all elements by value, and then, in that order, by line.

/// Queues keys[i] = the key of element i; keys have 64 bits if `wide`, else 32.
void run_value_keys(const LineSort& l, void* keys, bool wide);
/// Queues keys[j] = the line of element order[j].
void run_line_keys(const LineSort& l, const void* order, void* keys, bool wide);
/// Queues the results of a single line: element i is order[i], and `keys` are sorted.
void run_line_results(const LineSort& l, const void* order, const void* keys, bool wide);
/// Queues the results: the i-th element of all lines is order[lines[i]].
void run_sort_results(const LineSort& l, const void* order, const void* lines, bool wide);

}  // namespace vesta::cuda
