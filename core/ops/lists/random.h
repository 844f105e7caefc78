// The op list, random numbers. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_RANDOM(OP)                                                                                           \
  OP(METHOD, Tensor, uniform_, (double from = 0, double to = 1, Kw<Generator*> generator = nullptr),                   \
     (from, to, generator), tensor_only, no_gradient)                                                                  \
  OP(METHOD, Tensor, normal_, (double mean = 0, double std = 1, Kw<Generator*> generator = nullptr),                   \
     (mean, std, generator), tensor_only, no_gradient)                                                                 \
  OP(METHOD, Tensor, _random_, (MaybeInt from, MaybeInt to, Generator* generator), (from, to, generator), hidden,      \
     no_gradient)                                                                                                      \
  OP(FORM_INPLACE, random, from, (int64_t from, MaybeInt to, Kw<Generator*> generator = nullptr),                      \
     (from, to, generator), _random_(input, from, to, generator), no_gradient)                                         \
  OP(FORM_INPLACE, random, to, (int64_t to, Kw<Generator*> generator = nullptr), (to, generator),                      \
     _random_(input, 0, to, generator), no_gradient)                                                                   \
  OP(FORM_INPLACE, random, all, (Kw<Generator*> generator = nullptr), (generator),                                     \
     _random_(input, {}, {}, generator), no_gradient)                                                                  \
  OP(METHOD, Tensor, bernoulli_, (double p = 0.5, Kw<Generator*> generator = nullptr), (p, generator), tensor_only,    \
     no_gradient)                                                                                                      \
  OP(METHOD_AS_INPLACE, bernoulli, Tensor, (const Tensor& p, Kw<Generator*> generator = nullptr), (p, generator),      \
     composite, no_gradient)                                                                                           \
  OP(METHOD, Tensor, bernoulli, (Kw<Generator*> generator = nullptr), (generator), out, no_gradient,                   \
     accepts(kFloats))                                                                                                 \
  OP(METHOD_AS, Tensor, bernoulli, p, (double p, Kw<Generator*> generator = nullptr), (p, generator), composite,       \
     no_gradient)                                                                                                      \
  OP(FUNCTION, TensorPair, native_dropout, (const Tensor& input, double p, bool train), (input, p, train),             \
     composite, accepts(kFloats | kComplexes), gives(Gives::same, Gives::boolean))                                     \
  OP(FUNCTION, Tensor, native_dropout_backward, (const Tensor& grad_output, const Tensor& mask, double scale),         \
     (grad_output, mask, scale), composite, hidden)                                                                    \
  OP(FUNCTION, Tensor, randperm,                                                                                       \
     (int64_t n, Kw<Generator*> generator = nullptr, MaybeDType dtype = {}, MaybeDevice device = {}),                  \
     (n, generator, dtype, device), out, factory, gives(Gives::int64))                                                 \
  OP(FUNCTION, Tensor, rand,                                                                                           \
     (IntTuple size, Kw<Generator*> generator = nullptr, MaybeDType dtype = {}, MaybeDevice device = {}),              \
     (size, generator, dtype, device), composite, out, factory)                                                        \
  OP(FUNCTION, Tensor, randn,                                                                                          \
     (IntTuple size, Kw<Generator*> generator = nullptr, MaybeDType dtype = {}, MaybeDevice device = {}),              \
     (size, generator, dtype, device), composite, out, factory)                                                        \
  OP(FUNCTION_AS, Tensor, randint, low,                                                                                \
     (int64_t low, int64_t high, IntTuple size, Kw<Generator*> generator = nullptr, MaybeDType dtype = {},             \
      MaybeDevice device = {}), (low, high, size, generator, dtype, device), composite, out, factory,                  \
     gives(Gives::int64))                                                                                              \
  OP(FORM, Tensor, randint, high,                                                                                      \
     (int64_t high, IntTuple size, Kw<Generator*> generator = nullptr, MaybeDType dtype = {},                          \
      MaybeDevice device = {}), (high, size, generator, dtype, device),                                                \
     randint(0, high, size, generator, dtype, device), out, factory, gives(Gives::int64))                              \
  OP(METHOD, Tensor, rand_like, (Kw<Generator*> generator = nullptr, MaybeDType dtype = {}, MaybeDevice device = {}),  \
     (generator, dtype, device), composite, factory, memory_format, no_method, accepts(kFloats | kComplexes))          \
  OP(METHOD, Tensor, randn_like,                                                                                       \
     (Kw<Generator*> generator = nullptr, MaybeDType dtype = {}, MaybeDevice device = {}),                             \
     (generator, dtype, device), composite, factory, memory_format, no_method, accepts(kFloats | kComplexes))          \
  OP(FUNCTION, Tensor, _dropout, (const Tensor& input, double p = 0.5, bool training = true), (input, p, training),    \
     composite, hidden)                                                                                                \
  OP(FORM, Tensor, dropout, function, (const Tensor& input, double p, bool train), (input, p, train),                  \
     _dropout(input, p, train))                                                                                        \
  OP(METHOD, Tensor, exponential_, (double lambd = 1, Kw<Generator*> generator = nullptr), (lambd, generator),         \
     composite, tensor_only, no_gradient)                                                                              \
  OP(METHOD, Tensor, geometric_, (double p, Kw<Generator*> generator = nullptr), (p, generator), composite,            \
     tensor_only, no_gradient)                                                                                         \
  OP(METHOD, Tensor, cauchy_, (double median = 0, double sigma = 1, Kw<Generator*> generator = nullptr),               \
     (median, sigma, generator), composite, tensor_only, no_gradient)                                                  \
  OP(METHOD, Tensor, log_normal_, (double mean = 1, double std = 2, Kw<Generator*> generator = nullptr),               \
     (mean, std, generator), composite, tensor_only, no_gradient)                                                      \
  OP(FUNCTION, Tensor, _checked_probabilities, (const Tensor& input), (input), composite, hidden, no_gradient,         \
     accepts(kFloats))                                                                                                 \
  OP(METHOD, Tensor, multinomial,                                                                                      \
     (int64_t num_samples, bool replacement = false, Kw<Generator*> generator = nullptr),                              \
     (num_samples, replacement, generator), composite, exact_out, no_gradient, accepts(kFloats), gives(Gives::int64))  \
  OP(FUNCTION, Tensor, normal, (const Tensor& mean, const Tensor& std, Kw<Generator*> generator = nullptr),            \
     (mean, std, generator), composite, out, no_gradient, accepts(kFloats))                                            \
  OP(FUNCTION_AS, Tensor, normal, Tensor_float,                                                                        \
     (const Tensor& mean, double std = 1, Kw<Generator*> generator = nullptr), (mean, std, generator), composite,      \
     out, no_gradient, accepts(kFloats))                                                                               \
  OP(FUNCTION_AS, Tensor, normal, float_Tensor, (double mean, const Tensor& std, Kw<Generator*> generator = nullptr),  \
     (mean, std, generator), composite, out, no_gradient, accepts(kFloats))                                            \
  OP(FUNCTION_AS, Tensor, normal, float_float,                                                                         \
     (double mean, double std, IntTuple size, Kw<Generator*> generator = nullptr, MaybeDType dtype = {},               \
      MaybeDevice device = {}), (mean, std, size, generator, dtype, device), composite, out, factory,                  \
     accepts(kFloats))                                                                                                 \
  OP(METHOD, Tensor, _truncated_normal_, (double mean, double std, double a, double b, Generator* generator),          \
     (mean, std, a, b, generator), hidden, no_gradient)                                                                \
  OP(FUNCTION, Tensor, _poisson, (const Tensor& input, Generator* generator), (input, generator), hidden, no_gradient, \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION, Tensor, poisson, (const Tensor& input, Generator* generator = nullptr), (input, generator), composite,  \
     no_gradient, accepts(kFloats))                                                                                    \
  OP(METHOD_AS, Tensor, randint_like, low_dtype,                                                                       \
     (int64_t low, int64_t high, Kw<Generator*> generator = nullptr, MaybeDType dtype = {}, MaybeDevice device = {}),  \
     (low, high, generator, dtype, device), composite, factory, memory_format, no_method, accepts(kReals))             \
  OP(PYTHON_FORM, Tensor, randint_like, high,                                                                          \
     (const Tensor& input, int64_t high, Kw<Generator*> generator = nullptr, MaybeDType dtype = {},                    \
      MaybeDevice device = {}), (input, high, generator, dtype, device),                                               \
     randint_like(input, 0, high, generator, dtype, device), factory, memory_format, accepts(kReals))                  \
  OP(PYTHON_FORM, Tensor, randint_like, Tensor,                                                                        \
     (const Tensor& input, const Tensor& high, Kw<Generator*> generator = nullptr, MaybeDType dtype = {},              \
      MaybeDevice device = {}), (input, high, generator, dtype, device),                                               \
     randint_like(input, 0, high.item<int64_t>(), generator, dtype, device), factory, memory_format, any_device,       \
     accepts(kReals))
