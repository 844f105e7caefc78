// Fourier transforms: shapes.
#include <vesta/core/ops/fft.h>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>
#include <vesta/core/ops/kernel_checks.h>

namespace vesta::meta {
namespace {

Tensor c2c(const Tensor& input, IntList dim, int64_t normalization, bool) {
  fft_scale(normalization, input.sizes(), fft_dims(input, dim, true, "_fft_c2c"));
  return like(input);
}

Tensor r2c(const Tensor& input, IntList dim, int64_t normalization, bool onesided) {
  const Dims dims = fft_dims(input, dim, false, "_fft_r2c");
  fft_scale(normalization, input.sizes(), dims);
  const DType dtype = complex_type(input.dtype());
  return onesided ? result(with_size(input, dims.back(), input.size(dims.back()) / 2 + 1), dtype) : like(input, dtype);
}

Tensor c2r(const Tensor& input, IntList dim, int64_t normalization, int64_t last_dim_size) {
  const Dims dims = fft_dims(input, dim, true, "_fft_c2r");
  check_fft_c2r(input, dims.back(), last_dim_size);
  const Dims sizes = with_size(input, dims.back(), last_dim_size);
  fft_scale(normalization, sizes, dims);
  return result(sizes, real_type(input.dtype()));
}

}  // namespace

void register_fft() {
  ops::_fft_c2c.set_kernel(DeviceType::meta, c2c);
  ops::_fft_r2c.set_kernel(DeviceType::meta, r2c);
  ops::_fft_c2r.set_kernel(DeviceType::meta, c2r);
}

}  // namespace vesta::meta
