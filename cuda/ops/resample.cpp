// A sparse matrix times a dimension (core/ops/resample.h).
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/resample.h>
#include <vesta/cuda/kernels/resample.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

/// Computes the product for an input whose memory is in the order of its dimensions; d counts from 0.
Tensor resample_dense(const Tensor& input, int64_t d, int64_t size, const Tensor& rows, const Tensor& weights) {
  const OperandDevice device(input);
  const Tensor x = contiguous_values(input);
  Dims sizes(x.sizes());
  sizes[size_t(d)] = size;
  Tensor y = empty_tensor(sizes, x.dtype(), x.device());
  if (y.numel() == 0) return y;
  ResampleLaunch l;
  l.name = "_resample", l.stream = device.stream(), l.dtype = x.dtype();
  l.outer = l.inner = 1, l.in = x.size(d), l.size = size;
  for (int64_t i = 0; i < d; ++i) l.outer *= x.size(i);
  for (int64_t i = d + 1; i < x.dim(); ++i) l.inner *= x.size(i);
  l.rows = rows.data_ptr<int64_t>(), l.weights = weights.impl()->data();
  l.input = x.impl()->data(), l.result = y.impl()->data();
  run_resample(l);
  return y;
}

Tensor resample_kernel(const Tensor& input, int64_t dim, int64_t size, const Tensor& rows, const Tensor& weights,
                       MaybeTensor, MaybeTensor) {
  const int64_t d = check_resample(input, dim, size, rows, weights);
  if (suggests_channels_last(input)) {  // the same product in the order of the memory
    const int64_t at = d == 0 ? 0 : d == 1 ? input.dim() - 1 : d - 1;
    const Tensor pixels = channels_behind(dense_image(input, true));
    return channels_second(resample_dense(pixels, at, size, rows, weights));
  }
  return resample_dense(input, d, size, rows, weights);
}

}  // namespace

void register_resample() { ops::_resample.set_kernel(DeviceType::cuda, resample_kernel); }

}  // namespace vesta::cuda
