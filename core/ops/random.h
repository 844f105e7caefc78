// Random ops. Every call takes one stream of its generator; element i (row-major, whatever the strides) gets number i
// of it, so values depend on the seed and the calls before, and on neither threads nor layout.
#pragma once
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/pointwise.h>
#include <vesta/core/random.h>
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/random.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_RANDOM)

/// Checks uniform_'s bounds against the dtype.
VESTA_API void check_uniform(const Tensor& t, double from, double to);
/// Checks normal_'s parameters.
VESTA_API void check_normal(const Tensor& t, double std);
/// Checks a probability.
VESTA_API void check_probability(double p, const char* op);
/// Calls fill(contiguous tensor) on `t` itself, or on a buffer that is copied to it; an empty tensor draws nothing.
template <class F>
const Tensor& fill_at_random(const Tensor& t, const char* op, F fill) {
  check_writable(t, op);
  if (t.numel() != 0 && t.is_contiguous()) {
    fill(t);
  } else if (t.numel() != 0) {
    Tensor buffer = empty_tensor(t.sizes(), t.dtype(), t.device());
    fill(buffer);
    copy_values(t, buffer);
  }
  t.impl()->bump(op);
  return t;
}
/// The range of random_ for a dtype: integers [from, from + range); a range of 0 means all 2^64.
struct IntegerRange {
  int64_t from;
  uint64_t range;
};
VESTA_API IntegerRange integer_range(const Tensor& t, MaybeInt from, MaybeInt to);
/// Returns the largest number of a floating dtype below `to`, rounded to that dtype: uniform_'s upper end.
VESTA_API double largest_below(DType dtype, double to);
/// Checks the parameters of a normal distribution that is cut off.
VESTA_API void check_truncated_normal(const Tensor& t, double mean, double std, double a, double b);
/// What poisson says of numbers that are no rates.
inline constexpr char kNotRates[] = "poisson: expected rates that are finite and at least 0 (input).";
/// Checks randperm's length against the dtype.
VESTA_API DType check_randperm(int64_t n, MaybeDType dtype);

/// What multinomial says of weights that are none.
inline constexpr char kNotProbabilities[] =
    "multinomial: probability tensor contains either `inf`, `nan` or element < 0.";
inline constexpr char kNoProbability[] = "multinomial: invalid multinomial distribution (sum of probabilities <= 0).";

}  // namespace vesta
