#include <vesta/core/ops/reduce_checks.h>

#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>

namespace vesta {

ReduceShape extremum_shape(const Tensor& input, const MaybeDims& dim, bool keepdim, const char* op) {
  check_real(input, op);
  ReduceShape shape = reduce_shape(input, dim, keepdim, op);
  VESTA_CHECK(shape.count > 0, index, op, ": Expected reduction dim to have non-zero size, got shape ", input.sizes(),
              ". Specify a dim that is not empty.");
  return shape;
}

ReduceShape place_shape(const Tensor& input, int64_t dim, bool keepdim, const char* op) {
  check_real(input, op);
  ReduceShape shape = reduce_shape(input, dim, keepdim, op);
  VESTA_CHECK(shape.count > 0 || input.numel() != 0 || numel_of(shape.sizes, op) == 0, index, op,
              ": Expected reduction dim ", dim, " to have non-zero size.");
  return shape;
}

Tensor none_reduced(const Tensor& input) {
  const Tensor each = ne(input, 0);
  return input.dtype() == DType::uint8 ? each.to(DType::uint8) : each;
}

SumTypes sum_types(DType input, MaybeDType dtype) {
  const DType result = dtype ? *dtype : is_differentiable(input) ? input : DType::int64;
  // A wider type is wanted: add up in it. A narrower one: the accumulator is converted once. Fractions that are to be
  // integers or bools are so before they are added, as PyTorch documents: 0.6 + 0.6 is 0 then, and 1 - 1 is true.
  const bool wider = dtype && is_differentiable(result) && promote(result, input) != input;
  const bool whole = is_differentiable(input) && !is_differentiable(result);
  return {wider || whole ? result : input, result};
}

SumTypes mean_types(DType input, MaybeDType dtype) {
  const DType result = dtype.value_or(input);
  VESTA_CHECK(is_differentiable(result), type,
              "mean: could not infer output dtype. Input dtype must be either a floating "
              "point or complex dtype. Got: ",
              result, ".");
  return {promote(result, input), result};
}

}  // namespace vesta
