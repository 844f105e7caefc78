// A sparse matrix times a dimension (core/ops/resample.h).
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/resample.h>
#include <vesta/cuda/kernels/resample.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

Tensor resample_kernel(const Tensor& input, int64_t dim, int64_t size, const Tensor& rows, const Tensor& weights,
                       MaybeTensor, MaybeTensor) {
  const int64_t d = check_resample(input, dim, size, rows, weights);
  const OperandDevice device(input);
  const Tensor x = contiguous(input);
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

}  // namespace

void register_resample() { ops::_resample.set_kernel(DeviceType::cuda, resample_kernel); }

}  // namespace vesta::cuda
