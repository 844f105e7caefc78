// Sequences: arange and linspace. Each value is computed from its index, so the number of threads does not matter.
#include <vesta/core/ops/factory.h>

#include <cmath>

#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/ops/destination.h>

namespace vesta::cpu {
namespace {

/// Writes value(i) to every element i.
template <class T, class F>
void generate(const Tensor& to, F value) {
  T* p = reinterpret_cast<T*>(to.impl()->data());
  parallel_for(to.numel(), kElementGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) p[i] = value(i);
  });
}

Tensor arange(Scalar start, Scalar end, Scalar step, MaybeDType dtype, MaybeDevice device) {
  ArangePlan plan = arange_plan(start, end, step, dtype);
  Tensor r = result_tensor({{plan.length}}, plan.dtype, device.value_or(Device()));
  visit<kReals>(plan.dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      auto first = uint64_t(start.to<int64_t>("arange")), by = uint64_t(step.to<int64_t>("arange"));
      generate<T>(r, [=](int64_t i) { return T(first + uint64_t(i) * by); });
    } else {
      double first = start.real(), by = step.real();
      generate<T>(r, [=](int64_t i) { return T(compute_t<T>(first + double(i) * by)); });
    }
  });
  return r;
}

/// Counts from both ends, so that the last value is `end` itself (PyTorch's rule).
template <class T, class C>
void fill_linspace(const Tensor& r, C start, C end) {
  int64_t steps = r.numel();
  C step = steps > 1 ? C((end - start) / C(double(steps - 1))) : C(0);
  generate<T>(r, [=](int64_t i) {
    return static_cast<T>(i < steps / 2 || steps == 1 ? start + step * C(double(i))
                                                      : end - step * C(double(steps - 1 - i)));
  });
}

Tensor linspace(Scalar start, Scalar end, int64_t steps, MaybeDType dtype, MaybeDevice device) {
  DType d = linspace_dtype(start, end, steps, dtype);
  Tensor r = result_tensor({{steps}}, d, device.value_or(Device()));
  visit<kNumbers>(d, [&]<class T>() {
    if constexpr (is_complex(dtype_of<T>)) {
      fill_linspace<T, T>(r, start.to<T>("linspace"), end.to<T>("linspace"));
    } else if constexpr (std::is_integral_v<T>) {
      fill_linspace<T, double>(r, double(start.to<T>("linspace")), double(end.to<T>("linspace")));
    } else {
      fill_linspace<T, compute_t<T>>(r, compute_t<T>(start.real()), compute_t<T>(end.real()));
    }
  });
  return r;
}

}  // namespace

void register_factory() {
  ops::arange_start_step.set_kernel(DeviceType::cpu, &arange);
  ops::linspace.set_kernel(DeviceType::cpu, &linspace);
}

}  // namespace vesta::cpu
