#include <vesta/cuda/kernels/fft.h>

#include <vesta/cuda/kernels/types.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 256;

/// A thread does one number and its mirror image, if that does not come before it.
template <class T>
VESTA_KERNEL void hermitian_planes_kernel(HermitianPlanes l, int64_t count) {
  using R = typename T::value_type;
  const int64_t thread = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (thread >= count) return;
  const int64_t per_signal = l.sizes[0] * l.sizes[1] * l.planes;
  const int64_t signal = thread / per_signal, point = thread % per_signal;
  const int64_t plane = point % l.planes, j = point / l.planes % l.sizes[1], i = point / l.planes / l.sizes[1];
  const int64_t mirrored_i = i ? l.sizes[0] - i : 0, mirrored_j = j ? l.sizes[1] - j : 0;
  if (mirrored_i < i || (mirrored_i == i && mirrored_j < j)) return;
  T* const data = static_cast<T*>(l.data) + signal * l.dist + plane * l.next;
  T& own = data[i * l.strides[0] + j * l.strides[1]];
  T& mirrored = data[mirrored_i * l.strides[0] + mirrored_j * l.strides[1]];
  const T z = own, w = mirrored;
  const bool same = i == mirrored_i && j == mirrored_j;
  const T mean = same ? T(z.re, R(0)) : T(R(0.5) * z.re + R(0.5) * w.re, R(0.5) * z.im - R(0.5) * w.im);
  own = mean;
  if (!same) mirrored = T(mean.re, -mean.im);
}

}  // namespace

void run_hermitian_planes(const HermitianPlanes& l) {
  const int64_t count = l.batch * l.sizes[0] * l.sizes[1] * l.planes;
  visit_device<kComplexes>(l.dtype, [&]<class T>() {
    launch_independent("_fft_c2r", hermitian_planes_kernel<T>, linear_shape(uint64_t(count), kThreads, l.stream), l,
                       count);
  });
}

}  // namespace vesta::cuda
