// Matrix products: shapes.
#include <vesta/core/ops/matmul.h>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>

namespace vesta::meta {
namespace {

Tensor matmul(const Tensor& a, const Tensor& b) { return result(matmul_product(a, b).sizes, a.dtype()); }

Tensor linear(const Tensor& input, const Tensor& weight, MaybeTensor bias) {
  check_linear(input, weight, bias);
  Tensor x = input;
  return result(linear_product(x, weight).sizes, input.dtype());
}

}  // namespace

void register_matmul() {
  ops::matmul.set_kernel(DeviceType::meta, matmul);
  ops::linear.set_kernel(DeviceType::meta, linear);
}

}  // namespace vesta::meta
