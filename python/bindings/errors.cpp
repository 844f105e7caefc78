#include "errors.h"

#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <new>

#include <vesta/core/io/file.h>
#include <vesta/multiprocessing/distributed_error.h>

namespace vesta::python {
namespace {

// By cause: the class that is raised. Causes without one of their own raise Error.
struct Classes {
  PyObject* base = nullptr;      // Error(RuntimeError)
  PyObject* value = nullptr;     // ArgumentError(Error, ValueError)
  PyObject* number = nullptr;    // NumberError(ArgumentError, OverflowError)
  PyObject* type = nullptr;      // DTypeError(Error, TypeError, NotImplementedError)
  PyObject* memory = nullptr;    // OutOfMemoryError(Error, MemoryError)
  PyObject* device = nullptr;    // DeviceError(Error)
  PyObject* linalg = nullptr;    // LinAlgError(Error)
  PyObject* distributed[5] = {};  // DistributedError(Error) and, by cause, its subclasses
} classes;

PyObject* class_of(Cause c) {
  switch (c) {
    case Cause::value: return classes.value;
    case Cause::type: return classes.type;
    case Cause::index: return PyExc_IndexError;
    case Cause::not_implemented: return PyExc_NotImplementedError;
    case Cause::memory: return classes.memory;
    case Cause::device: return classes.device;
    case Cause::linalg: return classes.linalg;
    case Cause::interrupt: return PyExc_KeyboardInterrupt;
    default: return classes.base;
  }
}

/// Returns the length of the op's name that a message begins with ("view", "complex, polar"); 0 if it does not.
size_t length_of_name(std::string_view message) {
  const size_t colon = message.find(": ");
  if (colon == std::string_view::npos || colon == 0) return 0;
  for (size_t i = 0; i < colon; ++i) {
    const char c = message[i];
    const bool between = c == ' ' && i && message[i - 1] == ',';
    if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '_' && c != '.' && c != ',' && !between) return 0;
  }
  return colon;
}

/// Returns whether an error of a device is about where the operands of an op are.
bool is_about_operands(std::string_view message, size_t length) {
  constexpr std::string_view texts[] = {": expected all tensors on one device", ": expected out on ",
                                        ": expected self on "};
  return length && std::ranges::any_of(texts, [&](auto text) { return message.substr(length).starts_with(text); });
}

/// Returns the message of an error with the op that was called as its name.
std::string named(const Error& e, std::string_view called) {
  const std::string& message = e.message();
  if (e.cause() == Cause::memory || e.cause() == Cause::interrupt) return message;
  const size_t length = length_of_name(message);
  if (e.cause() == Cause::device && !is_about_operands(message, length)) return message;
  const std::string_view found = std::string_view(message).substr(0, length);
  const bool in_namespace =
      found.ends_with(called) && found.size() > called.size() && found[length - called.size() - 1] == '.';
  if (in_namespace || (!length && message.starts_with(called))) return message;
  return text(called, length ? "" : ": ", std::string_view(message).substr(length));
}

}  // namespace

PythonError::PythonError() { PyErr_Fetch(&type_, &value_, &trace_); }
PythonError::PythonError(const PythonError& o) : std::exception(o), type_(o.type_), value_(o.value_), trace_(o.trace_) {
  Gil gil;
  Py_XINCREF(type_), Py_XINCREF(value_), Py_XINCREF(trace_);
}
PythonError::~PythonError() {
  if (!type_ || !Py_IsInitialized()) return;
  Gil gil;
  Py_XDECREF(type_), Py_XDECREF(value_), Py_XDECREF(trace_);
}
void PythonError::restore() const {
  Py_XINCREF(type_), Py_XINCREF(value_), Py_XINCREF(trace_);
  PyErr_Restore(type_, value_, trace_);
}

void throw_current() {
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "a Python call failed without an exception");
  throw PythonError();
}

