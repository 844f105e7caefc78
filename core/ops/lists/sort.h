// The op list, sorting. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_SORT(OP)                                                                                             \
  OP(METHOD_AS, TensorPair, sort, stable, (Kw<MaybeBool> stable, int64_t dim = -1, bool descending = false),           \
     (stable, dim, descending), out, fields("values", "indices"))                                                      \
  OP(FORM_METHOD, TensorPair, sort, dim, (int64_t dim = -1, bool descending = false), (dim, descending),               \
     sort(input, MaybeBool(), dim, descending), out, fields("values", "indices"))                                      \
  OP(FORM_METHOD, Tensor, argsort, stable, (Kw<Flag> stable, int64_t dim = -1, bool descending = false),               \
     (stable, dim, descending), std::get<1>(sort(input, bool(stable), dim, descending)), out, no_gradient)             \
  OP(METHOD, Tensor, argsort, (int64_t dim = -1, bool descending = false), (dim, descending), composite, no_gradient)  \
  OP(METHOD, Tensor, msort, (), (), composite, out)
