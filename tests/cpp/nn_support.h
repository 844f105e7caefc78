// What the tests of layers share.
#pragma once
#include <algorithm>
#include <functional>
#include <string>

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

}  // namespace vesta::test
