// AT_DISPATCH_...(type, "name", [&] { ... }): runs a lambda in which scalar_t is the C++ type of an element type.
//
//   AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale", [&] {
//     for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<scalar_t>()[i] *= 2;
//   });
#pragma once
#include <torch/exceptions.h>

#define AT_DISPATCH_CASE(type, ...)                        \
  case ::vesta::DType(type): {                             \
    using scalar_t = ::vesta::type_of<::vesta::DType(type)>; \
    return __VA_ARGS__();                                  \
  }
#define AT_DISPATCH_SWITCH(type, name, ...)                                                              \
  [&] {                                                                                                  \
    const ::vesta::DType vesta_dispatched = (type);                                                       \
    switch (vesta_dispatched) {                                                                           \
      __VA_ARGS__                                                                                        \
      default: AT_ERROR('"', name, "\" not implemented for '", ::torch::toString(vesta_dispatched), "'"); \
    }                                                                                                    \
  }()

// clang-format off
#define AT_DISPATCH_CASE_FLOATING_TYPES(...) \
  AT_DISPATCH_CASE(::vesta::DType::float64, __VA_ARGS__) AT_DISPATCH_CASE(::vesta::DType::float32, __VA_ARGS__)
#define AT_DISPATCH_CASE_COMPLEX_TYPES(...) \
  AT_DISPATCH_CASE(::vesta::DType::complex128, __VA_ARGS__) AT_DISPATCH_CASE(::vesta::DType::complex64, __VA_ARGS__)
#define AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(...) \
  AT_DISPATCH_CASE(::vesta::DType::float16, __VA_ARGS__) AT_DISPATCH_CASE(::vesta::DType::bfloat16, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)                                                                      \
  AT_DISPATCH_CASE(::vesta::DType::uint8, __VA_ARGS__) AT_DISPATCH_CASE(::vesta::DType::int8, __VA_ARGS__)        \
  AT_DISPATCH_CASE(::vesta::DType::int16, __VA_ARGS__) AT_DISPATCH_CASE(::vesta::DType::int32, __VA_ARGS__)       \
  AT_DISPATCH_CASE(::vesta::DType::int64, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...) AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(...) AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) \
  AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(...) AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) \
  AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_COMPLEX_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX(type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(type, name, ...) \
  AT_DISPATCH_FLOATING_TYPES_AND(::vesta::DType::float16, type, name, __VA_ARGS__)
#define AT_DISPATCH_INDEX_TYPES(type, name, ...)                                                            \
  [&] {                                                                                                     \
    const ::vesta::DType vesta_dispatched = (type);                                                          \
    if (vesta_dispatched == ::vesta::DType::int32) {                                                         \
      using index_t = int32_t;                                                                              \
      return __VA_ARGS__();                                                                                 \
    }                                                                                                       \
    TORCH_CHECK(vesta_dispatched == ::vesta::DType::int64, '"', name, "\" not implemented for '",            \
                ::torch::toString(vesta_dispatched), "'");                                                   \
    using index_t = int64_t;                                                                                \
    return __VA_ARGS__();                                                                                   \
  }()

// Some types of a group and others: "..._AND2(kHalf, kBFloat16, type, name, lambda)".
#define AT_DISPATCH_FLOATING_TYPES_AND(a, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES_AND(a, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(a, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(a, b, type, name, ...)                                            \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__) \
                     AT_DISPATCH_CASE(b, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(a, b, type, name, ...)                                            \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__) \
                     AT_DISPATCH_CASE(b, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND3(a, b, c, type, name, ...)                                         \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(a, __VA_ARGS__) \
                     AT_DISPATCH_CASE(b, __VA_ARGS__) AT_DISPATCH_CASE(c, __VA_ARGS__))
// clang-format on
