// The code that the lines of an op list expand to (lists/README.md): declarations and functions, objects and schemas.
// The library does this for its own topics (TOPIC.h, TOPIC.cpp); a plug-in or a test does it for a list of its own, in
// namespace vesta:
//
//   #define MY_OPS(OP) OP(POINTWISE, softsign, Softsign, (), ())
//   VESTA_DECLARE_OPS(MY_OPS)      // vesta::softsign, softsign_out and the object vesta::ops::softsign
//   VESTA_DEFINE_OPS(MY_OPS)       // the object and its schema, from def::Softsign: in one source file (define.h)
//
// Kernels come from VESTA_CPU_TOPIC (core/cpu/loops.h), gradients from autograd/record.h.
#pragma once
#include <vesta/core/ops/lines.h>
#include <vesta/core/ops/pointwise.h>

namespace vesta {

namespace ops {
/// The type that a parameter of a function has in its op: an operand has become a tensor.
template <class T>
struct OpParameter {
  using type = T;
};
template <>
struct OpParameter<const Operand&> {
  using type = const Tensor&;
};
template <>
struct OpParameter<const MaybeOperand&> {
  using type = MaybeTensor;
};
template <class Function>
struct OpSignature;
template <class R, class... A>
struct OpSignature<R(A...)> {
  using type = R(typename OpParameter<A>::type...);
};
/// The signature of the op whose line declares `Function`.
template <class Function>
using Signature = typename OpSignature<Function>::type;

}  // namespace ops

}  // namespace vesta

// ---- ops::sig::OBJECT::call: the parameters, for their types only ----
#define VESTA_SIGNATURE(kind, ...) VESTA_LINE_##kind(VESTA_SIGNATURE, __VA_ARGS__)
#define VESTA_SIGNATURE_POINTWISE(name, Struct, params, args, ...)                                                     \
  struct name { static Tensor call(VESTA_UNPAREN params, Out out = {}); };
#define VESTA_SIGNATURE_POINTWISE_PAIR(name, Struct, params, ...)                                                      \
  struct name { static TensorPair call params; };
#define VESTA_SIGNATURE_OP(R, object, name, overload, params, args, ...)                                               \
  struct object { static R call params; };
#define VESTA_SIGNATURE_OUT(R, object, name, overload, params, args, ...)                                              \
  struct object { static R call(VESTA_UNPAREN params, Out out = {}); };
#define VESTA_SIGNATURE_TWIN(...) VESTA_SIGNATURE_OP(__VA_ARGS__)
#define VESTA_SIGNATURE_COPIED(source, ...) VESTA_SIGNATURE_OP(__VA_ARGS__)
#define VESTA_SIGNATURE_IN(space, R, name, params, args, ...)                                                          \
  VESTA_SIGNATURE_OP(R, space##_##name, space##_##name, "", params, args, __VA_ARGS__)
#define VESTA_SIGNATURE_FORM(...)
#define VESTA_SIGNATURE_PYTHON_FORM(...)
#define VESTA_SIGNATURE_ALIAS(...)

// ---- the objects: layers and kernels are registered with them ----
#define VESTA_OBJECT(kind, ...) VESTA_LINE_##kind(VESTA_OBJECT, __VA_ARGS__)
#define VESTA_OBJECT_POINTWISE(name, ...)                                                                              \
  extern VESTA_API constinit PointwiseOp<Signature<decltype(sig::name::call)>> name;
#define VESTA_OBJECT_POINTWISE_PAIR(name, ...) VESTA_OBJECT_POINTWISE(name)
#define VESTA_OBJECT_OP(R, object, ...) extern VESTA_API constinit Op<Signature<decltype(sig::object::call)>> object;
#define VESTA_OBJECT_OUT(...) VESTA_OBJECT_OP(__VA_ARGS__)
#define VESTA_OBJECT_TWIN(...) VESTA_OBJECT_OP(__VA_ARGS__)
#define VESTA_OBJECT_COPIED(source, ...) VESTA_OBJECT_OP(__VA_ARGS__)
#define VESTA_OBJECT_IN(space, R, name, ...) VESTA_OBJECT_OP(R, space##_##name)
#define VESTA_OBJECT_FORM(...)
#define VESTA_OBJECT_PYTHON_FORM(...)
#define VESTA_OBJECT_ALIAS(...)

// ---- the functions: overloads are overloads; `name_out(out, ...)` of a pointwise op writes to `out` ----
#define VESTA_FUNCTION(kind, ...) VESTA_LINE_##kind(VESTA_FUNCTION, __VA_ARGS__)
#define VESTA_FUNCTION_OUT(R, object, name, overload, params, args, ...)                                               \
  VESTA_LINKAGE R name params { return ops::object(VESTA_UNPAREN args, Out{}); }                                       \
  VESTA_LINKAGE const R& name##_out(const R& out VESTA_COMMA params) {                                                 \
    ops::object(VESTA_UNPAREN args, Out{&out, Out::given});                                                            \
    return out;                                                                                                        \
  }
