// Ops that the host computes: decompositions of matrices that NVIDIA's libraries lack (LDL; eigenvalues of matrices
// that are not symmetric, as in PyTorch).
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/linalg.h>
#include <vesta/cuda/ops/host.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

template <auto& op, class R, class... A>
void register_one(Op<R(A...)>& o) {
  o.set_kernel(DeviceType::cuda, &run_on_host<op, R, A...>);
}
template <auto&... ops>
void register_ops() {
  (register_one<ops>(ops), ...);
}

}  // namespace

void register_host() { register_ops<ops::linalg_ldl_factor_ex, ops::linalg_ldl_solve, ops::linalg_eig>(); }

}  // namespace vesta::cuda
