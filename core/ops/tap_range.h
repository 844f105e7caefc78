// The range of taps of a sliding window that lie on elements: for kernels on the host and on devices.
#pragma once
#include <cstdint>
#include <type_traits>

#include <vesta/core/base/macros.h>

namespace vesta {

/// The taps of a window, along one dimension, that lie on elements: [first, last).
template <class I>
struct Taps {
  I first, last;
};
using TapRange = Taps<std::int64_t>;

/// Returns which of `kernel` taps, `dilation` apart and the first at `corner` < n, lie in [0, n). It divides at the
/// borders only; a kernel may be as large as its padding makes it, so its taps are not all visited.
template <class I>
VESTA_HD constexpr Taps<I> taps_inside(I corner, std::type_identity_t<I> kernel, std::type_identity_t<I> dilation,
                                       std::type_identity_t<I> n) {
  Taps<I> t{0, kernel};
  if (corner < 0) t.first = (-corner - 1) / dilation + 1;
  if ((kernel - 1) * dilation >= n - corner) t.last = (n - corner - 1) / dilation + 1;
  return t;
}

}  // namespace vesta
