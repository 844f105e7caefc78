// The methods of class Tensor: all other files see their declarations, this one makes bodies of the same lines (Note
// [Functions are declarations] in functions.cpp). A body in a class is inline by that alone; class Tensor is the same
// one otherwise (Note [A tensor that knows no op] in tensor.h).
#undef VESTA_TENSOR_WITHOUT_OPS  // which the other files of this level are compiled with
#define VESTA_DEFINES_METHODS
#include <vesta/core/ops/ops.h>

namespace vesta::ops {

// ---- Invoke<tag::OBJECT>: what a method calls ----
#define VESTA_INVOKE(kind, ...) VESTA_LINE_##kind(VESTA_INVOKE, __VA_ARGS__)
#define VESTA_INVOKE_POINTWISE(name, ...)                                  \
  template <>                                                              \
  struct Invoke<tag::name> {                                               \
    static Tensor run(const auto&... a) { return ops::name(a..., Out{}); } \
    static void inplace(const Tensor& self, const auto&... a) {            \
      ops::name(self, a..., Out{&self, Out::inplace});                     \
    }                                                                      \
  };
#define VESTA_INVOKE_OUT(R, object, ...) VESTA_INVOKE_POINTWISE(object)
#define VESTA_INVOKE_POINTWISE_PAIR(name, ...) VESTA_INVOKE_OP(TensorPair, name)
#define VESTA_INVOKE_OP(R, object, ...)                          \
  template <>                                                    \
  struct Invoke<tag::object> {                                   \
    static R run(const auto&... a) { return ops::object(a...); } \
  };
#define VESTA_INVOKE_TWIN(...) VESTA_INVOKE_OP(__VA_ARGS__)
#define VESTA_INVOKE_COPIED(source, ...) VESTA_INVOKE_OP(__VA_ARGS__)
#define VESTA_INVOKE_IN(...)
#define VESTA_INVOKE_FORM(R, object, name, ...)                      \
  template <>                                                        \
  struct Invoke<tag::object> {                                       \
    static R run(const auto&... a) { return ::vesta::name(a...); }   \
  };
#define VESTA_INVOKE_PYTHON_FORM(...)
#define VESTA_INVOKE_ALIAS(...)
#define VESTA_INVOKE_OF_TOPIC(topic, LIST) LIST(VESTA_INVOKE)
VESTA_TOPICS(VESTA_INVOKE_OF_TOPIC)

}  // namespace vesta::ops
