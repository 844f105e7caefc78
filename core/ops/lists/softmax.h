// The op list, softmax. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_SOFTMAX(OP)                                                                                          \
  OP(METHOD, Tensor, _softmax, (int64_t dim), (dim), hidden, casts(none, float32), accepts(kFloats))                   \
  OP(METHOD, Tensor, _log_softmax, (int64_t dim), (dim), hidden, casts(none, float32), accepts(kFloats))               \
  OP(FUNCTION, Tensor, _softmax_backward, (const Tensor& grad, const Tensor& output, int64_t dim, bool log),           \
     (grad, output, dim, log), hidden, accepts(kFloats))                                                               \
  OP(METHOD, Tensor, softmax, (int64_t dim, MaybeDType dtype = {}), (dim, dtype), composite, exact_out,                \
     accepts(kFloats))                                                                                                 \
  OP(METHOD, Tensor, log_softmax, (int64_t dim, MaybeDType dtype = {}), (dim, dtype), composite, exact_out,            \
     accepts(kFloats))
