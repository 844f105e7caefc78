// A sparse matrix times a dimension of a tensor, one thread per element of the result: neighbours read neighbours.
#include <vesta/cuda/kernels/resample.h>

#include <algorithm>

#include <vesta/cuda/kernels/types.cuh>

namespace vesta::cuda {
namespace {

template <class T>
VESTA_KERNEL void resample_kernel(ResampleLaunch l, int64_t n) {
  using C = compute_of<T>;
  const int64_t* places = l.rows + l.size + 1;
  const C* weights = static_cast<const C*>(l.weights);
  for (int64_t i = int64_t(global_index()); i < n; i += int64_t(gridDim.x) * blockDim.x) {
    const int64_t line = i / l.inner, at = i - line * l.inner, outer = line / l.size, row = line - outer * l.size;
    const T* x = static_cast<const T*>(l.input) + outer * l.in * l.inner + at;
    C sum = C(0);
    for (int64_t k = l.rows[row]; k < l.rows[row + 1]; ++k) sum = sum + weights[k] * convert<C>(x[places[k] * l.inner]);
    static_cast<T*>(l.result)[i] = convert<T>(sum);
  }
}

}  // namespace

void run_resample(const ResampleLaunch& l) {
  const int64_t n = l.outer * l.size * l.inner;
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    launch_independent(l.name, resample_kernel<T>, linear_shape(uint64_t(std::min<int64_t>(n, 1 << 30)), 256, l.stream),
                       l, n);
  });
}

}  // namespace vesta::cuda
