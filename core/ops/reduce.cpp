#include <vesta/core/ops/reduce.h>

#include <cmath>
#include <limits>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/reduce.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_REDUCE)

ReduceShape reduce_shape(const Tensor& input, const MaybeDims& dim, bool keepdim, const char* op) {
  ReduceShape r{dim_mask(dim ? IntSpan(*dim) : IntSpan(), input.dim(), op), 1, {}};
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (r.mask >> d & 1) {
      r.count *= input.sizes()[size_t(d)];
      if (keepdim) r.sizes.push_back(1);
    } else {
      r.sizes.push_back(input.sizes()[size_t(d)]);
    }
  }
  return r;
}

DType bins_dtype(DType input, int64_t bins, double min, double max) {
  const double largest = std::numeric_limits<float>::max() / 2;
  const bool fits = (max - min) * double(bins) < largest && std::fabs(min) < largest && std::fabs(max) < largest;
  return is_float(input) && input != DType::float64 && fits ? DType::float32 : DType::float64;
}

}  // namespace vesta
