// Random ops. Every call takes one stream of its generator; element i (row-major, whatever the strides) gets number i
// of it, so values depend on the seed and the calls before, and on neither threads nor layout.
#pragma once
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/pointwise.h>
#include <vesta/core/random.h>

namespace vesta {

namespace doc {
inline constexpr char uniform_[] = "uniform_(from=0, to=1, generator=None): fills with uniform numbers in [from, to).";
inline constexpr char normal_[] =
    "normal_(mean=0, std=1, generator=None): fills with normal numbers; complex ones have variance std**2 in total.";
inline constexpr char random_[] =
    "random_(from=0, to=None, generator=None): fills with integers in [from, to), random_(to) in [0, to); without "
    "bounds "
    "all non-negative ones of the dtype, or up to 2**digits for a floating type.";
inline constexpr char bernoulli_[] = "bernoulli_(p=0.5, generator=None): fills with 1 with probability p, else 0.";
inline constexpr char bernoulli[] = "bernoulli(generator=None): 1 with the probability that each element says, else 0.";
inline constexpr char native_dropout[] =
    "native_dropout(input, p, train): (input / (1 - p) where kept, else 0; the bool mask of the kept). Each element is "
    "kept with probability 1 - p; all are where train is False.";
inline constexpr char randperm[] =
    "randperm(n, generator=None, dtype=int64, device=None): a random order of 0 to n - 1.";
inline constexpr char rand[] = "rand(*size, generator=None, dtype=None, device=None): uniform numbers in [0, 1).";
inline constexpr char randn[] =
    "randn(*size, generator=None, dtype=None, device=None): numbers of the normal distribution.";
inline constexpr char randint[] =
    "randint(low=0, high, size, generator=None, dtype=int64, device=None): integers in [low, high).";
inline constexpr char rand_like[] = "rand_like(input, dtype=None, device=None): rand of input's shape.";
inline constexpr char randn_like[] = "randn_like(input, dtype=None, device=None): randn of input's shape.";
}  // namespace doc

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
  if (t.numel() == 0) return t;
  if (t.is_contiguous()) {
    fill(t);
  } else {
    Tensor buffer = empty_tensor(t.sizes(), t.dtype(), t.device());
    fill(buffer);
    copy_values(t, buffer);
  }
  t.impl()->storage()->bump(op);
  return t;
}
/// Settles random_'s bounds for the dtype: integers [from, from + range); a range of 0 means all 2^64.
struct IntegerRange {
  int64_t from;
  uint64_t range;
};
VESTA_API IntegerRange integer_range(const Tensor& t, MaybeInt from, MaybeInt to);
/// Returns the largest number of a floating dtype under `to`, as the dtype rounds `to`: uniform_'s upper end.
VESTA_API double largest_below(DType dtype, double to);
/// Checks randperm's length against the dtype.
VESTA_API DType check_randperm(int64_t n, MaybeDType dtype);

}  // namespace vesta
