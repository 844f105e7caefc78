// The ops as C++ sees them: `vesta::exp(x)` calls the object `vesta::ops::exp`. All of it follows from the op list. A
// file that needs a few ops includes their topics instead.
#pragma once
#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/conv.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/distance.h>
#include <vesta/core/ops/explog.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/fft.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/linalg.h>
#include <vesta/core/ops/loss.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/norm.h>
#include <vesta/core/ops/numbers.h>
#include <vesta/core/ops/optim.h>
#include <vesta/core/ops/pool.h>
#include <vesta/core/ops/random.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/resample.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/sequence.h>
#include <vesta/core/ops/shape.h>
#include <vesta/core/ops/softmax.h>
#include <vesta/core/ops/sort.h>
#include <vesta/core/ops/sparse.h>
#include <vesta/core/ops/special.h>
#include <vesta/core/ops/trigonometric.h>
#include <vesta/core/ops/view.h>

namespace vesta {

// Operators are the ops of the same meaning; a number on either side is wrapped(). Those of two tensors are inline: a
// call through functions.cpp is a few instructions longer.
#define VESTA_OPERATOR(sign, op, ...)                                                                 \
  inline Tensor operator sign(const Tensor& a, const Tensor& b) {                                     \
    return ops::op(a, b __VA_OPT__(, ) __VA_ARGS__, Out{});                                           \
  }                                                                                                   \
  inline Tensor operator sign(const Tensor& a, Scalar b) { return a sign wrapped(b); }                \
  inline Tensor operator sign(Scalar a, const Tensor& b) { return wrapped(a) sign b; }
VESTA_OPERATOR(+, add, 1)
VESTA_OPERATOR(-, sub, 1)
VESTA_OPERATOR(*, mul)
VESTA_OPERATOR(/, div)
VESTA_OPERATOR(==, eq)
VESTA_OPERATOR(!=, ne)
VESTA_OPERATOR(<, lt)
VESTA_OPERATOR(<=, le)
VESTA_OPERATOR(>, gt)
VESTA_OPERATOR(>=, ge)
#undef VESTA_OPERATOR
inline Tensor operator-(const Tensor& a) { return neg(a); }

}  // namespace vesta
