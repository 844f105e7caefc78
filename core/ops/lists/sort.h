// The op list, sorting. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_SORT(OP)                                                                                             \
  OP(METHOD_AS, TensorPair, sort, stable, (Kw<MaybeBool> stable, int64_t dim = -1, bool descending = false),           \
     (stable, dim, descending), exact_out, fields("values", "indices"), accepts(kBool | kReals),                       \
     gives(Gives::same, Gives::int64))                                                                                 \
  OP(FORM_METHOD, TensorPair, sort, dim, (int64_t dim = -1, bool descending = false), (dim, descending),               \
     sort(input, MaybeBool(), dim, descending), exact_out, fields("values", "indices"), accepts(kBool | kReals),       \
     gives(Gives::same, Gives::int64))                                                                                 \
  OP(FORM_METHOD, Tensor, argsort, stable, (Kw<Flag> stable, int64_t dim = -1, bool descending = false),               \
     (stable, dim, descending), std::get<1>(sort(input, bool(stable), dim, descending)), out, no_gradient,             \
     accepts(kBool | kReals), gives(Gives::int64))                                                                     \
  OP(METHOD, Tensor, argsort, (int64_t dim = -1, bool descending = false), (dim, descending), composite, no_gradient,  \
     accepts(kBool | kReals), gives(Gives::int64))                                                                     \
  OP(METHOD, Tensor, msort, (), (), composite, exact_out, accepts(kBool | kReals))                                     \
  OP(METHOD, TensorPair, topk, (int64_t k, int64_t dim = -1, bool largest = true, bool sorted = true),                 \
     (k, dim, largest, sorted), composite, exact_out, fields("values", "indices"), accepts(kBool | kReals),            \
     gives(Gives::same, Gives::int64))                                                                                 \
  OP(METHOD, TensorPair, kthvalue, (int64_t k, int64_t dim = -1, bool keepdim = false), (k, dim, keepdim), composite,  \
     exact_out, fields("values", "indices"), accepts(kBool | kReals), gives(Gives::same, Gives::int64))                \
  OP(METHOD, Tensor, median, (), (), composite, accepts(kBool | kReals))                                               \
  OP(METHOD_AS, TensorPair, median, dim, (int64_t dim, bool keepdim = false), (dim, keepdim), composite, out,          \
     fields("values", "indices"), accepts(kBool | kReals), gives(Gives::same, Gives::int64))                           \
  OP(METHOD_AS, Tensor, quantile, scalar,                                                                              \
     (double q, MaybeInt dim = {}, bool keepdim = false, Kw<Text> interpolation = "linear"),                           \
     (q, dim, keepdim, interpolation), composite, exact_out, accepts(kWideFloats))                                     \
  OP(METHOD, Tensor, quantile,                                                                                         \
     (const Tensor& q, MaybeInt dim = {}, bool keepdim = false, Kw<Text> interpolation = "linear"),                    \
     (q, dim, keepdim, interpolation), composite, exact_out, accepts(kWideFloats))                                     \
  OP(METHOD_AS, Tensor, nanquantile, scalar,                                                                           \
     (double q, MaybeInt dim = {}, bool keepdim = false, Kw<Text> interpolation = "linear"),                           \
     (q, dim, keepdim, interpolation), composite, exact_out, accepts(kWideFloats))                                     \
  OP(METHOD, Tensor, nanquantile,                                                                                      \
     (const Tensor& q, MaybeInt dim = {}, bool keepdim = false, Kw<Text> interpolation = "linear"),                    \
     (q, dim, keepdim, interpolation), composite, exact_out, accepts(kWideFloats))                                     \
  OP(METHOD, Tensor, nanmedian, (), (), composite, accepts(kBool | kReals))                                            \
  OP(METHOD_AS, TensorPair, nanmedian, dim, (int64_t dim, bool keepdim = false), (dim, keepdim), composite, out,       \
     fields("values", "indices"), accepts(kBool | kReals), gives(Gives::same, Gives::int64))                           \
  OP(METHOD, TensorPair, mode, (int64_t dim = -1, bool keepdim = false), (dim, keepdim), composite, exact_out,         \
     fields("values", "indices"), accepts(kBool | kReals), gives(Gives::same, Gives::int64))                           \
  OP(METHOD, Tensor, _places_by_rank, (int64_t first, int64_t count, int64_t dim, bool largest),                       \
     (first, count, dim, largest), composite, hidden, no_gradient, accepts(kBool | kReals), gives(Gives::int64))       \
  OP(FUNCTION, Tensor, _searchsorted, (const Tensor& sorted_sequence, const Tensor& values, bool right),               \
     (sorted_sequence, values, right), composite, hidden, no_gradient, accepts(kBool | kReals), gives(Gives::int64))   \
  OP(FUNCTION, Tensor, searchsorted,                                                                                   \
     (const Tensor& sorted_sequence, const Operand& input, Kw<bool> out_int32 = false, bool right = false,             \
      MaybeText side = {}, MaybeTensor sorter = {}), (sorted_sequence, input, out_int32, right, side, sorter),         \
     composite, exact_out, no_gradient, accepts(kBool | kReals), gives(Gives::int64))                                  \
  OP(PYTHON_FORM, Tensor, searchsorted, Scalar,                                                                        \
     (const Tensor& sorted_sequence, Scalar self, Kw<bool> out_int32 = false, bool right = false,                      \
      MaybeText side = {}, MaybeTensor sorter = {}), (sorted_sequence, self, out_int32, right, side, sorter),          \
     searchsorted(sorted_sequence, wrapped(self), out_int32, right, side, sorter), exact_out, no_gradient,             \
     accepts(kBool | kReals), gives(Gives::int64))                                                                     \
  OP(FUNCTION, Tensor, bucketize,                                                                                      \
     (const Operand& input, const Tensor& boundaries, Kw<bool> out_int32 = false, bool right = false),                 \
     (input, boundaries, out_int32, right), composite, exact_out, no_gradient, accepts(kBool | kReals),                \
     gives(Gives::int64))                                                                                              \
  OP(PYTHON_FORM, Tensor, bucketize, Scalar,                                                                           \
     (Scalar self, const Tensor& boundaries, Kw<bool> out_int32 = false, bool right = false),                          \
     (self, boundaries, out_int32, right), bucketize(wrapped(self), boundaries, out_int32, right), no_gradient,        \
     accepts(kBool | kReals), gives(Gives::int64))
