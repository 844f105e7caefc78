// The positions that grid_sampler reads along one axis: for kernels on the host and on devices.
#pragma once
#include <vesta/core/ops/math.h>

namespace vesta {

enum class GridPadding : int { zeros, border, reflection };

/// One axis of an image of n elements: maps grid coordinates to element coordinates. T is float or double.
template <class T>
struct GridAxis {
  T n, scale, low, span;
  GridPadding padding;
  bool align_corners;

  /// Makes an axis whose corners -1 and 1 are the centres of elements 0 and n - 1, or their outer edges.
  VESTA_INLINE static GridAxis of(std::int64_t n, GridPadding padding, bool align_corners) {
    const T size = T(n), last = T(n - 1);
    return {size,
            align_corners ? last / 2 : size,
            align_corners ? T(0) : T(-0.5),
            align_corners ? last : size,
            padding,
            align_corners};
  }

  /// Returns the element coordinate of a grid coordinate, and the slope of that map. Outside of the image, a coordinate
  /// is clipped to the border, reflected, or left as it is. As in PyTorch, the slope is 0 on a border; NaN becomes 0.
  template <class V>
  VESTA_HD VESTA_INLINE V place(V g, V& slope) const {
    const V zero(T(0)), half(T(0.5));
    V at = (g + V(T(1))) * V(scale);
    slope = V(align_corners ? scale : scale / 2);
    if (!align_corners) at = (at - V(T(1))) * half;
    if (padding == GridPadding::reflection) {
      if (span == T(0)) {
        at = slope = zero;
      } else {
        const V from = at - V(low), turns = math::floor(math::abs(from) / V(span));
        const V rest = math::abs(from) - turns * V(span), pairs = turns * half;
        const auto odd = pairs != math::floor(pairs);
        slope = math::select(odd != (from < zero), -slope, slope);
        at = math::select(odd, V(span + low) - rest, rest + V(low));
      }
    }
    if (padding != GridPadding::zeros) {
      const V last(n - T(1));
      const auto above = at > zero, below = at < last;
      slope = math::select(above, math::select(below, slope, zero), zero);
      at = math::select(above, math::select(below, at, last), zero);
    }
    return at;
  }
};

}  // namespace vesta
