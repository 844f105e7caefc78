// The results of meta functions: tensors that have a shape and no memory.
#pragma once
#include <initializer_list>

#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/memory_format.h>

namespace vesta::meta {

inline constexpr Device kMeta{DeviceType::meta};

/// Makes a contiguous result, or takes the tensor of out= that fits.
inline Tensor result(IntSpan sizes, DType dtype) { return result_tensor(sizes, dtype, kMeta); }
inline Tensor result(std::initializer_list<int64_t> sizes, DType dtype) { return result(Dims(sizes), dtype); }
/// Makes a result whose layout is that of an op over images.
inline Tensor image(IntSpan sizes, bool channels_last, DType dtype) {
  return image_result(sizes, channels_last, dtype, kMeta);
}
/// Makes a contiguous result of the shape and dtype of `t`.
inline Tensor like(const Tensor& t) { return result(t.sizes(), t.dtype()); }
inline Tensor like(const Tensor& t, DType dtype) { return result(t.sizes(), dtype); }
/// Returns the sizes of `t` with that of dimension `dim`, not negative, replaced; a 0-d tensor has none.
inline Dims with_size(const Tensor& t, int64_t dim, int64_t size) {
  Dims sizes(t.sizes());
  if (!sizes.empty()) sizes[size_t(dim)] = size;
  return sizes;
}

}  // namespace vesta::meta
