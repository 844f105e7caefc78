// What tests of ops and layers share.
#pragma once
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <vesta/vesta.h>

namespace vesta::test {

/// Returns whether two tensors have the same dtype, shape and values.
inline bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && std::ranges::equal(a.sizes(), b.sizes()) && equal(a, b);
}

/// Returns the message of the error that `f` throws.
inline std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

/// Returns the cause of the error that `f` throws; the test fails if there is none.
inline Cause cause_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.cause();
  }
  FAIL("nothing was raised");
  return Cause::runtime;
}

using L = std::vector<int64_t>;
inline L list(IntSpan s) { return {s.begin(), s.end()}; }

/// Returns the elements in row-major order, as integers.
inline L values(const Tensor& t) {
  NoGrad off;
  const Tensor c = t.to(DType::int64).contiguous();
  return {c.data_ptr<int64_t>(), c.data_ptr<int64_t>() + c.numel()};
}
/// Returns the elements in row-major order, as float64.
inline std::vector<double> doubles(const Tensor& t) {
  NoGrad off;
  const Tensor c = t.to(DType::float64).contiguous();
  return {c.data_ptr<double>(), c.data_ptr<double>() + c.numel()};
}

/// Makes a tensor of one dimension.
inline Tensor floats(const std::vector<double>& values, DType dtype = DType::float32) {
  NoGrad off;
  Tensor t = empty({int64_t(values.size())}, DType::float64);
  std::copy(values.begin(), values.end(), t.data_ptr<double>());
  return t.to(dtype);
}
/// Makes a tensor of the given sizes that counts 0, 1, 2, ...
inline Tensor range(IntList sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return arange(n).view(sizes);
}

}  // namespace vesta::test