void type_error(const char* format, ...) {
  va_list args;
  va_start(args, format);
  PyErr_FormatV(PyExc_TypeError, format, args);
  va_end(args);
  throw_current();
}

void translate_exception(const char* called) noexcept {
  try {
    throw;
  } catch (const PythonError& e) {
    e.restore();
  } catch (const io::FileError& e) {
    Ref args(Py_BuildValue("(iss)", e.code(), std::strerror(e.code()), e.path().c_str()));
    if (args) PyErr_SetObject(PyExc_OSError, args.get());  // OSError picks FileNotFoundError and its like by the number
  } catch (const DistributedError& e) {
    PyErr_SetString(classes.distributed[int(e.what_failed())], e.what());
  } catch (const NumberError& e) {
    PyErr_SetString(classes.number, called ? named(e, called).c_str() : e.what());
  } catch (const Error& e) {
    PyErr_SetString(class_of(e.cause()), called ? named(e, called).c_str() : e.what());
  } catch (const std::bad_alloc&) {
    PyErr_SetString(classes.memory, "out of memory");
  } catch (const std::exception& e) {
    PyErr_SetString(classes.base, e.what());
  } catch (...) {
    PyErr_SetString(classes.base, "an unknown C++ exception");
  }
}

namespace {

/// Creates the classes of vesta.distributed; the module has them under private names.
bool add_distributed_errors(PyObject* module) {
  static constexpr struct {
    const char *name, *doc;
    DistributedCause base;
  } kClasses[] = {
      {"DistributedError", "Raised where processes that work together cannot go on.", DistributedCause::general},
      {"DistBackendError", "Raised by a collective.", DistributedCause::general},
      {"DistNetworkError", "Raised where a connection fails.", DistributedCause::general},
      {"DistStoreError", "Raised by a store.", DistributedCause::general},
      {"QueueEmptyError", "Raised where a queue of a store is empty.", DistributedCause::store},
  };
  for (int i = 0; i < 5; ++i) {
    PyObject* base = i ? classes.distributed[int(kClasses[i].base)] : classes.base;
    const std::string full = std::string("vesta.distributed.") + kClasses[i].name;
    PyObject* c = PyErr_NewExceptionWithDoc(full.c_str(), kClasses[i].doc, base, nullptr);
    if (!c || PyModule_AddObject(module, (std::string("_") + kClasses[i].name).c_str(), new_ref(c)) < 0) return false;
    classes.distributed[i] = c;
  }
  return true;
}

}  // namespace

bool add_errors(PyObject* module) {
  auto make = [&](const char* name, const char* doc, auto... classes) -> PyObject* {
    Ref bases(PyTuple_Pack(sizeof...(classes), classes...));
    std::string full = "vesta.";
    full += name;
    PyObject* c = bases ? PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.get(), nullptr) : nullptr;
    if (c && PyModule_AddObject(module, name, new_ref(c)) < 0) return nullptr;
    return c;
  };
  classes.base = make("Error", "Raised by the library; the base of its own exception classes.", PyExc_RuntimeError);
  if (!classes.base) return false;
  classes.value =
      make("ArgumentError", "Raised for a shape or a value that does not fit.", classes.base, PyExc_ValueError);
  classes.number =
      make("NumberError", "Raised for an integer of more than 64 bits.", classes.value, PyExc_OverflowError);
  classes.type = make("DTypeError", "Raised for a dtype that does not fit.", classes.base, PyExc_TypeError,
                      PyExc_NotImplementedError);  // what PyTorch's callers catch for an op without that dtype
  classes.memory = make("OutOfMemoryError", "Raised where memory cannot be had.", classes.base, PyExc_MemoryError);
  classes.device = make("DeviceError", "Raised for a device that is missing or does not fit.", classes.base);
  classes.linalg = make("LinAlgError", "Raised for a matrix that has no such decomposition or solution.", classes.base);
  return classes.linalg && classes.value && classes.number && classes.type && classes.memory && classes.device &&
         add_distributed_errors(module);
}

}  // namespace vesta::python
