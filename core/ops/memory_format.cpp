#include <vesta/core/ops/memory_format.h>

#include <algorithm>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/shape.h>

namespace vesta {

bool suggests_channels_last(const Tensor& t) {
  const int64_t dims = t.dim();
  if ((dims != 4 && dims != 5) || t.strides()[1] == 0) return false;
  int64_t least = 0;
  // channels, then the spatial dimensions from the last one on, then the batch
  for (int64_t i = 0; i < dims; ++i) {
    const size_t d = i == 0 ? 1 : i == dims - 1 ? 0 : size_t(dims - i);
    const int64_t size = t.sizes()[d], stride = t.strides()[d];
    if (size == 0 || stride < least) return false;
    if (d == 0 && least == t.strides()[1]) return false;  // [N, 1, 1, 1], whose strides are all the same
    least = size > 1 ? stride * size : stride;
  }
  return true;
}

bool convolution_is_channels_last(const Tensor& input, const Tensor& weight) {
  const bool cuda = input.device().type() == DeviceType::cuda;
  if (input.dtype() == DType::float64 && (cuda || input.dim() == 5)) return false;
  return suggests_channels_last(input) || suggests_channels_last(weight);
}

Dims image_strides(IntSpan sizes, bool channels_last) {
  if (!channels_last) return contiguous_strides(sizes);
  return strides_in(sizes.size() == 4 ? "channels_last" : "channels_last_3d", sizes, "image_strides");
}

Tensor empty_image(IntSpan sizes, bool channels_last, DType dtype, Device device) {
  if (!channels_last) return empty_tensor(sizes, dtype, device);
  return empty_tensor_strided(sizes, image_strides(sizes, true), dtype, device);
}

Tensor image_result(IntSpan sizes, bool channels_last, DType dtype, Device device) {
  return channels_last ? empty_image(sizes, true, dtype, device) : result_tensor(sizes, dtype, device);
}

Tensor dense_image(const Tensor& t, bool channels_last) {
  const Dims want = image_strides(t.sizes(), channels_last);
  if (std::ranges::equal(IntSpan(want), t.strides())) return t;
  bool same = true;
  for (size_t d = 0; d < want.size(); ++d) same = same && (t.sizes()[d] == 1 || t.strides()[d] == want[d]);
  if (same) {  // the strides of dimensions of size 1 alone are others
    return Tensor(TensorImpl::make(t.impl()->storage(), t.sizes(), want, t.impl()->offset(), t.dtype(), "dense_image"));
  }
  Tensor r = empty_tensor_strided(t.sizes(), want, t.dtype(), t.device());
  copy_values(r, t);
  return r;
}

Tensor clone_image(const Tensor& t) {
  if (!suggests_channels_last(t)) return clone(t, "contiguous_format");
  return clone(t, t.dim() == 4 ? "channels_last" : "channels_last_3d");
}

/// Returns a view with exact strides of a tensor whose own differ from them in dimensions of size 1 alone.
static Tensor with_strides(const Tensor& t, const Dims& want) {
  return std::ranges::equal(IntSpan(want), t.strides()) ? t : as_strided(t, t.sizes(), want);
}

Tensor to_channels_last(const Tensor& t) {
  return with_strides(contiguous(t, t.dim() == 4 ? "channels_last" : "channels_last_3d"),
                      image_strides(t.sizes(), true));
}

Tensor to_rows(const Tensor& t) { return with_strides(contiguous(t), contiguous_strides(t.sizes())); }

Tensor channels_behind(const Tensor& t) {
  Dims order{0};
  for (int64_t d = 2; d < t.dim(); ++d) order.push_back(d);
  order.push_back(1);
  return permute(t, order);
}

Tensor channels_second(const Tensor& t) {
  Dims order{0, t.dim() - 1};
  for (int64_t d = 1; d < t.dim() - 1; ++d) order.push_back(d);
  return permute(t, order);
}

}  // namespace vesta
