// Element types: the C++ type of each, promotion, and `visit`. The list itself is dtype_set.h.
#pragma once
#include <complex>
#include <cstdint>
#include <string_view>

#include <vesta/core/base/error.h>
#include <vesta/core/base/half.h>
#include <vesta/core/dtype_set.h>

namespace vesta {

using complex64 = std::complex<float>;
using complex128 = std::complex<double>;

/// The map from a C++ element type to its DType: `dtype_of<float> == DType::float32`.
template <class T>
struct DTypeOf;
/// The map from a DType to its C++ element type.
template <DType D>
struct TypeOf;
#define VESTA_X(name, type_, text)                                             \
  template <>                                                                  \
  struct DTypeOf<type_> { static constexpr DType value = DType::name; };       \
  template <>                                                                  \
  struct TypeOf<DType::name> { using type = type_; };
VESTA_DTYPES(VESTA_X)
#undef VESTA_X
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;
template <DType D>
using type_of = typename TypeOf<D>::type;

/// Returns PyTorch's name of the type, without the module.
VESTA_API std::string_view name(DType d);
inline void append(std::string& to, DType d) { to += vesta::name(d); }  // for text()

/// Returns the smallest type both convert to, by PyTorch's lattice (float16 with bfloat16 gives float32).
VESTA_API DType promote(DType a, DType b);
/// Returns the floating type of Python floats and of factories (float32 unless set).
VESTA_API DType default_dtype();
/// Sets the default floating type; float16, bfloat16, float32 or float64.
VESTA_API void set_default_dtype(DType d);

/// The type that T computes in: float for 16-bit floats, T itself for the rest.
template <class T>
struct ComputeType {
  using type = T;
};
template <>
struct ComputeType<Half> {
  using type = float;
};
template <>
struct ComputeType<BFloat16> {
  using type = float;
};
template <class T>
using compute_t = typename ComputeType<T>::type;

/// Calls `f.template operator()<T>()` for the C++ type of `d`, which must be in Set.
template <DTypeSet Set = kAllTypes, class F>
decltype(auto) visit(DType d, F&& f) {
  switch (d) {
#define VESTA_X(name_, type, text)                                                             \
  case DType::name_:                                                                           \
    if constexpr (Set.has(DType::name_)) return f.template operator()<type>();                 \
    break;
    VESTA_DTYPES(VESTA_X)
#undef VESTA_X
  }
  fail(Cause::not_implemented, "no kernel for ", name(d));
}

}  // namespace vesta
