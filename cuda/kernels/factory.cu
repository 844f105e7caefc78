#include <vesta/cuda/kernels/factory.h>

#include <vesta/cuda/kernels/rounded.cuh>
#include <vesta/cuda/kernels/types.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 256;

VESTA_DEVICE int64_t element() { return int64_t(blockIdx.x) * blockDim.x + threadIdx.x; }

template <class T>
VESTA_KERNEL void arange_kernel(ArangeLaunch l) {
  const int64_t i = element();
  if (i >= l.n) return;
  if constexpr (std::is_integral_v<T>) {
    static_cast<T*>(l.out)[i] = T(l.first + uint64_t(i) * l.by);
  } else {
    const double v = rounded::add(l.real_first, rounded::mul(double(i), l.real_by));
    static_cast<T*>(l.out)[i] = convert<T>(static_cast<compute_of<T>>(v));
  }
}

/// Computes one part of a number: counted from the start in the first half and from the end in the second.
template <class C>
VESTA_DEVICE C part(const LinspaceLaunch& l, int k, int64_t i) {
  const C step = C(l.step[k]);
  if (i < l.n / 2 || l.n == 1) return rounded::add(C(l.start[k]), rounded::mul(step, C(double(i))));
  return rounded::sub(C(l.end[k]), rounded::mul(step, C(double(l.n - 1 - i))));
}

template <class T>
VESTA_KERNEL void linspace_kernel(LinspaceLaunch l) {
  const int64_t i = element();
  if (i >= l.n) return;
  T* out = static_cast<T*>(l.out);
  if constexpr (is_complex_type<T>) {
    using R = typename T::value_type;
    out[i] = T(part<R>(l, 0, i), part<R>(l, 1, i));
  } else if constexpr (std::is_integral_v<T>) {
    out[i] = static_cast<T>(part<double>(l, 0, i));
  } else {
    out[i] = convert<T>(part<compute_of<T>>(l, 0, i));
  }
}

}  // namespace

void run_arange(const ArangeLaunch& l) {
  visit_device<kReals>(l.dtype, [&]<class T>() {
    launch_independent("arange", arange_kernel<T>, linear_shape(uint64_t(l.n), kThreads, l.stream), l);
  });
}

void run_linspace(const LinspaceLaunch& l) {
  visit_device<kNumbers>(l.dtype, [&]<class T>() {
    launch_independent("linspace", linspace_kernel<T>, linear_shape(uint64_t(l.n), kThreads, l.stream), l);
  });
}

}  // namespace vesta::cuda
