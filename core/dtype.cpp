#include <vesta/core/dtype.h>

#include <algorithm>
#include <atomic>

namespace vesta {

std::string_view name(DType d) {
  constexpr std::string_view names[] = {
#define VESTA_X(name, type, text) text,
      VESTA_DTYPES(VESTA_X)
#undef VESTA_X
  };
  return names[int(d)];
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (a > b) std::swap(a, b);  // the list is ordered by category: bool, integers, floats, complex
  if (is_complex(b)) {
    if (is_complex(a)) return DType::complex128;
    return a == DType::float64 ? DType::complex128 : b;
  }
  if (is_float(b)) {
    if (a == DType::float16 && b == DType::bfloat16) return DType::float32;
    return b;
  }
  if (a == DType::uint8 && b == DType::int8) return DType::int16;  // the smallest that holds both
  return b;
}

namespace { std::atomic<DType> default_{DType::float32}; }
DType default_dtype() { return default_.load(std::memory_order_relaxed); }
void set_default_dtype(DType d) {
  VESTA_CHECK(is_float(d), type, "set_default_dtype: expected a floating-point dtype, got ", d, ".");
  default_.store(d, std::memory_order_relaxed);
}

}  // namespace vesta
