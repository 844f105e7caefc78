// Conversions between any two dtypes, over any strides: copies, casts and gathers are built on them.
#include <vesta/core/cpu/convert.h>

#include <cstring>
#include <limits>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

/// Converts one value: floats to integers saturate and NaN becomes 0, so that every result is defined; a complex value
/// gives its real part; any value but zero is true.
template <class To, class From>
VESTA_INLINE To convert_value(From v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (is_complex(dtype_of<From>)) {
    if constexpr (is_complex(dtype_of<To>))
      return To(typename To::value_type(v.real()), typename To::value_type(v.imag()));
    else if constexpr (std::is_same_v<To, bool>) return v.real() != 0 || v.imag() != 0;
    else return convert_value<To>(v.real());
  } else if constexpr (is_complex(dtype_of<To>)) {
    return To(convert_value<typename To::value_type>(v));
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return convert_value<To>(float(v));
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(v));
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using Limits = std::numeric_limits<To>;
    if (!(v == v)) return 0;
    if (v <= From(Limits::min())) return Limits::min();
    if (v >= From(Limits::max())) return Limits::max();
    return static_cast<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

template <class To, class From>
void convert_run(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t n) {
  if (from_stride == int64_t(sizeof(From)) && to_stride == int64_t(sizeof(To))) {
    if constexpr (std::is_same_v<To, From>) {
      std::memcpy(to, from, size_t(n) * sizeof(To));
    } else {
      auto* a = reinterpret_cast<const From*>(from);
      auto* b = reinterpret_cast<To*>(to);
      for (int64_t i = 0; i < n; ++i) b[i] = convert_value<To>(a[i]);
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    *reinterpret_cast<To*>(to + i * to_stride) =
        convert_value<To>(*reinterpret_cast<const From*>(from + i * from_stride));
  }
}

}  // namespace

void register_convert(Convert (&table)[kNumDTypes][kNumDTypes]) {
  auto column = [&]<class From>() {
#define VESTA_X(name, type, text) table[int(dtype_of<From>)][int(DType::name)] = &convert_run<type, From>;
    VESTA_DTYPES(VESTA_X)
#undef VESTA_X
  };
#define VESTA_X(name, type, text) column.template operator()<type>();
  VESTA_DTYPES(VESTA_X)
#undef VESTA_X
}

}  // namespace vesta::cpu::VESTA_ISA_NS
