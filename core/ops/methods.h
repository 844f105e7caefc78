// The methods that class Tensor has of the op list; included by tensor.h alone. methods.cpp defines them
// (Note [Functions are declarations] in functions.cpp).
#pragma once
#include <vesta/core/ops/lines.h>
#include <vesta/core/ops/topics.h>

#ifndef VESTA_DEFINES_METHODS
#define VESTA_METHOD(R, name, params, object, args) R name params const;
#define VESTA_METHOD_ON_SELF(name, params, object, args) const Tensor& name params const;
#else
namespace vesta::ops {
// A tag per object, and the calls that the methods are written with. No object is declared where the class is.
#define VESTA_TAG(kind, ...) VESTA_LINE_##kind(VESTA_TAG, __VA_ARGS__)
#define VESTA_TAG_POINTWISE(name, ...) struct name;
#define VESTA_TAG_POINTWISE_PAIR(name, ...) struct name;
#define VESTA_TAG_OP(R, object, ...) struct object;
#define VESTA_TAG_OUT(R, object, ...) struct object;
#define VESTA_TAG_TWIN(R, object, ...) struct object;
#define VESTA_TAG_COPIED(source, R, object, ...) struct object;
#define VESTA_TAG_IN(...)
#define VESTA_TAG_FORM(R, object, ...) struct object;
#define VESTA_TAG_PYTHON_FORM(...)
#define VESTA_TAG_ALIAS(...)
#define VESTA_X(topic, LIST) LIST(VESTA_TAG)
namespace tag {
VESTA_TOPICS(VESTA_X)
}
#undef VESTA_X
template <class Tag>
struct Invoke;
template <class Tag, class R, class... A>
R call(const A&... a) {
  return Invoke<Tag>::run(a...);
}
template <class Tag, class... A>
void call_inplace(const A&... a) {
  Invoke<Tag>::inplace(a...);
}
}  // namespace vesta::ops

// A function in a class is inline: `used` emits it nevertheless.
#define VESTA_METHOD(R, name, params, object, args) \
  [[gnu::used]] VESTA_API R name params const { return ops::call<ops::tag::object, R>(*this VESTA_COMMA args); }
#define VESTA_METHOD_ON_SELF(name, params, object, args)           \
  [[gnu::used]] VESTA_API const Tensor& name params const {        \
    ops::call_inplace<ops::tag::object>(*this VESTA_COMMA args); \
    return *this;                                                  \
  }
#endif

#define VESTA_METHOD_OF(kind, ...) VESTA_METHOD_OF_##kind(__VA_ARGS__)
#define VESTA_METHOD_OF_POINTWISE(name, Struct, params, args, ...)                                                     \
  VESTA_METHOD(Tensor, name, params, name, args)                                                                       \
  VESTA_METHOD_ON_SELF(name##_, params, name, args)
#define VESTA_METHOD_OF_METHOD_OUT(name, params, args, ...) VESTA_METHOD_OF_METHOD(Tensor, name, params, args)
#define VESTA_METHOD_OF_METHOD_OUT_AS(name, overload, params, args, ...)                                               \
  VESTA_METHOD_OF_METHOD_AS(Tensor, name, overload, params, args)
#define VESTA_METHOD_OF_METHOD_INPLACE_OUT(name, params, args, ...)                                                    \
  VESTA_METHOD_OF_POINTWISE(name, name, params, args)
#define VESTA_METHOD_OF_METHOD_INPLACE_WRITTEN(name, params, args, ...)                                                \
  VESTA_METHOD_OF_POINTWISE(name, name, params, args)
#define VESTA_METHOD_OF_METHOD_INPLACE_OUT_AS(name, overload, params, args, ...)                                       \
  VESTA_METHOD_OF_METHOD_AS(Tensor, name, overload, params, args)                                                      \
  VESTA_METHOD_ON_SELF(name##_, params, name##_##overload, args)
#define VESTA_METHOD_OF_POINTWISE_PAIR(name, Struct, params, args, ...)                                                \
  VESTA_METHOD_OF_METHOD(TensorPair, name, params, args)
#define VESTA_METHOD_OF_METHOD(R, name, params, args, ...)                                                             \
  VESTA_METHOD(R, name, params, name, args)
#define VESTA_METHOD_OF_METHOD_AS(R, name, overload, params, args, ...)                                                \
  VESTA_METHOD(R, name, params, name##_##overload, args)
#define VESTA_METHOD_OF_INPLACE(name, params, args, ...)                                                               \
  VESTA_METHOD_OF_METHOD(Tensor, name, params, args)                                                                   \
  VESTA_METHOD_OF_METHOD(Tensor, name##_, params, args)
#define VESTA_METHOD_OF_METHOD_INPLACE(R, name, params, args, ...)                                                     \
  VESTA_METHOD_OF_METHOD(R, name, params, args)                                                                        \
  VESTA_METHOD_OF_METHOD(Tensor, name##_, params, args)
#define VESTA_METHOD_OF_METHOD_INPLACE_AS(R, name, overload, params, args, ...)                                        \
  VESTA_METHOD_OF_METHOD_AS(R, name, overload, params, args)                                                           \
  VESTA_METHOD(Tensor, name##_, params, name##_##overload##_, args)
#define VESTA_METHOD_OF_METHOD_AS_INPLACE(name, overload, params, args, ...)                                           \
  VESTA_METHOD(Tensor, name##_, params, name##_##overload##_, args)
#define VESTA_METHOD_OF_FORM_METHOD(R, name, form, params, args, call_, ...)                                           \
  VESTA_METHOD_OF_METHOD_AS(R, name, form, params, args)
#define VESTA_METHOD_OF_FORM_INPLACE(name, form, params, args, call_, ...)                                             \
  VESTA_METHOD_OF_METHOD_AS_INPLACE(name, form, params, args)
#define VESTA_METHOD_OF_POINTWISE_FUNCTION(...)
#define VESTA_METHOD_OF_FUNCTION(...)
#define VESTA_METHOD_OF_FUNCTION_AS(...)
#define VESTA_METHOD_OF_IN(...)
#define VESTA_METHOD_OF_FORM(...)
#define VESTA_METHOD_OF_PYTHON_FORM(...)
#define VESTA_METHOD_OF_PRODUCT_FORMS(...)
#define VESTA_METHOD_OF_PRODUCT_FACTORS(...)
#define VESTA_METHOD_OF_PRODUCT_FORMS_INPLACE(...)
#define VESTA_METHOD_OF_COMPLEX_FACTOR(...)
#define VESTA_METHOD_OF_ALIAS(...)

#define VESTA_METHODS_OF_TOPIC(topic, LIST) LIST(VESTA_METHOD_OF)
#define VESTA_TENSOR_METHODS VESTA_TOPICS(VESTA_METHODS_OF_TOPIC)
