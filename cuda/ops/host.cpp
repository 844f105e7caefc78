// Ops that the host computes: decompositions of matrices and Fourier transforms. Their operands are copied to the
// host, the CPU's kernel runs, and its results are copied back. The host waits for both copies.
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/fft.h>
#include <vesta/core/ops/linalg.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

/// The arguments of a call on the host.
Tensor on_host(const Tensor& t) { return t.defined() ? t.to(Device(DeviceType::cpu)) : t; }
template <class A>
const A& on_host(const A& argument) {
  return argument;
}

void see_device(Device& device, const Tensor& t) {
  if (t.defined()) device = t.device();
}
template <class A>
void see_device(Device&, const A&) {}

Tensor on_device(const Tensor& t, Device device) { return t.to(device); }
template <class... T>
std::tuple<T...> on_device(const std::tuple<T...>& results, Device device) {
  return std::apply([&](const T&... t) { return std::tuple<T...>(on_device(t, device)...); }, results);
}

template <auto& op, class R, class... A>
R run_on_host(A... a) {
  Device device(DeviceType::cpu);
  (see_device(device, a), ...);
  return on_device(op(on_host(a)...), device);
}
template <auto& op, class R, class... A>
void register_one(Op<R(A...)>& o) {
  o.set_kernel(DeviceType::cuda, &run_on_host<op, R, A...>);
}
template <auto&... ops>
void register_ops() {
  (register_one<ops>(ops), ...);
}

}  // namespace

void register_host() {
  register_ops<ops::linalg_cholesky_ex, ops::linalg_lu_factor_ex, ops::_pivots_to_permutation, ops::linalg_eigh,
               ops::geqrf, ops::linalg_ldl_factor_ex, ops::linalg_ldl_solve, ops::linalg_eig, ops::_linalg_svd,
               ops::linalg_qr, ops::linalg_solve_triangular, ops::_fft_r2c, ops::_fft_c2r, ops::_fft_c2c>();
}

}  // namespace vesta::cuda
