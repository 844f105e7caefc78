// Type promotion among operands, in falling priority: tensors with dimensions, 0-d tensors, Python numbers.
#pragma once
#include <span>

#include <vesta/core/scalar.h>
#include <vesta/core/tensor.h>

namespace vesta {

/// A builder of the dtype in which operands compute, by PyTorch's rule: a 0-d tensor changes the dtype of dimensioned
/// ones only where it is of a higher category (bool < integer < float < complex), a Python number only where it is of a
/// higher category than both.
class Promotion {
 public:
  void see(const Tensor& t);
  bool any() const { return dims_ >= 0 || zeros_ >= 0 || numbers_ >= 0; }
  VESTA_API DType result() const;

 private:
  static constexpr int kNone = -1;
  static int merge(int a, DType b) { return a < 0 ? int(b) : int(promote(DType(a), b)); }
  static int combine(int high, int low);
  int dims_ = kNone, zeros_ = kNone, numbers_ = kNone;
};

inline void Promotion::see(const Tensor& t) {
  if (t.dim() > 0) {
    dims_ = merge(dims_, t.dtype());
  } else if (!t.impl()->wrapped_number) {
    zeros_ = merge(zeros_, t.dtype());
  } else {
    DType d = t.dtype();
    if (is_float(d)) d = default_dtype();
    if (vesta::is_complex(d)) d = complex_type(default_dtype());
    numbers_ = merge(numbers_, d);
  }
}

/// Returns the dtype that an op over these operands computes in.
VESTA_API DType result_type(std::span<const Tensor> operands);
/// Raises if an integer dtype is to be multiplied by `factor`, and `factor` is no integer or out of the dtype's range
/// (negatives of that range are allowed for unsigned dtypes).
VESTA_API void check_factor(DType d, double factor, const char* op, const char* argument);
/// Raises Error(runtime) for a finite number that is infinite as an element of a float or complex dtype; `op` is named.
/// Integers beyond the range of an integer dtype raise where they are converted (Scalar::to).
VESTA_API void check_range(Scalar number, DType d, const char* op);
/// Raises if a dtype does not hold the value of a 0-d tensor of another dtype; negative numbers wrap into unsigned
/// dtypes. The host does not wait for the value of one on a device.
VESTA_API void check_held(const Tensor& value, DType d, const char* op);
/// Returns a number as an element of a float dtype has it: infinite beyond its range, as in an assignment of a tensor.
/// For other dtypes it stays as it is.
VESTA_API Scalar as_element(Scalar number, DType d);
/// Returns whether values of `from` may be stored in `to` without a change of category (float to integer may not).
constexpr bool can_cast(DType from, DType to) {
  if (is_complex(from)) return is_complex(to);
  if (is_float(from)) return is_float(to) || is_complex(to);
  return is_bool(from) || !is_bool(to);
}

}  // namespace vesta
