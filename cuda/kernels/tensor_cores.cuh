// Products of 16-bit floats by tensor cores: a warp computes a tile of 16 x 16 sums in float.
//
// Tiles of the factors lie in shared memory, 32-byte aligned, the distance of their rows a multiple of 8 elements; that
// of the sums a multiple of 4. The emulated device computes the same sums one by one.
#pragma once
#include <vesta/cuda/kernels/types.cuh>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
#endif

namespace vesta::cuda {

#ifdef __CUDACC__

/// A tile of sums, spread over the lanes of a warp. All lanes call each function with the same arguments.
template <class T>
class TileSum {
  using Number = std::conditional_t<std::is_same_v<T, Half>, __half, __nv_bfloat16>;
  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> sum_;

 public:
  VESTA_DEVICE TileSum() { nvcuda::wmma::fill_fragment(sum_, 0.0f); }
  /// Adds A B: 16 rows of a, 16 long; b has 16 rows, or 16 columns one after the other if not `by_rows`.
  template <bool by_rows>
  VESTA_DEVICE void add(const T* a, int a_row, const T* b, int b_row) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, Number, row_major> x;
    fragment<matrix_b, 16, 16, 16, Number, std::conditional_t<by_rows, row_major, col_major>> y;
    load_matrix_sync(x, reinterpret_cast<const Number*>(a), unsigned(a_row));
    load_matrix_sync(y, reinterpret_cast<const Number*>(b), unsigned(b_row));
    mma_sync(sum_, x, y, sum_);
  }
  VESTA_DEVICE void store(float* to, int row) const {
    nvcuda::wmma::store_matrix_sync(to, sum_, unsigned(row), nvcuda::wmma::mem_row_major);
  }
};

#else

template <class T>
class TileSum {
  float sum_[8] = {};  // elements 8 lane to 8 lane + 7

 public:
  template <bool by_rows>
  void add(const T* a, int a_row, const T* b, int b_row) {
    for (int e = 0; e < 8; ++e) {
      const int at = int(lane_index()) * 8 + e, row = at / 16, column = at % 16;
      for (int k = 0; k < 16; ++k) {
        sum_[e] += float(a[row * a_row + k]) * float(by_rows ? b[k * b_row + column] : b[column * b_row + k]);
      }
    }
  }
  void store(float* to, int row) const {
    for (int e = 0; e < 8; ++e) {
      const int at = int(lane_index()) * 8 + e;
      to[at / 16 * row + at % 16] = sum_[e];
    }
  }
};

#endif

}  // namespace vesta::cuda
