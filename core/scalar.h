// A Python-like number: bool, integer, float or complex.
#pragma once
#include <complex>
#include <concepts>

#include <vesta/core/dtype.h>

namespace vesta {

/// One number with its kind. Its dtype (bool, int64, float64 or complex128) takes part in promotion weakly.
class Scalar {
 public:
  Scalar() : Scalar(int64_t(0)) {}
  Scalar(bool v) : kind_(DType::bool_), i_(v) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Scalar(T v) : kind_(DType::int64), i_(int64_t(v)) {}
  template <std::floating_point T>
  Scalar(T v) : kind_(DType::float64), d_(double(v)) {}
  Scalar(complex128 v) : kind_(DType::complex128), d_(v.real()), imag_(v.imag()) {}

  DType dtype() const { return kind_; }
  bool is_integral() const { return kind_ == DType::int64 || kind_ == DType::bool_; }
  bool is_complex() const { return kind_ == DType::complex128; }

  /// Converts to a C++ element type; an integer out of range for an integer type raises, naming `op`.
  template <class T>
  T to(const char* op = "scalar") const {
    if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
      return T(typename T::value_type(real()), typename T::value_type(imag_));
    } else if constexpr (std::is_same_v<T, bool>) {
      return is_integral() ? i_ != 0 : (d_ != 0 || imag_ != 0);
    } else if constexpr (std::is_integral_v<T>) {
      return T(
          to_integer(op, int64_t(std::numeric_limits<T>::min()), int64_t(std::numeric_limits<T>::max()), dtype_of<T>));
    } else {
      VESTA_CHECK(kind_ != DType::complex128 || imag_ == 0, runtime, op,
                  ": expected a real number, got a complex one with a non-zero imaginary part.");
      return T(static_cast<compute_t<T>>(real()));
    }
  }
  double real() const { return is_integral() ? double(i_) : d_; }
  double imag() const { return imag_; }
  int64_t integer() const { return i_; }  // only where is_integral()
#ifdef VESTA_SCALAR_MORE_METHODS
  VESTA_SCALAR_MORE_METHODS  // of a front end over this one (core/tensor.h)
#endif

 private:
  VESTA_API int64_t to_integer(const char* op, int64_t low, int64_t high, DType target) const;
  DType kind_;
  union {
    int64_t i_;
    double d_;
  };
  double imag_ = 0;
};

}  // namespace vesta