#define VESTA_FUNCTION_POINTWISE(name, Struct, params, args, ...) \
  VESTA_FUNCTION_OUT(Tensor, name, name, "", params, args)
#define VESTA_FUNCTION_POINTWISE_PAIR(name, Struct, params, args, ...)                                                 \
  VESTA_LINKAGE TensorPair name params { return ops::name args; }
#define VESTA_FUNCTION_OP(R, object, name, overload, params, args, ...)                                                \
  VESTA_LINKAGE R name params { return ops::object args; }
#define VESTA_FUNCTION_TWIN(...) VESTA_FUNCTION_OP(__VA_ARGS__)
#define VESTA_FUNCTION_COPIED(source, ...) VESTA_FUNCTION_OP(__VA_ARGS__)
#define VESTA_FUNCTION_IN(space, R, name, params, args, ...)                                                           \
  VESTA_FUNCTION_OP(R, space##_##name, space##_##name, "", params, args)                                               \
  namespace space { VESTA_LINKAGE R name params { return ops::space##_##name args; } }
#define VESTA_FUNCTION_FORM(R, object, name, form, params, args, call, ...)                                            \
  VESTA_LINKAGE R name params { return call; }
#define VESTA_FUNCTION_PYTHON_FORM(...)
#define VESTA_FUNCTION_ALIAS(alias, name)                                                                              \
  inline auto alias(const auto&... a)                                                                                  \
    requires requires { ::vesta::name(a...); }                                                                         \
  {                                                                                                                    \
    return ::vesta::name(a...);                                                                                        \
  }

// ---- declarations only ----
#define VESTA_DECLARATION(kind, ...) VESTA_LINE_##kind(VESTA_DECLARATION, __VA_ARGS__)
#define VESTA_DECLARATION_POINTWISE(name, Struct, params, args, ...)                                                   \
  VESTA_API Tensor name params;                                                                                        \
  VESTA_API const Tensor& name##_out(const Tensor& out VESTA_COMMA params);
#define VESTA_DECLARATION_OUT(R, object, name, overload, params, ...)                                                  \
  VESTA_DECLARATION_POINTWISE(name, object, params, ())
#define VESTA_DECLARATION_POINTWISE_PAIR(name, Struct, params, ...) VESTA_API TensorPair name params;
#define VESTA_DECLARATION_OP(R, object, name, overload, params, ...) VESTA_API R name params;
#define VESTA_DECLARATION_TWIN(...) VESTA_DECLARATION_OP(__VA_ARGS__)
#define VESTA_DECLARATION_COPIED(source, ...) VESTA_DECLARATION_OP(__VA_ARGS__)
#define VESTA_DECLARATION_IN(space, R, name, params, ...)                                                              \
  VESTA_API R space##_##name params;                                                                                   \
  namespace space { VESTA_API R name params; }
#define VESTA_DECLARATION_FORM(R, object, name, form, params, ...) VESTA_API R name params;
#define VESTA_DECLARATION_PYTHON_FORM(...)
#define VESTA_DECLARATION_ALIAS(...) VESTA_FUNCTION_ALIAS(__VA_ARGS__)

#ifdef VESTA_DEFINES_FUNCTIONS
#define VESTA_LINKAGE VESTA_API
#define VESTA_TOPIC_FUNCTION VESTA_FUNCTION
#else
#define VESTA_LINKAGE inline
#define VESTA_TOPIC_FUNCTION VESTA_DECLARATION
#endif

/// Declares the objects of a list.
#define VESTA_DECLARE_OBJECTS(LIST)                                                                                    \
  namespace ops::sig { LIST(VESTA_SIGNATURE) }                                                                         \
  namespace ops { LIST(VESTA_OBJECT) }
/// Declares the ops of a list, and defines their functions, inline.
#define VESTA_DECLARE_OPS(LIST)                                                                                        \
  VESTA_DECLARE_OBJECTS(LIST)                                                                                          \
  LIST(VESTA_FUNCTION)
/// Declares the ops of one of the library's topics and their functions, which functions.cpp defines (Note [Functions
/// are declarations]).
#define VESTA_DECLARE_TOPIC(LIST)                                                                                      \
  VESTA_DECLARE_OBJECTS(LIST)                                                                                          \
  LIST(VESTA_TOPIC_FUNCTION)

/// Defines an operator of C++ as the op of the same meaning; a number on either side is wrapped(). That of two tensors
/// is inline: a call through functions.cpp is a few instructions longer.
#define VESTA_OPERATOR(sign, op, ...)                                                                                  \
  inline Tensor operator sign(const Tensor& a, const Tensor& b) {                                                      \
    return ops::op.call(a, b __VA_OPT__(, ) __VA_ARGS__, Out{});                                                       \
  }                                                                                                                    \
  inline Tensor operator sign(const Tensor& a, Scalar b) { return a sign wrapped(b); }                                 \
  inline Tensor operator sign(Scalar a, const Tensor& b) { return wrapped(a) sign b; }
