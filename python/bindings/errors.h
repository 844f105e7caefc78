// Exceptions, both ways: a C++ error becomes a Python one of the right class, a Python one passes through C++ frames.
#pragma once
#include "python_tensor.h"

namespace vesta::python {

/// An integer that no number of the core holds.
class NumberError : public Error {
 public:
  explicit NumberError(std::string message) : Error(Cause::value, std::move(message)) {}
};

/// A Python exception on its way through C++ frames (a hook that raised inside backward). Made and destroyed under the
/// GIL.
class PythonError : public std::exception {
 public:
  /// Takes over the thread's current exception.
  PythonError();
  PythonError(const PythonError& o);
  ~PythonError() override;
  const char* what() const noexcept override { return "a Python exception"; }
  /// Makes it the thread's current exception again.
  void restore() const;

 private:
  PyObject *type_ = nullptr, *value_ = nullptr, *trace_ = nullptr;
};

/// Turns the C++ exception in flight into the current Python exception; for use inside `catch (...)`. With `called`,
/// the message names that op, whichever one inside it has raised.
void translate_exception(const char* called = nullptr) noexcept;
/// Raises TypeError with a message of PyErr_Format, as a C++ exception.
[[noreturn]] void type_error(const char* format, ...);
/// Throws PythonError; for use where a Python call returned null.
[[noreturn]] void throw_current();
/// Returns `o` or throws the current Python exception where it is null.
inline PyObject* checked(PyObject* o) {
  if (!o) [[unlikely]]
    throw_current();
  return o;
}
inline void checked(int status) {
  if (status < 0) [[unlikely]]
    throw_current();
}

/// Runs `f` and turns whatever it throws into a Python exception and `failed` (null or -1).
template <class R = PyObject*, class F>
R guarded(F&& f, R failed = R{}, const char* called = nullptr) noexcept {
  try {
    return f();
  } catch (...) {
    translate_exception(called);
    return failed;
  }
}

/// Creates the exception classes and adds them to the module.
bool add_errors(PyObject* module);

}  // namespace vesta::python
