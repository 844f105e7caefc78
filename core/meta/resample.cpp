// A sparse matrix times a dimension of a tensor: the shape.
#include <vesta/core/ops/resample.h>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>

namespace vesta::meta {
namespace {

Tensor resample(const Tensor& input, int64_t dim, int64_t size, const Tensor& rows, const Tensor& weights, MaybeTensor,
                MaybeTensor) {
  const int64_t d = check_resample(input, dim, size, rows, weights);
  return image(with_size(input, d, size), suggests_channels_last(input), input.dtype());
}

}  // namespace

void register_resample() { ops::_resample.set_kernel(DeviceType::meta, resample); }

}  // namespace vesta::meta
