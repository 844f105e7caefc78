#include <vesta/core/ops/kernel_checks.h>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/random.h>

namespace vesta {

void check_bernoulli_(const Tensor& t, double p) {
  check_probability(p, "bernoulli_");
  VESTA_CHECK(!t.is_complex(), not_implemented, "bernoulli_: expected a real dtype, got ", t.dtype(), ".");
}

void check_bernoulli(const Tensor& p) {
  VESTA_CHECK(is_float(p.dtype()), not_implemented, "bernoulli: expected a floating-point dtype, got ", p.dtype(), ".");
}

void check_native_dropout(const Tensor& input, double p) {
  check_probability(p, "native_dropout");
  VESTA_CHECK(is_differentiable(input.dtype()), not_implemented,
              "native_dropout: expected a float or complex dtype, got ", input.dtype(), ".");
}

Tensor check_embedding(const Tensor& weight, const Tensor& indices) {
  VESTA_CHECK(weight.dim() == 2, runtime, "embedding: expected a 2-d weight, got ", weight.dim(),
              " dimensions (weight).");
  return index_as_int64(indices, "embedding", "indices");
}

void check_fft_c2r(const Tensor& input, int64_t dim, int64_t last_dim_size) {
  VESTA_CHECK(last_dim_size > 0 && input.size(dim) == last_dim_size / 2 + 1, value,
              "_fft_c2r: expected the last of dim to have the size ", last_dim_size / 2 + 1, ", got ", input.size(dim),
              ".");
}

void check_place_input(const Tensor& input, MaybeInt dim, const char* op) {
  VESTA_CHECK(input.dtype() != DType::bool_, type, op,
              ": does not support bool input. Convert it with .to(vesta.uint8).");
  VESTA_CHECK(dim || input.numel() > 0, index, op, ": Expected reduction dim to be specified for input.numel() == 0.");
}

void check_uplo(Text uplo, const char* op) {
  VESTA_CHECK(uplo == "L" || uplo == "U" || uplo == "l" || uplo == "u", runtime, op,
              ": Expected UPLO argument to be 'L' or 'U', but got ", uplo, ".");
}

void check_no_driver(MaybeText driver) {
  VESTA_CHECK(!driver, runtime,
              "linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.");
}

}  // namespace vesta
