#include <vesta/core/ops/sort.h>

#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/sort.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_SORT)

Tensor argsort_composite(const Tensor& x, int64_t dim, bool descending) {
  check_real(x, "argsort");
  return std::get<1>(sort(x, dim, descending));
}

Tensor msort_composite(const Tensor& x) {
  check_real(x, "msort");
  return std::get<0>(sort(x, 0));
}

}  // namespace vesta
