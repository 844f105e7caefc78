// Errors and the macros that check: TORCH_CHECK(condition, "expected ", n, " rows") raises c10::Error.
#pragma once
#include <iostream>
#include <sstream>
#include <string>

#include <torch/tensor.h>

namespace c10 {

/// Returns its arguments as one text, as streams write them.
template <class... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream s;
  (s << ... << parts);
  return s.str();
}

namespace detail {
template <class E = Error, class... Parts>
[[noreturn]] void check_failed(vesta::Cause cause, const char* condition, const Parts&... parts) {
  if constexpr (sizeof...(parts) == 0) throw E(cause, std::string("Expected ") + condition + " to be true, but got false.");
  else throw E(cause, str(parts...));
}
}  // namespace detail

}  // namespace c10

namespace torch {
using c10::str;
}

#define VESTA_TORCH_CHECK(E, cause, cond, ...)                                                                       \
  do {                                                                                                               \
    if (!(cond)) [[unlikely]]                                                                                        \
      ::c10::detail::check_failed<E>(::vesta::Cause::cause, #cond __VA_OPT__(, ) __VA_ARGS__);                      \
  } while (false)
#define TORCH_CHECK(cond, ...) VESTA_TORCH_CHECK(::c10::Error, runtime, cond __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_INDEX(cond, ...) VESTA_TORCH_CHECK(::c10::IndexError, index, cond __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_VALUE(cond, ...) VESTA_TORCH_CHECK(::c10::ValueError, value, cond __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_TYPE(cond, ...) VESTA_TORCH_CHECK(::c10::TypeError, type, cond __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(cond, ...) \
  VESTA_TORCH_CHECK(::c10::NotImplementedError, not_implemented, cond __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(cond, ...) TORCH_CHECK(cond __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(cond, ...) TORCH_CHECK(cond __VA_OPT__(, ) __VA_ARGS__)
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK((a) == (b), #a " == " #b " (", (a), " and ", (b), ")")
#define TORCH_CHECK_NE(a, b) TORCH_CHECK((a) != (b), #a " != " #b " (", (a), " and ", (b), ")")
#define TORCH_CHECK_LE(a, b) TORCH_CHECK((a) <= (b), #a " <= " #b " (", (a), " and ", (b), ")")
#define TORCH_CHECK_LT(a, b) TORCH_CHECK((a) < (b), #a " < " #b " (", (a), " and ", (b), ")")
#define TORCH_CHECK_GE(a, b) TORCH_CHECK((a) >= (b), #a " >= " #b " (", (a), " and ", (b), ")")
#define TORCH_CHECK_GT(a, b) TORCH_CHECK((a) > (b), #a " > " #b " (", (a), " and ", (b), ")")
#define TORCH_CHECK_ARG(cond, position, ...) TORCH_CHECK(cond, "argument ", position, ": ", __VA_ARGS__)
#define TORCH_WARN(...) (void)(::std::cerr << "[W] " << ::c10::str(__VA_ARGS__) << '\n')
#define TORCH_WARN_ONCE(...)                                     \
  do {                                                           \
    static const bool said = (TORCH_WARN(__VA_ARGS__), true);    \
    (void)said;                                                  \
  } while (false)
#define AT_ASSERT(cond, ...) TORCH_CHECK(cond __VA_OPT__(, ) __VA_ARGS__)
#define AT_ASSERTM(cond, ...) TORCH_CHECK(cond __VA_OPT__(, ) __VA_ARGS__)
#define AT_ERROR(...) ::c10::detail::check_failed<::c10::Error>(::vesta::Cause::runtime, "", ::c10::str(__VA_ARGS__))
#define AT_CHECK(cond, ...) TORCH_CHECK(cond __VA_OPT__(, ) __VA_ARGS__)
