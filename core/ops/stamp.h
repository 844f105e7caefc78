// What the lines of a roll call become: signatures, Op objects, functions. The library stamps its own lists (ops.h,
// ops.cpp); a plug-in or a test stamps a list of its own, inside namespace vesta:
//
//   #define MY_LIST(UNARY, BINARY, TERNARY) UNARY(softsign, Softsign, (), ())
//   VESTA_POINTWISE_DECLARE(MY_LIST)      // vesta::softsign, softsign_out and the object vesta::ops::softsign
//   VESTA_POINTWISE_DEFINE(MY_LIST)       // the object itself: in one source file
//   void f() { VESTA_POINTWISE_DESCRIBE(MY_LIST) }      // reads the structs def::Softsign, ... (describe.h): once
//
// Kernels come from VESTA_REGISTER_TOPIC (core/cpu/loops.h), gradients from the autograd storey (autograd/record.h).
// The parameters of the macros are those of core/ops/list.h.
#pragma once
#include <vesta/core/ops/pointwise.h>

#define VESTA_UNPAREN(...) __VA_ARGS__

// ---- ops::sig::NAME::call: the full parameter list of NAME, for its type only ----
#define VESTA_X_SIGNATURE_UNARY(name, Struct, params, args) \
  struct name { static Tensor call(const Tensor& input VESTA_COMMA params, Out out = {}); };
#define VESTA_X_SIGNATURE_BINARY(name, Struct, params, args) \
  struct name { static Tensor call(const Tensor& input, const Tensor& other VESTA_COMMA params, Out out = {}); };
#define VESTA_X_SIGNATURE_TERNARY(name, Struct, first, second, third) \
  struct name { static Tensor call(const Tensor& first, const Tensor& second, const Tensor& third, Out out = {}); };
#define VESTA_X_SIGNATURE_METHOD(R, name, params, args) \
  struct name { static R call(const Tensor& input VESTA_COMMA params); };
#define VESTA_X_SIGNATURE_FUNCTION(R, name, params, args) \
  struct name { static R call params; };

// ---- the objects: layers and kernels are registered with them ----
#define VESTA_X_DECLARE_POINTWISE(name, ...) extern VESTA_API constinit PointwiseOp<decltype(sig::name::call)> name;
#define VESTA_X_DEFINE_POINTWISE(name, ...) constinit PointwiseOp<decltype(sig::name::call)> name(#name);
#define VESTA_X_DECLARE_OP(R, name, params, args) extern VESTA_API constinit Op<decltype(sig::name::call)> name;
#define VESTA_X_DEFINE_OP(R, name, params, args) constinit Op<decltype(sig::name::call)> name(#name);
#define VESTA_X_DESCRIBE(name, Struct, ...) ::vesta::describe_pointwise<::vesta::ops::name, ::vesta::def::Struct>();

// ---- the functions: `name_out(out, ...)` writes to `out` and returns it ----
#define VESTA_X_CALL_UNARY(name, Struct, params, args)                                                             \
  inline Tensor name(const Tensor& input VESTA_COMMA params) { return ops::name(input VESTA_COMMA args, Out{}); }  \
  inline const Tensor& name##_out(const Tensor& out, const Tensor& input VESTA_COMMA params) {                     \
    ops::name(input VESTA_COMMA args, Out{&out, Out::given});                                                      \
    return out;                                                                                                    \
  }
#define VESTA_X_CALL_BINARY(name, Struct, params, args)                                                            \
  VESTA_X_CALL_UNARY(name, Struct, (const Tensor& other VESTA_COMMA params), (other VESTA_COMMA args))             \
  inline Tensor name(const Tensor& input, Scalar other VESTA_COMMA params) {                                       \
    return ops::name(input, wrapped(other) VESTA_COMMA args, Out{});                                               \
  }
#define VESTA_X_CALL_TERNARY(name, Struct, first, second, third)                       \
  inline Tensor name(const Tensor& first, const Tensor& second, const Tensor& third) { \
    return ops::name(first, second, third, Out{});                                     \
  }
#define VESTA_X_CALL_METHOD(R, name, params, args) \
  inline R name(const Tensor& input VESTA_COMMA params) { return ops::name(input VESTA_COMMA args); }
#define VESTA_X_CALL_FUNCTION(R, name, params, args) \
  inline R name params { return ops::name(VESTA_UNPAREN args); }

/// Declares the ops of a list of pointwise lines, and defines their functions.
#define VESTA_POINTWISE_DECLARE(LIST)                                                                            \
  namespace ops::sig { LIST(VESTA_X_SIGNATURE_UNARY, VESTA_X_SIGNATURE_BINARY, VESTA_X_SIGNATURE_TERNARY) }      \
  namespace ops { LIST(VESTA_X_DECLARE_POINTWISE, VESTA_X_DECLARE_POINTWISE, VESTA_X_DECLARE_POINTWISE) }        \
  LIST(VESTA_X_CALL_UNARY, VESTA_X_CALL_BINARY, VESTA_X_CALL_TERNARY)
/// Declares the ops of a list of structured lines, and defines their functions.
#define VESTA_OPS_DECLARE(LIST)                                                            \
  namespace ops::sig { LIST(VESTA_X_SIGNATURE_METHOD, VESTA_X_SIGNATURE_FUNCTION) }        \
  namespace ops { LIST(VESTA_X_DECLARE_OP, VESTA_X_DECLARE_OP) }                           \
  LIST(VESTA_X_CALL_METHOD, VESTA_X_CALL_FUNCTION)
/// Defines the objects of a list.
#define VESTA_POINTWISE_DEFINE(LIST) \
  namespace ops { LIST(VESTA_X_DEFINE_POINTWISE, VESTA_X_DEFINE_POINTWISE, VESTA_X_DEFINE_POINTWISE) }
#define VESTA_OPS_DEFINE(LIST) \
  namespace ops { LIST(VESTA_X_DEFINE_OP, VESTA_X_DEFINE_OP) }
/// Statements: reads the structs of a list into the objects. Needs describe.h.
#define VESTA_POINTWISE_DESCRIBE(LIST) LIST(VESTA_X_DESCRIBE, VESTA_X_DESCRIBE, VESTA_X_DESCRIBE)
