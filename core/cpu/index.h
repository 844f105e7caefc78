// Kernels of indexing: rows and single elements moved or added at byte offsets.
#pragma once
#include <vesta/core/dtype.h>

namespace vesta::cpu {

/// A move of n elements between the addresses `base + offset[i]` and a strided run (strides in bytes).
struct AtPlaces {
  char* base;
  const int64_t* offset;
  char* run;
  int64_t run_stride;
  int64_t n;
  double alpha = 1;  // for additions
};
/// An addition of alpha times a run of n elements to another run (strides in bytes).
struct RowAddition {
  char* to;
  int64_t to_stride;
  const char* from;
  int64_t from_stride;
  int64_t n;
  double alpha;
};

/// Rows of n bytes, or of n elements, at the addresses `base + offset[k]` and in a run whose rows are `run_step` bytes
/// apart.
struct RowsAtPlaces {
  char* base;
  const int64_t* offset;
  char* run;
  int64_t run_step;
  int64_t rows;
  int64_t n;
  double alpha = 1;  // for additions
  const int64_t* order = nullptr;  // if set, the numbers of the rows, of `offset` and of the run
};

/// The loops of one instruction set: moves, indexed by log2 of the item size, and additions, indexed by dtype.
struct IndexKernels {
  void (*take[5])(const AtPlaces&);  // run[i] = places[i]
  void (*put[5])(const AtPlaces&);   // places[i] = run[i]
  void (*add_at[kNumDTypes])(const AtPlaces&);  // places[i] += alpha * run[i], in order
  void (*add_row[kNumDTypes])(const RowAddition&);
  void (*take_rows)(const RowsAtPlaces&);  // dense rows, n in bytes
  void (*put_rows)(const RowsAtPlaces&);
  void (*add_rows[kNumDTypes])(const RowsAtPlaces&);  // dense rows, in order, n in elements
};

}  // namespace vesta::cpu
