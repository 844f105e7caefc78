#include <vesta/core/scalar.h>
#include <vesta/core/torch_rules.h>

#include <cmath>

namespace vesta {

int64_t Scalar::to_integer(const char* op, int64_t low, int64_t high, DType target) const {
  if (is_integral()) {
    // -1 is the largest number of an unsigned dtype
    if (i_ < 0 && low == 0 && i_ >= -high && follows_torch()) return i_;
    VESTA_CHECK(i_ >= low && i_ <= high, value, op, ": expected a number in the range of ", target, " [", low, ", ",
                high, "], got ", i_, ".");
    return i_;
  }
  VESTA_CHECK(imag_ == 0, runtime, op, ": expected a real number for ", target, ", got a complex one.");
  double whole = std::trunc(d_);
  // 2^63 itself is not an int64, and a NaN fails both comparisons
  VESTA_CHECK(whole >= double(low) && (whole <= double(high) && whole < 9223372036854775808.0), value, op,
              ": expected a number in the range of ", target, ", got ", d_, ".");
  return int64_t(whole);
}

}  // namespace vesta
