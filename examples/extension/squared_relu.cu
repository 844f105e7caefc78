// squared_relu on CUDA: one thread per element, on the current stream.
#include <cuda_runtime.h>
#include <vesta/core/tensor.h>
#include <vesta/cuda/api.h>

using vesta::Tensor;

template <class T>
__global__ void kernel(const T* x, const T* grad, T* out, int64_t n) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const T v = x[i] > 0 ? x[i] : T(0);
  out[i] = grad ? grad[i] * 2 * v : v * v;
}

template <class T>
void launch(const Tensor& x, const Tensor& grad, Tensor& out, cudaStream_t stream) {
  constexpr int kThreads = 256;
  const int64_t n = x.numel();
  kernel<T><<<unsigned((n + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      x.data_ptr<T>(), grad.defined() ? grad.data_ptr<T>() : nullptr, out.data_ptr<T>(), n);
  VESTA_CHECK(cudaGetLastError() == cudaSuccess, runtime, "squared_relu: the kernel was not launched.");
}

void squared_relu_cuda(const Tensor& x, const Tensor& grad, Tensor& out) {
  if (x.numel() == 0) return;
  const auto& cuda = vesta::cuda::api();
  const int device = x.device().index();
  const auto stream = reinterpret_cast<cudaStream_t>(cuda.stream_handle(device, cuda.current_stream(device)));
  if (x.dtype() == vesta::DType::float32) launch<float>(x, grad, out, stream);
  else launch<double>(x, grad, out, stream);
}
