// The binary interface of cuFFT, as far as we use it.
#pragma once
#include <cstddef>

namespace vesta::cuda::cufft {

using Handle = int;  // of a plan
using Status = int;

constexpr Status kSuccess = 0, kAllocationFailed = 2, kInternalError = 5;

enum DataType : int { r_32f = 0, r_64f = 1, c_32f = 4, c_64f = 5 };
enum Direction : int { forward = -1, inverse = 1 };

/// The functions of cuFFT. Element (i, j, k) of signal b is at b * dist + ((i * embed[1] + j) * embed[2] + k) * stride.
struct Functions {
  Status (*create)(Handle*);
  Status (*destroy)(Handle);
  Status (*set_auto_allocation)(Handle, int is_on);
  Status (*make_plan)(Handle, int rank, long long* sizes, long long* in_embed, long long in_stride, long long in_dist,
                      int in_type, long long* out_embed, long long out_stride, long long out_dist, int out_type,
                      long long batch, size_t* work_size, int execution_type);
  Status (*set_stream)(Handle, void* stream);
  Status (*set_work_area)(Handle, void* area);
  Status (*execute)(Handle, void* in, void* out, int direction);
};

}  // namespace vesta::cuda::cufft
