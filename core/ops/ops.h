// The ops as C++ sees them: `vesta::exp(x)` calls the object `vesta::ops::exp`. All of it follows from the roll call.
#pragma once
#include <vesta/core/ops/pointwise.h>

namespace vesta {

// ops::sig::NAME::call has the full parameter list of NAME, for its type only.
namespace ops::sig {
#define VESTA_X_UNARY(name, Struct, params, args) \
  struct name { static Tensor call(const Tensor& input VESTA_COMMA params, Out out = {}); };
#define VESTA_X_BINARY(name, Struct, params, args) \
  struct name { static Tensor call(const Tensor& input, const Tensor& other VESTA_COMMA params, Out out = {}); };
#define VESTA_X_TERNARY(name, Struct, first, second, third) \
  struct name { static Tensor call(const Tensor& first, const Tensor& second, const Tensor& third, Out out = {}); };
#define VESTA_X_METHOD(R, name, params, args) \
  struct name { static R call(const Tensor& input VESTA_COMMA params); };
#define VESTA_X_FUNCTION(R, name, params, args) \
  struct name { static R call params; };
VESTA_POINTWISE(VESTA_X_UNARY, VESTA_X_BINARY, VESTA_X_TERNARY)
VESTA_STRUCTURED(VESTA_X_METHOD, VESTA_X_FUNCTION)
VESTA_COMPOSITE(VESTA_X_METHOD, VESTA_X_FUNCTION)
#undef VESTA_X_UNARY
#undef VESTA_X_BINARY
#undef VESTA_X_TERNARY
#undef VESTA_X_METHOD
#undef VESTA_X_FUNCTION
}  // namespace ops::sig

// The Op objects: layers and kernels are registered with them. Composites have none.
namespace ops {
#define VESTA_X_UNARY(name, Struct, params, args) \
  extern VESTA_API constinit PointwiseOp<decltype(sig::name::call)> name;
#define VESTA_X_BINARY VESTA_X_UNARY
#define VESTA_X_TERNARY(name, Struct, first, second, third) VESTA_X_UNARY(name, Struct, (), ())
#define VESTA_X_STRUCTURED(R, name, params, args) extern VESTA_API constinit Op<decltype(sig::name::call)> name;
VESTA_POINTWISE(VESTA_X_UNARY, VESTA_X_BINARY, VESTA_X_TERNARY)
VESTA_STRUCTURED(VESTA_X_STRUCTURED, VESTA_X_STRUCTURED)
#undef VESTA_X_UNARY
#undef VESTA_X_BINARY
#undef VESTA_X_TERNARY
#undef VESTA_X_STRUCTURED
}  // namespace ops

// The functions. `name_out(out, ...)` writes to `out` and returns it.
#define VESTA_X_UNARY(name, Struct, params, args)                                                                  \
  inline Tensor name(const Tensor& input VESTA_COMMA params) { return ops::name(input VESTA_COMMA args, Out{}); }  \
  inline const Tensor& name##_out(const Tensor& out, const Tensor& input VESTA_COMMA params) {                     \
    ops::name(input VESTA_COMMA args, Out{&out, Out::given});                                                      \
    return out;                                                                                                    \
  }
#define VESTA_X_BINARY(name, Struct, params, args)                                                                 \
  VESTA_X_UNARY(name, Struct, (const Tensor& other VESTA_COMMA params), (other VESTA_COMMA args))                  \
  inline Tensor name(const Tensor& input, Scalar other VESTA_COMMA params) {                                       \
    return ops::name(input, wrapped(other) VESTA_COMMA args, Out{});                                               \
  }
#define VESTA_X_TERNARY(name, Struct, first, second, third)                         \
  inline Tensor name(const Tensor& first, const Tensor& second, const Tensor& third) { \
    return ops::name(first, second, third, Out{});                                  \
  }
#define VESTA_X_METHOD(R, name, params, args) \
  inline R name(const Tensor& input VESTA_COMMA params) { return ops::name(input VESTA_COMMA args); }
#define VESTA_X_FUNCTION(R, name, params, args) \
  inline R name params { return ops::name(VESTA_UNPAREN args); }
#define VESTA_UNPAREN(...) __VA_ARGS__
// Composites are functions and nothing else, defined in composite.cpp.
#define VESTA_X_COMPOSITE_METHOD(R, name, params, args) VESTA_API R name(const Tensor& input VESTA_COMMA params);
#define VESTA_X_COMPOSITE(R, name, params, args) VESTA_API R name params;
VESTA_POINTWISE(VESTA_X_UNARY, VESTA_X_BINARY, VESTA_X_TERNARY)
VESTA_STRUCTURED(VESTA_X_METHOD, VESTA_X_FUNCTION)
VESTA_COMPOSITE(VESTA_X_COMPOSITE_METHOD, VESTA_X_COMPOSITE)
#undef VESTA_X_UNARY
#undef VESTA_X_BINARY
#undef VESTA_X_TERNARY
#undef VESTA_X_METHOD
#undef VESTA_X_FUNCTION
#undef VESTA_X_COMPOSITE_METHOD
#undef VESTA_X_COMPOSITE

namespace ops {
// What a method of Tensor resolves to: run(...) for every op, inplace(...) for the pointwise ones.
template <class Tag>
struct Invoke;
#define VESTA_X_POINTWISE(name_, ...)                                                                   \
  template <>                                                                                           \
  struct Invoke<tag::name_> {                                                                           \
    static auto run(const auto&... a) { return ops::name_(a..., Out{}); }                               \
    static void inplace(const Tensor& self, const auto&... a) { ops::name_(self, a..., Out{&self, Out::inplace}); } \
  };
#define VESTA_X_STRUCTURED(R, name_, params, args)                    \
  template <>                                                         \
  struct Invoke<tag::name_> {                                         \
    static R run(const auto&... a) { return ::vesta::name_(a...); }   \
  };
VESTA_POINTWISE(VESTA_X_POINTWISE, VESTA_X_POINTWISE, VESTA_X_POINTWISE)
VESTA_STRUCTURED(VESTA_X_STRUCTURED, VESTA_X_STRUCTURED)
VESTA_COMPOSITE(VESTA_X_STRUCTURED, VESTA_X_STRUCTURED)
#undef VESTA_X_POINTWISE
#undef VESTA_X_STRUCTURED

template <class Tag, class R, class... A>
R call(const A&... a) { return Invoke<Tag>::run(a...); }
template <class Tag, class... A>
void call_inplace(const A&... a) { Invoke<Tag>::inplace(a...); }
}  // namespace ops

}  // namespace vesta
