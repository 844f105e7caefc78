// Windows that slide over the last 1 to 3 dimensions of a batch [N, C, ...]: of convolutions and pooling.
#pragma once
#include <array>

#include <vesta/core/tensor.h>

namespace vesta {

/// One number per spatial dimension. Fewer than 3 come last; the first ones then hold the neutral value (1 for sizes,
/// strides and dilations, 0 for paddings and offsets).
using Spatial = std::array<int64_t, 3>;

/// The geometry of a window operation, checked.
struct VESTA_API Window {
  int64_t dims = 2;
  Spatial kernel{1, 1, 1}, stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1}, in{1, 1, 1}, out{1, 1, 1};
  /// Returns [n, c, out...].
  Dims result_sizes(int64_t n, int64_t c) const;
};

/// Returns the elements of one plane.
constexpr int64_t plane_of(const Spatial& s) { return s[0] * s[1] * s[2]; }
/// Returns the index in Spatial of spatial dimension `d` of `dims`.
constexpr size_t place_of(int64_t d, int64_t dims) { return size_t(d + 3 - dims); }
/// Returns the strides of the spatial dimensions, 0 for those that `t` does not have.
VESTA_API Spatial spatial_strides(const Tensor& t);

/// Expands one number to `dims`, the others are `neutral`; raises unless there are one or `dims`, none below `least`.
VESTA_API Spatial spatial_of(IntList v, int64_t dims, int64_t neutral, int64_t least, const char* op,
                             const char* argument);
/// Returns the windows of a convolution over an input [N, C, ...].
VESTA_API Window conv_window(IntSpan input, IntSpan weight, IntList stride, IntList padding, IntList dilation,
                             int64_t groups, const char* op);
/// Returns the windows of a pooling. An empty stride is the kernel's size.
VESTA_API Window pool_window(IntSpan input, IntList kernel, IntList stride, IntList padding, IntList dilation,
                             bool ceil_mode, const char* op);

}  // namespace vesta
