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
// The forms that PyTorch has deprecated of beta * input + alpha * (a times b), and the one with complex factors.
#define VESTA_LINE_PRODUCT_FORMS(G, name, a, b, ...)                                                                   \
  G##_PYTHON_FORM(Tensor, name##_alpha_beta, name, "alpha_beta",                                                       \
                  (Scalar beta, const Tensor& input, Scalar alpha, const Tensor& a, const Tensor& b),                  \
                  (beta, input, alpha, a, b), with_factors(name, input, a, b, beta, alpha), deprecated,                \
                  accepts(kNumbers) __VA_OPT__(, ) __VA_ARGS__)                                                        \
  G##_PYTHON_FORM(Tensor, name##_beta, name, "beta",                                                                   \
                  (Scalar beta, const Tensor& input, const Tensor& a, const Tensor& b), (beta, input, a, b),           \
                  with_factors(name, input, a, b, beta, 1), deprecated, accepts(kNumbers) __VA_OPT__(, ) __VA_ARGS__)  \
  G##_PYTHON_FORM(Tensor, name##_method_alpha_beta, name, "method_alpha_beta",                                         \
                  (const Tensor& input, Scalar beta, Scalar alpha, const Tensor& a, const Tensor& b),                  \
                  (input, beta, alpha, a, b), with_factors(name, input, a, b, beta, alpha), tensor_only, deprecated,   \
                  accepts(kNumbers))                                                                                   \
  G##_PYTHON_FORM(Tensor, name##_method_beta, name, "method_beta",                                                     \
                  (const Tensor& input, Scalar beta, const Tensor& a, const Tensor& b), (input, beta, a, b),           \
                  with_factors(name, input, a, b, beta, 1), tensor_only, deprecated, accepts(kNumbers))
#define VESTA_LINE_PRODUCT_FACTORS(G, name, a, b, ...)                                                                 \
  G##_PYTHON_FORM(Tensor, name##_complex_factor, name, "complex_factor",                                               \
                  (const Tensor& input, const Tensor& a, const Tensor& b, Kw<Scalar> beta = 1, Scalar alpha = 1),      \
                  (input, a, b, beta, alpha), with_factors(name, input, a, b, beta, alpha), method,                    \
                  accepts(kNumbers) __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_PRODUCT_FORMS_INPLACE(G, name, a, b, ...)                                                           \
  G##_PYTHON_FORM(Tensor, name##__method_alpha_beta, name##_, "method_alpha_beta",                                     \
                  (const Tensor& input, Scalar beta, Scalar alpha, const Tensor& a, const Tensor& b),                  \
                  (input, beta, alpha, a, b), with_factors_inplace(name, name##_, input, a, b, beta, alpha),           \
                  tensor_only, deprecated, accepts(kNumbers))                                                          \
  G##_PYTHON_FORM(Tensor, name##__method_beta, name##_, "method_beta",                                                 \
                  (const Tensor& input, Scalar beta, const Tensor& a, const Tensor& b), (input, beta, a, b),           \
                  with_factors_inplace(name, name##_, input, a, b, beta, 1), tensor_only, deprecated,                  \
                  accepts(kNumbers))                                                                                   \
  G##_PYTHON_FORM(Tensor, name##__complex_factor, name##_, "complex_factor",                                           \
                  (const Tensor& input, const Tensor& a, const Tensor& b, Kw<Scalar> beta = 1, Scalar alpha = 1),      \
                  (input, a, b, beta, alpha), with_factors_inplace(name, name##_, input, a, b, beta, alpha),           \
                  tensor_only, accepts(kNumbers))
// A complex factor of a pointwise sum, and the deprecated form with it before the operands.
#define VESTA_LINE_COMPLEX_FACTOR(G, name, factor, params, tensors, args, ...)                                         \
  G##_PYTHON_FORM(Tensor, name##_complex_factor, name, "complex_factor",                                               \
                  (const Tensor& input, VESTA_UNPAREN params, Kw<Scalar> factor),                                      \
                  (input, VESTA_UNPAREN args, factor),                                                                 \
                  with_factor(ops::name, {}, factor, input, VESTA_UNPAREN args), method, out,                          \
                  typed_alpha __VA_OPT__(, ) __VA_ARGS__)                                                              \
  G##_PYTHON_FORM(Tensor, name##__complex_factor, name##_, "complex_factor",                                           \
                  (const Tensor& input, VESTA_UNPAREN params, Kw<Scalar> factor),                                      \
                  (input, VESTA_UNPAREN args, factor),                                                                 \
                  with_factor(ops::name, Out{&input, Out::inplace}, factor, input, VESTA_UNPAREN args), tensor_only,   \
                  typed_alpha)                                                                                         \
  G##_PYTHON_FORM(Tensor, name##_complex_##factor, name, "complex_" #factor,                                           \
                  (const Tensor& input, Scalar factor, VESTA_UNPAREN tensors),                                         \
                  (input, factor, VESTA_UNPAREN args),                                                                 \
                  with_factor(ops::name, {}, factor, input, VESTA_UNPAREN args), method, out, deprecated,              \
                  typed_alpha __VA_OPT__(, ) __VA_ARGS__)                                                              \
  G##_PYTHON_FORM(Tensor, name##__complex_##factor, name##_, "complex_" #factor,                                       \
                  (const Tensor& input, Scalar factor, VESTA_UNPAREN tensors),                                         \
                  (input, factor, VESTA_UNPAREN args),                                                                 \
                  with_factor(ops::name, Out{&input, Out::inplace}, factor, input, VESTA_UNPAREN args), tensor_only,   \
                  deprecated, typed_alpha)
#define VESTA_LINE_FORM_METHOD(G, R, name, form, params, args, call, ...)                                              \
  G##_FORM(R, name##_##form, name, #form, (const Tensor& input VESTA_COMMA params), (input VESTA_COMMA args),          \
           call, method __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_FORM_INPLACE(G, name, form, params, args, call, ...)                                                \
  G##_FORM(Tensor, name##_##form##_, name##_, #form, (const Tensor& input VESTA_COMMA params),                         \
           (input VESTA_COMMA args), call, tensor_only __VA_OPT__(, ) __VA_ARGS__)
#define VESTA_LINE_ALIAS(G, alias, name) G##_ALIAS(alias, name)
