// The arguments of products of sparse matrices.
#pragma once
#include <vesta/core/dtype_set.h>

#include <vesta/cuda/kernels/fault_record.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// The product of a CSR matrix [rows, inner] with `count` elements and a dense one [inner, columns], contiguous.
struct CsrProduct {
  DType dtype = DType::float32, index = DType::int64;  // of the values; of ends and places (int32 or int64)
  StreamHandle stream = nullptr;
  int64_t rows = 0, inner = 0, columns = 0, count = 0;
  const void *ends = nullptr, *places = nullptr, *values = nullptr, *dense = nullptr;
  void* out = nullptr;
  Fault* fault = nullptr;
  const char* name = "matmul";
  const char* not_ends = "";  // the message for rows that do not end in order
};

/// Queues the product. Places outside of the matrix are reported, and left out.
void run_csr_product(const CsrProduct& l);

/// The places of n elements in up to kSparseDims dimensions, numbered in row-major order.
inline constexpr int kSparseDims = 64;
struct SparsePlaces {
  StreamHandle stream = nullptr;
  int64_t n = 0;
  int dims = 0;
  int64_t sizes[kSparseDims] = {};
  const int64_t* indices = nullptr;  // of element i in dimension d: indices[d * row + i * column]
  int64_t row = 0, column = 1;
};
/// Queues numbers[i] = the number of place i, of 32 bits unless `wide`.
void run_sparse_numbers(const SparsePlaces& p, void* numbers, bool wide);
/// Queues places[d][i] = the index in dimension d of place number numbers[i]; `p` has no indices.
void run_sparse_places(const SparsePlaces& p, const int64_t* numbers, int64_t* places);

/// Sorted numbers of places, and the elements that have them.
struct SparseRuns {
  const void *numbers = nullptr, *elements = nullptr;  // of 32 bits unless `wide`
  bool wide = false;
  int64_t* order = nullptr;  // [n], the elements
  int64_t* group = nullptr;  // [n], how many places there are up to that of element i
};
/// Queues group[i] = whether number i is the first of its kind, and order.
void run_sparse_heads(const SparsePlaces& p, const SparseRuns& r);
/// Queues places [dims, count] and starts [count + 1] of `count` different numbers.
void run_sparse_starts(const SparsePlaces& p, const SparseRuns& r, int64_t count, int64_t* places, int64_t* starts);

/// The sums of runs of the rows of values [*, columns]: row order[starts[i]] to order[starts[i + 1] - 1], of numbers.
struct RunSums {
  DType dtype = DType::float32;
  StreamHandle stream = nullptr;
  int64_t count = 0, columns = 0;
  const int64_t *order = nullptr, *starts = nullptr;
  const void* values = nullptr;
  void* out = nullptr;  // [count, columns]
};
/// Queues the sums, in order; 16-bit floats are added in float.
void run_run_sums(const RunSums& l);

}  // namespace vesta::cuda
