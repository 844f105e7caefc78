// Errors: one exception type with a cause; the Python layer maps the cause to PyTorch's exception class.
#pragma once
#include <concepts>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <vesta/core/base/macros.h>

namespace vesta {

/// The cause of an error; Python raises a class per cause (value and type also derive from RuntimeError).
enum class Cause : uint8_t { runtime, value, type, index, not_implemented, memory, device, interrupt, linalg };

/// An exception with a message `op: expected X, got Y (argument). Fix.` and its cause.
class VESTA_API Error : public std::exception {
 public:
  Error(Cause cause, std::string message) : cause_(cause), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  Cause cause() const noexcept { return cause_; }
  const std::string& message() const noexcept { return message_; }
#ifdef VESTA_ERROR_MORE_METHODS
  VESTA_ERROR_MORE_METHODS  // of a front end over this one (core/tensor.h)
#endif

 private:
  Cause cause_;
  std::string message_;
};

namespace detail {
VESTA_API void append(std::string& to, std::string_view s);
VESTA_API void append(std::string& to, double v);
VESTA_API void append(std::string& to, int64_t v);
VESTA_API void append(std::string& to, uint64_t v);
VESTA_API void append(std::string& to, std::span<const int64_t> dims);  // as [2, 3]
inline void append(std::string& to, const char* s) { append(to, std::string_view(s)); }
inline void append(std::string& to, const std::string& s) { append(to, std::string_view(s)); }
inline void append(std::string& to, bool v) { append(to, std::string_view(v ? "True" : "False")); }
template <std::signed_integral T>
void append(std::string& to, T v) {
  append(to, int64_t(v));
}
template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>)
void append(std::string& to, T v) {
  append(to, uint64_t(v));
}
}  // namespace detail

/// Concatenates its arguments (text, numbers, dims, dtypes, devices) into one string.
template <class... Parts>
std::string text(const Parts&... parts) {
  using detail::append;
  std::string s;
  (append(s, parts), ...);
  return s;
}

/// Throws Error of `cause` with the concatenated parts as its message.
template <class... Parts>
[[noreturn]] [[gnu::cold]] [[gnu::noinline]] void fail(Cause cause, const Parts&... parts) {
  throw Error(cause, text(parts...));
}

}  // namespace vesta

/// Checks what a caller passed: VESTA_CHECK(condition, cause, message parts...).
#define VESTA_CHECK(cond, cause, ...)                                                    \
  do {                                                                                   \
    if (!(cond)) [[unlikely]] ::vesta::fail(::vesta::Cause::cause, __VA_ARGS__);         \
  } while (0)
/// Checks one of our own invariants; a failure is a bug in Vesta.
#define VESTA_ASSERT(cond)                                                               \
  do {                                                                                   \
    if (!(cond)) [[unlikely]]                                                            \
      ::vesta::fail(::vesta::Cause::runtime, "internal error: " #cond " at " __FILE__ ":", __LINE__); \
  } while (0)
