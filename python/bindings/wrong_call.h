// WrongCall: the TypeError of a call that does not fit its op. It names what the user called (an op serves `add`,
// `add_` and their aliases) and counts a method's arguments without self, as in PyTorch; only the callable knows both.
#pragma once
#include <string>
#include <string_view>

#include "arguments.h"
#include "errors.h"

namespace vesta::python {

/// A Python TypeError "OP(): ...", set for a function of the op's own name.
class WrongCall : public PythonError {
 public:
  /// Takes over the thread's current exception, whose text is `op`, `before`, the position if not 0, and `after`.
  WrongCall(std::string op, std::string before, int position, std::string after)
      : op_(std::move(op)), before_(std::move(before)), after_(std::move(after)), position_(position) {}
  /// Sets it for a callable: its name instead of the op's, and the position as users of a method count.
  void restore_for(std::string_view called, bool method) const;

 private:
  std::string op_, before_, after_;
  int position_;
};

/// Raises "OP() `before`", the position counted from 1, if given, and `after`.
[[noreturn]] void wrong_call(const Table& t, std::string before, int position = 0, std::string after = {});

/// Raises "OP(): argument 'NAME' (position N) must be `expected`" for parameter i.
[[noreturn]] void wrong_argument(const Table& t, int i, const std::string& expected);

}  // namespace vesta::python
