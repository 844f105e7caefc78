// The arguments of the matrix products: plain data.
#pragma once
#include <cstdint>

#include <vesta/core/dtype.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

inline constexpr int kProductDims = 8;  // of the batch, after merging

/// The products C[m, n] = A[m, k] @ B[k, n] + bias for every index of a batch, outermost dimension first; strides and
/// steps count elements, C is dense. m and n are not 0, k may be.
struct ProductLaunch {
  const char* name = "";
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;
  int64_t m = 1, n = 1, k = 1;
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;  // [n], dense; null: none
  void* c = nullptr;
  int64_t a_row = 0, a_col = 0, b_row = 0, b_col = 0;
  int64_t count = 1;  // products
  int ndim = 0;
  int64_t sizes[kProductDims] = {}, a_step[kProductDims] = {}, b_step[kProductDims] = {};
};

/// The addresses of a batch of products: those of the first matrices, and steps in bytes.
struct ProductPointers {
  StreamHandle stream = nullptr;
  const char *a = nullptr, *b = nullptr, *c = nullptr;
  int64_t count = 1;
  int ndim = 0;
  int64_t sizes[kProductDims] = {}, a_step[kProductDims] = {}, b_step[kProductDims] = {}, c_step[kProductDims] = {};
  const void** to = nullptr;  // [3, count]: of A, of B, of C
};

/// Queues the writing of the addresses.
void run_product_pointers(const ProductPointers& launch);

/// Queues the products, for every dtype but bool. 16-bit floats are summed in float and rounded once.
void run_products(const ProductLaunch& launch);

}  // namespace vesta::cuda
