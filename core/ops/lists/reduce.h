// The op list, reductions and scans. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_REDUCE(OP)                                                                                           \
  OP(METHOD_AS, Tensor, sum, dim, (const MaybeDims& dim, bool keepdim = false, Kw<MaybeDType> dtype = {}),             \
     (dim, keepdim, dtype), out, casts(none, float32_result), gives(Gives::sum))                                       \
  OP(FORM_METHOD, Tensor, sum, all, (Kw<MaybeDType> dtype = {}), (dtype), sum(input, MaybeDims(), false, dtype),       \
     gives(Gives::sum))                                                                                                \
  OP(METHOD_AS, Tensor, mean, dim, (const MaybeDims& dim, bool keepdim = false, Kw<MaybeDType> dtype = {}),            \
     (dim, keepdim, dtype), out, accepts(kFloats | kComplexes))                                                        \
  OP(FORM_METHOD, Tensor, mean, all, (Kw<MaybeDType> dtype = {}), (dtype), mean(input, MaybeDims(), false, dtype),     \
     out, accepts(kFloats | kComplexes))                                                                               \
  OP(METHOD_INPLACE, Tensor, cumsum, (int64_t dim, Kw<MaybeDType> dtype = {}), (dim, dtype), out, overwrites,          \
     casts(none, float32_result), gives(Gives::sum))                                                                   \
  OP(METHOD, TensorPair, cummax, (int64_t dim), (dim), exact_out, fields("values", "indices"), accepts(kBool | kReals),\
     gives(Gives::same, Gives::int64))                                                                                 \
  OP(METHOD, TensorPair, cummin, (int64_t dim), (dim), exact_out, fields("values", "indices"), accepts(kBool | kReals),\
     gives(Gives::same, Gives::int64))                                                                                 \
  OP(METHOD, Tensor, amax, (const MaybeDims& dim = {}, bool keepdim = false), (dim, keepdim), exact_out,               \
     accepts(kBool | kReals))                                                                                          \
  OP(METHOD, Tensor, amin, (const MaybeDims& dim = {}, bool keepdim = false), (dim, keepdim), exact_out,               \
     accepts(kBool | kReals))                                                                                          \
  OP(METHOD_AS, Tensor, any, dims, (const MaybeDims& dim = {}, bool keepdim = false), (dim, keepdim), out,             \
     no_gradient, gives(Gives::truth))                                                                                 \
  OP(METHOD_AS, Tensor, all, dims, (const MaybeDims& dim = {}, bool keepdim = false), (dim, keepdim), out,             \
     no_gradient, gives(Gives::truth))                                                                                 \
  OP(PYTHON_FORM, Tensor, any, all, (const Tensor& input), (input), any(input), method, out, no_gradient,              \
     gives(Gives::truth))                                                                                              \
  OP(PYTHON_FORM, Tensor, all, all, (const Tensor& input), (input), all(input), method, out, no_gradient,              \
     gives(Gives::truth))                                                                                              \
  OP(METHOD_OUT_AS, max, other, (const Tensor& other), (other), accepts(kBool | kReals))                               \
  OP(METHOD_AS, TensorPair, max, dim, (int64_t dim, bool keepdim = false), (dim, keepdim), exact_out,                  \
     fields("values", "indices"), accepts(kBool | kReals), gives(Gives::same, Gives::int64))                           \
  OP(METHOD, Tensor, max, (), (), composite, out, accepts(kBool | kReals))                                             \
  OP(METHOD_OUT_AS, min, other, (const Tensor& other), (other), accepts(kBool | kReals))                               \
  OP(METHOD_AS, TensorPair, min, dim, (int64_t dim, bool keepdim = false), (dim, keepdim), exact_out,                  \
     fields("values", "indices"), accepts(kBool | kReals), gives(Gives::same, Gives::int64))                           \
  OP(METHOD, Tensor, min, (), (), composite, out, accepts(kBool | kReals))                                             \
  OP(METHOD, Tensor, argmax, (MaybeInt dim = {}, bool keepdim = false), (dim, keepdim), exact_out, no_gradient,        \
     accepts(kReals), gives(Gives::int64))                                                                             \
  OP(METHOD, Tensor, argmin, (MaybeInt dim = {}, bool keepdim = false), (dim, keepdim), exact_out, no_gradient,        \
     accepts(kReals), gives(Gives::int64))                                                                             \
  OP(METHOD, TensorPair, _moments, (const MaybeDims& dim, bool keepdim), (dim, keepdim), composite, hidden,            \
     accepts(kFloats | kComplexes), gives(Gives::real))                                                                \
  OP(METHOD, Tensor, _sum_of_squares, (const MaybeDims& dim, bool keepdim), (dim, keepdim), composite, hidden,         \
     accepts(kFloats | kComplexes), gives(Gives::real))                                                                \
  OP(METHOD_AS, Tensor, var, correction,                                                                               \
     (const MaybeDims& dim = {}, Kw<MaybeScalar> correction = {}, bool keepdim = false), (dim, correction, keepdim),   \
     composite, out, accepts(kFloats | kComplexes), gives(Gives::real))                                                \
  OP(FORM_METHOD, Tensor, var, unbiased, (Flag unbiased), (unbiased),                                                  \
     var(input, MaybeDims(), int64_t(unbiased), false), accepts(kFloats | kComplexes), gives(Gives::real))             \
  OP(FORM_METHOD, Tensor, var, dim, (const MaybeDims& dim, Flag unbiased, bool keepdim = false),                       \
     (dim, unbiased, keepdim), var(input, dim, int64_t(unbiased), keepdim), out, accepts(kFloats | kComplexes),        \
     gives(Gives::real))                                                                                               \
  OP(METHOD_AS, Tensor, std, correction,                                                                               \
     (const MaybeDims& dim = {}, Kw<MaybeScalar> correction = {}, bool keepdim = false), (dim, correction, keepdim),   \
     composite, out, accepts(kFloats | kComplexes), gives(Gives::real))                                                \
  OP(FORM_METHOD, Tensor, std, unbiased, (Flag unbiased), (unbiased),                                                  \
     std(input, MaybeDims(), int64_t(unbiased), false), accepts(kFloats | kComplexes), gives(Gives::real))             \
  OP(FORM_METHOD, Tensor, std, dim, (const MaybeDims& dim, Flag unbiased, bool keepdim = false),                       \
     (dim, unbiased, keepdim), std(input, dim, int64_t(unbiased), keepdim), out, accepts(kFloats | kComplexes),        \
     gives(Gives::real))                                                                                               \
  OP(METHOD, Tensor, norm, (double p = 2, const MaybeDims& dim = {}, bool keepdim = false, MaybeDType dtype = {}),     \
     (p, dim, keepdim, dtype), composite, hidden, exact_out, casts(none, float32), accepts(kFloats | kComplexes),      \
     gives(Gives::real))                                                                                               \
  OP(METHOD, Tensor, logsumexp, (IntList dim, bool keepdim = false), (dim, keepdim), composite, out,                   \
     accepts(kBool | kNumbers), gives(Gives::floating))                                                                \
  OP(FUNCTION, Tensor, _logsumexp_backward,                                                                            \
     (const Tensor& grad, const Tensor& input, const Tensor& result, IntList dim), (grad, input, result, dim),         \
     composite, hidden, accepts(kFloats | kComplexes))                                                                 \
  OP(METHOD, Tensor, _reverse_cumsum, (int64_t dim), (dim), composite, hidden)                                         \
  OP(FUNCTION, Tensor, _prod_backward,                                                                                 \
     (const Tensor& grad, const Tensor& input, const Tensor& result, int64_t dim), (grad, input, result, dim),         \
     composite, hidden, accepts(kFloats | kComplexes))                                                                 \
  OP(FUNCTION, Tensor, _cumprod_backward,                                                                              \
     (const Tensor& grad, const Tensor& input, const Tensor& result, int64_t dim), (grad, input, result, dim),         \
     composite, hidden, accepts(kFloats | kComplexes))                                                                 \
  OP(FUNCTION, Tensor, _logcumsumexp_backward,                                                                         \
     (const Tensor& grad, const Tensor& input, const Tensor& result, int64_t dim), (grad, input, result, dim),         \
     composite, hidden, accepts(kFloats | kComplexes))                                                                 \
  OP(METHOD_AS, TensorPair, var_mean, correction,                                                                      \
     (const MaybeDims& dim = {}, Kw<MaybeScalar> correction = {}, bool keepdim = false), (dim, correction, keepdim),   \
     composite, no_method, accepts(kFloats | kComplexes), gives(Gives::real, Gives::same))                             \
  OP(PYTHON_FORM, TensorPair, var_mean, unbiased, (const Tensor& input, bool unbiased = true), (input, unbiased),      \
     var_mean(input, MaybeDims(), int64_t(unbiased), false), accepts(kFloats | kComplexes),                            \
     gives(Gives::real, Gives::same))                                                                                  \
  OP(PYTHON_FORM, TensorPair, var_mean, dim,                                                                           \
     (const Tensor& input, const MaybeDims& dim, bool unbiased = true, bool keepdim = false),                          \
     (input, dim, unbiased, keepdim), var_mean(input, dim, int64_t(unbiased), keepdim),                                \
     accepts(kFloats | kComplexes), gives(Gives::real, Gives::same))                                                   \
  OP(METHOD_AS, TensorPair, std_mean, correction,                                                                      \
     (const MaybeDims& dim = {}, Kw<MaybeScalar> correction = {}, bool keepdim = false), (dim, correction, keepdim),   \
     composite, no_method, accepts(kFloats | kComplexes), gives(Gives::real, Gives::same))                             \
  OP(PYTHON_FORM, TensorPair, std_mean, unbiased, (const Tensor& input, bool unbiased = true), (input, unbiased),      \
     std_mean(input, MaybeDims(), int64_t(unbiased), false), accepts(kFloats | kComplexes),                            \
     gives(Gives::real, Gives::same))                                                                                  \
  OP(PYTHON_FORM, TensorPair, std_mean, dim,                                                                           \
     (const Tensor& input, const MaybeDims& dim, bool unbiased = true, bool keepdim = false),                          \
     (input, dim, unbiased, keepdim), std_mean(input, dim, int64_t(unbiased), keepdim),                                \
     accepts(kFloats | kComplexes), gives(Gives::real, Gives::same))                                                   \
  OP(METHOD, TensorPair, aminmax, (Kw<MaybeInt> dim = {}, bool keepdim = false), (dim, keepdim), composite,            \
     exact_out, fields("min", "max"), accepts(kBool | kReals))                                                         \
  OP(PYTHON_FORM, Tensor, count_nonzero, dim, (const Tensor& input, MaybeInt dim = {}), (input, dim),                  \
     count_nonzero(input, dim ? IntList(*dim) : IntList()), method, no_gradient, gives(Gives::int64))                  \
  OP(METHOD_AS, Tensor, count_nonzero, dim_IntList, (IntTuple dim), (dim), composite, no_gradient,                     \
     gives(Gives::int64))                                                                                              \
  OP(METHOD, Tensor, nansum, (const MaybeDims& dim = {}, bool keepdim = false, Kw<MaybeDType> dtype = {}),             \
     (dim, keepdim, dtype), composite, out, accepts(kBool | kReals), gives(Gives::sum))                                \
  OP(METHOD, Tensor, nanmean, (const MaybeDims& dim = {}, bool keepdim = false, Kw<MaybeDType> dtype = {}),            \
     (dim, keepdim, dtype), composite, out, accepts(kFloats))                                                          \
  OP(METHOD_OUT, diff, (int64_t n = 1, int64_t dim = -1, MaybeTensor prepend = {}, MaybeTensor append = {}),           \
     (n, dim, prepend, append))                                                                                        \
  OP(METHOD_AS, Tensor, prod, dim_int, (int64_t dim, bool keepdim = false, Kw<MaybeDType> dtype = {}),                 \
     (dim, keepdim, dtype), out, casts(none, float32_result), gives(Gives::sum))                                       \
  OP(METHOD, Tensor, prod, (Kw<MaybeDType> dtype = {}), (dtype), composite, casts(none, float32_result),               \
     gives(Gives::sum))                                                                                                \
  OP(METHOD_INPLACE, Tensor, cumprod, (int64_t dim, Kw<MaybeDType> dtype = {}), (dim, dtype), out, overwrites,         \
     casts(none, float32_result), gives(Gives::sum))                                                                   \
  OP(METHOD, Tensor, logcumsumexp, (int64_t dim), (dim), composite, exact_out, accepts(kFloats | kComplexes))          \
  OP(FUNCTION, Tensor, _bin_counts, (const Tensor& input, int64_t bins, double min, double max),                       \
     (input, bins, min, max), composite, hidden, no_gradient, accepts(kReals), gives(Gives::int64))                    \
  OP(METHOD, Tensor, histc, (int64_t bins = 100, RealScalar min = 0, RealScalar max = 0), (bins, min, max),            \
     composite, exact_out, no_gradient, accepts(kFloats))                                                              \
  OP(METHOD, Tensor, bincount, (MaybeTensor weights = {}, int64_t minlength = 0), (weights, minlength), composite,     \
     no_gradient, accepts(kIntegers), gives(Gives::int64))                                                             \
  OP(FUNCTION_AS, Tensor, trapezoid, x, (const Tensor& y, const Tensor& x, Kw<int64_t> dim = -1), (y, x, dim),         \
     composite, accepts(kNumbers), gives(Gives::floating))                                                             \
  OP(FUNCTION_AS, Tensor, trapezoid, dx, (const Tensor& y, Kw<RealScalar> dx = 1, int64_t dim = -1), (y, dx, dim),     \
     composite, accepts(kNumbers), gives(Gives::floating))                                                             \
  OP(FUNCTION_AS, Tensor, cumulative_trapezoid, x, (const Tensor& y, const Tensor& x, Kw<int64_t> dim = -1),           \
     (y, x, dim), composite, accepts(kNumbers), gives(Gives::floating))                                                \
  OP(FUNCTION_AS, Tensor, cumulative_trapezoid, dx, (const Tensor& y, Kw<RealScalar> dx = 1, int64_t dim = -1),        \
     (y, dx, dim), composite, accepts(kNumbers), gives(Gives::floating))                                               \
  OP(FUNCTION_AS, Tensor, trapz, x, (const Tensor& y, const Tensor& x, Kw<int64_t> dim = -1), (y, x, dim), composite,  \
     accepts(kNumbers), gives(Gives::floating))                                                                        \
  OP(FUNCTION_AS, Tensor, trapz, dx, (const Tensor& y, Kw<double> dx = 1, int64_t dim = -1), (y, dx, dim), composite,  \
     accepts(kNumbers), gives(Gives::floating))
