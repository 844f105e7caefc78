// Reduces the kinds of op-list lines to a few forms; a generator G defines what each form expands to.
//
//   #define G(kind, ...) VESTA_LINE_##kind(G, __VA_ARGS__)
//   #define G_POINTWISE(name, Struct, params, args, properties...)
//   #define G_POINTWISE_PAIR(...)  as POINTWISE, for a struct with two results
//   #define G_OP(R, object, name, overload, params, args, properties...)
//   #define G_OUT(...)          as OP, for a composite that ends in a pointwise op: its body takes an Out, too
//   #define G_TWIN(...)         as OP: the functional twin of an in-place op, without a kernel of its own
//   #define G_COPIED(source, ...)  as OP, behind the op's object: the in-place twin of an op, without a kernel
//   #define G_IN(space, R, name, params, args, properties...)
//   #define G_FORM(R, object, name, form, params, args, call, properties...)
//   #define G_PYTHON_FORM(...)   as FORM, where C++ has the same parameters under other names already
//   #define G_ALIAS(alias, name)
//
// `params` and `args` hold every operand, in parentheses. LIST(G) then runs over all lines. This file includes nothing.
#pragma once

#define VESTA_UNPAREN(...) __VA_ARGS__
#define VESTA_COMMA(...) __VA_OPT__(, ) __VA_ARGS__
#define VESTA_STRING(...) VESTA_STRING_EXPANDED(__VA_ARGS__)
#define VESTA_STRING_EXPANDED(...) #__VA_ARGS__

#define VESTA_LINE_POINTWISE(G, name, Struct, params, args, ...)                                                       \
  G##_POINTWISE(name, Struct, (const Tensor& input VESTA_COMMA params), (input VESTA_COMMA args),                      \
                method __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_POINTWISE_FUNCTION(G, name, Struct, params, args, ...)                                              \
  G##_POINTWISE(name, Struct, params, args __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_POINTWISE_PAIR(G, name, Struct, params, args, ...)                                                  \
  G##_POINTWISE_PAIR(name, Struct, (const Tensor& input VESTA_COMMA params), (input VESTA_COMMA args),                 \
                     method __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_METHOD(G, R, name, params, args, ...)                                                               \
  G##_OP(R, name, name, "", (const Tensor& input VESTA_COMMA params), (input VESTA_COMMA args), method __VA_OPT__(, )  \
             __VA_ARGS__)
#define VESTA_LINE_METHOD_AS(G, R, name, overload, params, args, ...)                                                  \
  G##_OP(R, name##_##overload, name, #overload, (const Tensor& input VESTA_COMMA params),                              \
         (input VESTA_COMMA args), method __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_METHOD_OUT(G, name, params, args, ...)                                                              \
  G##_OUT(Tensor, name, name, "", (const Tensor& input VESTA_COMMA params), (input VESTA_COMMA args), method,          \
          composite, out, takes_out __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_METHOD_OUT_AS(G, name, overload, params, args, ...)                                                 \
  G##_OUT(Tensor, name##_##overload, name, #overload, (const Tensor& input VESTA_COMMA params),                        \
          (input VESTA_COMMA args), method, composite, out, takes_out __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_METHOD_INPLACE_OUT(G, name, params, args, ...) \
  VESTA_LINE_METHOD_OUT(G, name, params, args, inplace __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_METHOD_INPLACE_WRITTEN(G, name, params, args, ...)                                                  \
  G##_OUT(Tensor, name, name, "", (const Tensor& input VESTA_COMMA params), (input VESTA_COMMA args), method,          \
          composite, takes_out, inplace __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_METHOD_INPLACE_OUT_AS(G, name, overload, params, args, ...) \
  VESTA_LINE_METHOD_OUT_AS(G, name, overload, params, args, inplace __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_FUNCTION(G, R, name, params, args, ...)                                                             \
  G##_OP(R, name, name, "", params, args __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_FUNCTION_AS(G, R, name, overload, params, args, ...)                                                \
  G##_OP(R, name##_##overload, name, #overload, params, args __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_INPLACE(G, name, params, args, ...)                                                                 \
  G##_OP(Tensor, name##_, name##_, "", (const Tensor& input VESTA_COMMA params), (input VESTA_COMMA args),             \
         tensor_only __VA_OPT__(, ) __VA_ARGS__)                                                                       \
  G##_TWIN(Tensor, name, name, "", (const Tensor& input VESTA_COMMA params), (input VESTA_COMMA args),                 \
           method __VA_OPT__(, ) __VA_ARGS__, composite)
#define VESTA_LINE_METHOD_INPLACE(G, R, name, params, args, ...)                                                       \
  VESTA_LINE_METHOD(G, R, name, params, args __VA_OPT__(, ) __VA_ARGS__)                                               \
  G##_COPIED(name, Tensor, name##_, name##_, "", (const Tensor& input VESTA_COMMA params), (input VESTA_COMMA args),   \
             tensor_only, composite)
#define VESTA_LINE_METHOD_INPLACE_AS(G, R, name, overload, params, args, ...)                                          \
  VESTA_LINE_METHOD_AS(G, R, name, overload, params, args __VA_OPT__(, ) __VA_ARGS__)                                  \
  G##_COPIED(name##_##overload, Tensor, name##_##overload##_, name##_, #overload,                                      \
             (const Tensor& input VESTA_COMMA params),                                                                 \
             (input VESTA_COMMA args), tensor_only, composite)
#define VESTA_LINE_METHOD_AS_INPLACE(G, name, overload, params, args, ...)                                             \
  G##_OP(Tensor, name##_##overload##_, name##_, #overload, (const Tensor& input VESTA_COMMA params),                   \
         (input VESTA_COMMA args), tensor_only __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_IN(G, space, R, name, params, args, ...)                                                            \
  G##_IN(space, R, name, params, args, in_##space __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_FORM(G, R, name, form, params, args, call, ...)                                                     \
  G##_FORM(R, name##_##form, name, #form, params, args, call __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_PYTHON_FORM(G, R, name, form, params, args, call, ...) \
  G##_PYTHON_FORM(R, name##_##form, name, #form, params, args, call __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_FORM_METHOD(G, R, name, form, params, args, call, ...)                                              \
  G##_FORM(R, name##_##form, name, #form, (const Tensor& input VESTA_COMMA params), (input VESTA_COMMA args),          \
           call, method __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_FORM_INPLACE(G, name, form, params, args, call, ...)                                                \
  G##_FORM(Tensor, name##_##form##_, name##_, #form, (const Tensor& input VESTA_COMMA params),                         \
           (input VESTA_COMMA args), call, tensor_only __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_ALIAS(G, alias, name) G##_ALIAS(alias, name)
