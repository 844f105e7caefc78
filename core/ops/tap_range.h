// Which taps of a sliding window lie on elements: for kernels on the host and on devices.
#pragma once
#include <cstdint>

#include <vesta/core/base/macros.h>

namespace vesta {

/// The taps of a window, along one dimension, that lie on elements: [first, last).
struct TapRange {
  std::int64_t first, last;
};

/// Returns which of `kernel` taps, `dilation` apart and the first at `corner` < n, lie in [0, n). It divides at the
/// borders only; a kernel may be as large as its padding makes it, so nobody goes through all of its taps.
VESTA_HD constexpr TapRange taps_inside(std::int64_t corner, std::int64_t kernel, std::int64_t dilation,
                                        std::int64_t n) {
  TapRange t{0, kernel};
  if (corner < 0) t.first = (-corner - 1) / dilation + 1;
  if ((kernel - 1) * dilation >= n - corner) t.last = (n - corner - 1) / dilation + 1;
  return t;
}

}  // namespace vesta
