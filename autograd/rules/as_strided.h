// Geometry of views over a base, and the gradient of as_strided, which every view can be reduced to.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta::autograd::rules {

/// The geometry of a tensor's elements in its storage.
struct Geometry {
  Dims sizes, strides;
  int64_t offset = 0;
  Geometry() = default;
  explicit Geometry(const Tensor& t) : sizes(t.sizes()), strides(t.strides()), offset(t.storage_offset()) {}
};

/// Returns the geometry of a complex tensor's real and imaginary parts, in real numbers: that of its view_as_real.
Geometry in_reals(Geometry g);
/// Returns a real tensor of shape [*, 2] as a complex one, a copy where its strides do not allow a view.
Tensor as_complex(const Tensor& parts);

/// Returns the first element of the storage that either touches.
inline int64_t first(const Geometry& a, const Geometry& b) { return std::min(a.offset, b.offset); }
/// Returns how many elements lie between the first and the last that either touches.
int64_t extent(const Geometry& a, const Geometry& b);
/// Views a one-dimensional buffer, whose element 0 is element `origin` of the storage, with geometry `g`.
Tensor geometry_of(const Tensor& buffer, const Geometry& g, int64_t origin);

/// Returns the gradient of a tensor of geometry `from` when that of its as_strided(`to`) is `grad`: elements add up
/// where `to` repeats them, and are shared equally where `from` does.
Tensor as_strided_backward(const Tensor& grad, const Geometry& from, const Geometry& to);

}  // namespace vesta::autograd::rules
