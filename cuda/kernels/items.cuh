// Elements that are only moved: types of their size.
#pragma once
#include <cstdint>

namespace vesta::cuda {

struct alignas(16) Sixteen {
  uint64_t words[2];
};

/// Calls f with a value of an unsigned type of `item` bytes.
template <class F>
void visit_item(int64_t item, F f) {
  switch (item) {
    case 1: return f(uint8_t());
    case 2: return f(uint16_t());
    case 4: return f(uint32_t());
    case 8: return f(uint64_t());
    default: return f(Sixteen());
  }
}

}  // namespace vesta::cuda
