// Sparse matrices times dimensions (core/ops/resample.h).
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/resample.h>
#include <vesta/cuda/constants.h>
#include <vesta/cuda/kernels/resample.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

/// A matrix as an op takes it.
struct Matrix {
  int64_t size;
  const Tensor &rows, &weights;
  ResampleAxis axis(int64_t in) const {
    return {in, size, weights.numel(), rows.data_ptr<int64_t>(), weights.impl()->data()};
  }
};

/// Returns a tensor's values as another dtype.
Tensor converted(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor r = empty_tensor(x.sizes(), dtype, x.device());
  copy_values(r, x);
  return r;
}

/// Computes the product for an input whose memory is in the order of its dimensions; d counts from 0. The dimension
/// behind d is multiplied by `along`, if there is one.
Tensor resample_dense(const Tensor& input, int64_t d, const Matrix& matrix, const Matrix* along) {
  const OperandDevice device(input);
  const Tensor x = contiguous_values(input);
  const int64_t last = along ? d + 1 : d;
  Dims sizes(x.sizes());
  sizes[size_t(d)] = matrix.size;
  if (along) sizes[size_t(last)] = along->size;
  Tensor y = empty_tensor(sizes, x.dtype(), x.device());
  if (y.numel() == 0) return y;
  ResampleLaunch l;
  l.name = along ? "_resample_planes" : "_resample", l.stream = device.stream(), l.dtype = x.dtype();
  for (int64_t i = 0; i < d; ++i) l.outer *= x.size(i);
  for (int64_t i = last + 1; i < x.dim(); ++i) l.inner *= x.size(i);
  constexpr int64_t kFew = 32;  // elements, which are better seen as part of a line than as one
  if (along) l.down = matrix.axis(x.size(d)), l.along = along->axis(x.size(last));
  else if (l.inner < kFew) l.along = matrix.axis(x.size(d));
  else l.down = matrix.axis(x.size(d));
  l.input = x.impl()->data(), l.result = y.impl()->data();
  if (run_resample(l)) return y;
  const Tensor rows = resample_dense(converted(x, compute_type(x.dtype())), d, matrix, nullptr);
  return converted(resample_dense(rows, last, *along, nullptr), x.dtype());
}

Tensor resample_kernel(const Tensor& input, int64_t dim, int64_t size, const Tensor& rows, const Tensor& weights,
                       MaybeTensor, MaybeTensor) {
  const int64_t d = check_resample(input, dim, size, rows, weights);
  const Matrix matrix{size, rows, weights};
  if (suggests_channels_last(input)) {  // the same product in the order of the memory
    const int64_t at = d == 0 ? 0 : d == 1 ? input.dim() - 1 : d - 1;
    const Tensor pixels = channels_behind(dense_image(input, true));
    return channels_second(resample_dense(pixels, at, matrix, nullptr));
  }
  return resample_dense(input, d, matrix, nullptr);
}

Tensor resample_planes_kernel(const Tensor& input, int64_t dim, IntList size, const Tensor& rows, const Tensor& weights,
                              const Tensor& columns, const Tensor& column_weights, MaybeTensor, MaybeTensor,
                              MaybeTensor, MaybeTensor) {
  const int64_t d = check_resample_planes(input, dim, size, rows, weights, columns, column_weights);
  const Matrix down{size[0], rows, weights}, along{size[1], columns, column_weights};
  if (d >= 2 && suggests_channels_last(input)) {
    return channels_second(resample_dense(channels_behind(dense_image(input, true)), d - 1, down, &along));
  }
  const Tensor y = resample_dense(input, d, down, &along);
  return suggests_channels_last(input) ? dense_image(y, true) : y;
}

}  // namespace

void register_resample() {
  set_table_keeper(DeviceType::cuda, [](const void* bytes, size_t nbytes, Device device) {
    return constant_memory(bytes, nbytes, device.index());
  });
  ops::_resample.set_kernel(DeviceType::cuda, resample_kernel);
  ops::_resample_planes.set_kernel(DeviceType::cuda, resample_planes_kernel);
}

}  // namespace vesta::cuda
