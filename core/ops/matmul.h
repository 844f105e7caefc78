// Matrix products and linear layers, for every device: checks, broadcasting, and strides.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/matmul.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_MATMUL)

/// One batch dimension of a product: `size` products, and the step of each operand in elements (0 broadcasts).
struct ProductBatch {
  int64_t size, a, b, c;
};

/// The product C[m, n] = A[m, k] @ B[k, n] for every index of `batch`, outermost first. Strides count elements; the
/// result is dense, so that a row of C is `n` elements long.
struct Product {
  Dims sizes;  // of the result
  int64_t m = 1, n = 1, k = 0;
  int64_t a_row = 0, a_col = 0, b_row = 0, b_col = 0;
  SmallVector<ProductBatch, 4> batch;
};

/// Checks the operands of matmul and works out the product. Error(type): dtypes differ, or are no numbers.
/// Error(value): a 0-d operand, inner sizes that differ, batches that do not broadcast.
VESTA_API Product matmul_product(const Tensor& a, const Tensor& b);
/// Checks the operands of linear. Error(value): sizes that do not fit.
VESTA_API void check_linear(const Tensor& input, const Tensor& weight, const Tensor& bias);
/// Computes _linear_backward_weight in cases that the device's kernel does not support.
VESTA_API TensorPair _linear_backward_weight_composite(const Tensor& grad, const Tensor& input);
/// Computes _linear_backward_activation in cases that the device's kernel does not support. Nothing of it is recorded.
VESTA_API Tensor _linear_backward_activation_composite(const Tensor& grad, const Tensor& weight, const Tensor& used,
                                                       bool use_gelu, MaybeTensor kept);
/// Computes _fused_linear in cases that the device's kernel does not support.
VESTA_API TensorPair _fused_linear_composite(const Tensor& input, const Tensor& weight, MaybeTensor bias, bool use_gelu,
                                             bool keep);
/// Computes beta * input + alpha * (a times b) by `op`, which takes real factors: complex ones go into the operands.
/// Error(runtime): a complex factor of a real operand.
VESTA_API Tensor with_factors(Tensor (*op)(const Tensor& input, const Tensor& a, const Tensor& b, double beta,
                                           double alpha),
                              const Tensor& input, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha);
/// Computes the same in place by `inplace`, or copies the result of `op` where a factor is complex.
VESTA_API Tensor with_factors_inplace(Tensor (*op)(const Tensor& input, const Tensor& a, const Tensor& b, double beta,
                                                   double alpha),
                                      Tensor (*inplace)(const Tensor& input, const Tensor& a, const Tensor& b,
                                                        double beta, double alpha),
                                      const Tensor& input, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha);
/// Works out input @ weight.T of checked operands. Leading dimensions of the input are rows; `input` is replaced by a
/// dense copy if its rows are not evenly spaced.
VESTA_API Product linear_product(Tensor& input, const Tensor& weight);

}  // namespace vesta
