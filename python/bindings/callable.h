// Callable: a function or method of Python, one name with one or several forms. C++ sees a vectorcall entry of a few
// instructions per name (Entry); everything else is ordinary code in callable.cpp.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "arguments.h"

namespace vesta::python {

/// A function that runs an op on bound arguments; a new reference. Only ops with an Out use `out`; C++ exceptions pass.
using Thin = PyObject* (*)(const Table& t, Bound& b, Out out);

/// One form of a callable: what it takes, and what it runs.
struct Form {
  Table* table = nullptr;
  Thin thin = nullptr;
  bool inplace = false;  // a pointwise op onto its first operand
};

/// A function or method: its name and its forms, in the order in which they are tried.
struct Callable {
  std::string name;
  PyObject* object = nullptr;  // what __torch_function__ gets; borrowed, lives as long as the interpreter
  std::vector<Form> forms;
  bool inner = false;  // a private helper without Tensor parameters: __torch_function__ never overrides it
};

/// Runs the form that the arguments fit. The body of every entry; raises Python exceptions only.
PyObject* call(const Callable& callable, PyObject* self, PyObject* const* args, Py_ssize_t count,
               PyObject* names) noexcept;

/// The entry of one name; Tag tells names apart.
template <class Tag>
struct Entry {
  static inline Callable callable;
  static PyObject* function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    return call(callable, nullptr, args, n, names);
  }
  static PyObject* method(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
    return call(callable, self, args, n, names);
  }
};

/// Makes a tuple of tensors; they are moved from.
PyObject* tuple_of(std::vector<Tensor> list);

/// Creates the function of a callable and adds it to a module; adds a callable to the Tensor type.
bool add_function(PyObject* module, Callable& callable, PyCFunction entry);
bool add_method(Callable& callable, PyCFunction entry);
inline PyCFunction entry_of(PyObject* (*f)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));  // vectorcall, behind a cast
}

}  // namespace vesta::python
