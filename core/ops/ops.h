// The ops as C++ sees them: `vesta::exp(x)` calls the object `vesta::ops::exp`. All of it follows from the roll call.
#pragma once
#include <vesta/core/ops/stamp.h>

namespace vesta {

VESTA_POINTWISE_DECLARE(VESTA_POINTWISE)
VESTA_OPS_DECLARE(VESTA_STRUCTURED)

// Composites are functions and nothing else, defined in composite*.cpp.
namespace ops::sig {
VESTA_COMPOSITE(VESTA_X_SIGNATURE_METHOD, VESTA_X_SIGNATURE_FUNCTION)
}
#define VESTA_X_COMPOSITE_METHOD(R, name, params, args) VESTA_API R name(const Tensor& input VESTA_COMMA params);
#define VESTA_X_COMPOSITE(R, name, params, args) VESTA_API R name params;
VESTA_COMPOSITE(VESTA_X_COMPOSITE_METHOD, VESTA_X_COMPOSITE)
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
R call(const A&... a) {
  return Invoke<Tag>::run(a...);
}
template <class Tag, class... A>
void call_inplace(const A&... a) {
  Invoke<Tag>::inplace(a...);
}
}  // namespace ops

}  // namespace vesta
