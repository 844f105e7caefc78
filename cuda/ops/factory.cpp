// Sequences on the device. Dtypes, lengths and steps are computed as on the CPU.
#include <vesta/core/ops/factory.h>

#include <vesta/core/backend.h>
#include <vesta/cuda/kernels/factory.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

Tensor arange(Scalar start, Scalar end, Scalar step, MaybeDType dtype, MaybeDevice device) {
  ArangePlan plan = arange_plan(start, end, step, dtype);
  Tensor r = empty_tensor({{plan.length}}, plan.dtype, resolved(*device));
  ArangeLaunch l;
  l.dtype = plan.dtype, l.n = plan.length;
  if (is_integral(plan.dtype)) {
    l.first = uint64_t(start.to<int64_t>("arange")), l.by = uint64_t(step.to<int64_t>("arange"));
  } else {
    l.real_first = start.real(), l.real_by = step.real();
  }
  if (!l.n) return r;
  DeviceGuard guard(r.device().index());
  l.out = r.data_ptr(), l.stream = stream_of(r);
  run_arange(l);
  return r;
}

/// Sets both ends and the step between values, in type C, as the CPU computes them.
template <class C>
void set_ends(LinspaceLaunch& l, C start, C end) {
  const C step = l.n > 1 ? C((end - start) / C(double(l.n - 1))) : C(0);
  auto set = [](double (&to)[2], C v) {
    if constexpr (std::is_floating_point_v<C>) to[0] = v;
    else to[0] = v.real(), to[1] = v.imag();
  };
  set(l.start, start), set(l.end, end), set(l.step, step);
}

Tensor linspace(Scalar start, Scalar end, int64_t steps, MaybeDType dtype, MaybeDevice device) {
  DType d = linspace_dtype(start, end, steps, dtype);
  Tensor r = empty_tensor({{steps}}, d, resolved(*device));
  LinspaceLaunch l;
  l.dtype = d, l.n = steps;
  visit<kNumbers>(d, [&]<class T>() {
    if constexpr (is_complex(dtype_of<T>)) {
      set_ends<T>(l, start.to<T>("linspace"), end.to<T>("linspace"));
    } else if constexpr (std::is_integral_v<T>) {
      set_ends<double>(l, double(start.to<T>("linspace")), double(end.to<T>("linspace")));
    } else {
      set_ends<compute_t<T>>(l, compute_t<T>(start.real()), compute_t<T>(end.real()));
    }
  });
  if (!steps) return r;
  DeviceGuard guard(r.device().index());
  l.out = r.data_ptr(), l.stream = stream_of(r);
  run_linspace(l);
  return r;
}

}  // namespace

void register_factory() {
  ops::arange_start_step.set_kernel(DeviceType::cuda, &arange);
  ops::linspace.set_kernel(DeviceType::cuda, &linspace);
}

}  // namespace vesta::cuda
