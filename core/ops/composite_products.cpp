// Products that are made of others: their gradients come from matmul's.
#include <algorithm>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/view.h>

namespace vesta {
namespace {

void check_vector(const Tensor& t, const char* op, const char* argument) {
  VESTA_CHECK(t.dim() == 1, runtime, op, ": expected a 1-d tensor, got shape ", t.sizes(), " (", argument, ").");
}

void check_number(const Tensor& t, const char* op) {
  VESTA_CHECK(t.dtype() != DType::bool_, not_implemented, op, ": expected a number dtype, got bool.");
}

void check_dot(const Tensor& a, const Tensor& b, const char* op, const char* second) {
  VESTA_CHECK(a.dim() == 1 && b.dim() == 1, runtime, op, ": 1D tensors expected, but got ", a.dim(), "D and ", b.dim(),
              "D tensors.");
  VESTA_CHECK(a.numel() == b.numel(), runtime, op, ": inconsistent tensor size, expected tensor ", a.sizes(),
              " and src ", b.sizes(), " to have the same number of elements.");
  VESTA_CHECK(a.dtype() == b.dtype(), runtime, op, ": expected both vectors to have same dtype, but found ", a.dtype(),
              " (input) and ", b.dtype(), " (", second, ").");
  check_number(a, op);
}

}  // namespace

Tensor mv_composite(const Tensor& input, const Tensor& vec) {
  VESTA_CHECK(input.dim() == 2 && vec.dim() == 1, runtime, "mv: expected a matrix and a vector, got ", input.sizes(),
              " (input) and ", vec.sizes(), " (vec).");
  VESTA_CHECK(input.size(1) == vec.size(0), runtime, "mv: size mismatch, got input ", input.sizes(), ", vec ",
              vec.sizes(), ".");
  check_number(input, "mv");
  return matmul(input, vec);
}

Tensor dot_composite(const Tensor& input, const Tensor& tensor) {
  check_dot(input, tensor, "dot", "tensor");
  return matmul(input, tensor);
}

Tensor vdot_composite(const Tensor& input, const Tensor& other) {
  check_dot(input, other, "vdot", "other");
  return matmul(input.is_complex() ? conj_physical(input) : input, other);
}

Tensor inner_composite(const Tensor& input, const Tensor& other) {
  if (input.dim() == 0 || other.dim() == 0) return mul(input, other);
  VESTA_CHECK(input.size(-1) == other.size(-1), runtime, "inner: the last dimension must match on both input tensors ",
              "but got shapes ", input.sizes(), " and ", other.sizes(), ".");
  const int64_t n = input.size(-1);
  Dims shape(input.sizes());
  shape.pop_back();
  for (int64_t d = 0; d + 1 < other.dim(); ++d) shape.push_back(other.size(d));
  int64_t rows = 1, columns = 1;
  for (int64_t d = 0; d + 1 < input.dim(); ++d) rows *= input.size(d);
  for (int64_t d = 0; d + 1 < other.dim(); ++d) columns *= other.size(d);
  return view(matmul(reshape(input, {rows, n}), transpose(reshape(other, {columns, n}), 0, 1)), shape);
}

Tensor outer_composite(const Tensor& input, const Tensor& vec2) {
  check_vector(input, "outer", "input");
  check_vector(vec2, "outer", "vec2");
  return mul(unsqueeze(input, 1), vec2);
}

Tensor addmv_composite(const Tensor& input, const Tensor& mat, const Tensor& vec, double beta, double alpha) {
  VESTA_CHECK(mat.dim() == 2 && vec.dim() == 1 && mat.size(1) == vec.size(0), runtime,
              "addmv: expected a matrix [n, m] and a vector [m], got ", mat.sizes(), " (mat) and ", vec.sizes(),
              " (vec).");
  check_number(mat, "addmv");
  const Dims sizes{mat.size(0)};
  VESTA_CHECK(std::ranges::equal(IntSpan(broadcast_shapes(sizes, input.sizes(), "addmv")), IntSpan(sizes)), runtime,
              "addmv: expected an input that broadcasts to ", IntSpan(sizes), ", got ", input.sizes(), ".");
  return squeeze(addmm(unsqueeze(input, -1), mat, unsqueeze(vec, 1), beta, alpha), 1);
}

Tensor kron_composite(const Tensor& input, const Tensor& other) {
  const int64_t ndim = std::max(input.dim(), other.dim());
  Dims a, b, joined;
  for (int64_t d = 0; d < ndim; ++d) {
    const int64_t of_a = d - (ndim - input.dim()), of_b = d - (ndim - other.dim());
    const int64_t n = of_a < 0 ? 1 : input.size(of_a), m = of_b < 0 ? 1 : other.size(of_b);
    a.push_back(n), a.push_back(1);
    b.push_back(1), b.push_back(m);
    joined.push_back(checked_mul(n, m, "kron"));
  }
  return reshape(mul(reshape(input, a), reshape(other, b)), joined);
}

}  // namespace vesta
