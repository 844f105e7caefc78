// The arguments of what Fourier transforms need beside cuFFT.
#pragma once
#include <vesta/core/dtype_set.h>

#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// Halves of spectra, of `batch` signals that lie `dist` complex numbers apart. Their first two dimensions have sizes
/// and strides; of the last one, the planes at 0 and, if `planes` is 2, at `next` are their own mirror images.
struct HermitianPlanes {
  DType dtype = DType::complex64;
  StreamHandle stream = nullptr;
  void* data = nullptr;
  int64_t batch = 1, dist = 0;
  int64_t sizes[2] = {1, 1}, strides[2] = {0, 0};
  int64_t planes = 1, next = 0;
};

/// Queues data = its Hermitian part, in these planes: the mean of each number and the conjugate of its mirror image.
void run_hermitian_planes(const HermitianPlanes& l);

}  // namespace vesta::cuda
