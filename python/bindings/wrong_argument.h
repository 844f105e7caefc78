// WrongArgument: the TypeError of an argument of the wrong kind, which says at which position it is. A method's self is
// not counted, as in PyTorch; only the callable knows whether it is a method.
#pragma once
#include <string>

#include "arguments.h"
#include "errors.h"

namespace vesta::python {

/// A Python TypeError, set for a function; restore_for_method() counts from the argument behind self.
class WrongArgument : public PythonError {
 public:
  /// Takes over the thread's current exception, whose text is `before`, the position and `after`.
  WrongArgument(std::string before, int position, std::string after)
      : before_(std::move(before)), after_(std::move(after)), position_(position) {}
  void restore_for_method() const {
    if (position_ < 2) return restore();
    PyErr_SetString(PyExc_TypeError, (before_ + std::to_string(position_ - 1) + after_).c_str());
  }

 private:
  std::string before_, after_;
  int position_;
};

/// Raises "OP(): argument 'NAME' (position N) must be `expected`" for parameter i.
[[noreturn]] void wrong_argument(const Table& t, int i, const std::string& expected);

}  // namespace vesta::python
