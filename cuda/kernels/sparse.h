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

}  // namespace vesta::cuda
