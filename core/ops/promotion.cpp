#include <vesta/core/ops/promotion.h>

namespace vesta {

int Promotion::combine(int high, int low) {
  if (high < 0) return low;
  if (low < 0) return high;
  DType h = DType(high), l = DType(low);
  if (is_complex(h)) return high;
  if (is_float(h)) return is_complex(l) ? int(complex_type(h)) : high;
  if (is_bool(h) || is_differentiable(l)) return int(promote(h, l));
  return high;
}

DType Promotion::result() const { return DType(combine(dims_, combine(zeros_, numbers_))); }

DType result_type(std::span<const Tensor> operands) {
  Promotion p;
  for (const Tensor& t : operands) p.see(t);
  VESTA_CHECK(p.any(), value, "result_type: expected at least one operand, got none.");
  return p.result();
}

}  // namespace vesta
