#include "parts.h"

#include <pybind11/gil_safe_call_once.h>
#include <pybind11/pybind11.h>

#include <string>

#include "errors.h"

namespace vesta::python {
namespace {

namespace py = pybind11;

struct Part {
  const char *name, *doc;
  void (*fill)(py::module_& m);
  const char* needs;  // another part, whose types it uses; may be null
  const char* public_module;  // where the package offers its classes; null: nowhere
  py::gil_safe_call_once_and_store<py::module_> made;
};
Part parts[] = {
    {"cpp_nn", "The C++ layers, for comparison.", fill_cpp_nn, nullptr, nullptr, {}},
    {"_shared", "Memory that processes share.", fill_shared, nullptr, nullptr, {}},
    {"_distributed", "Stores and process groups.", fill_distributed, nullptr, "vesta.distributed", {}},
    {"_ddp", "Data parallel training.", fill_ddp, "_distributed", "vesta.distributed", {}},
};

void translate(std::exception_ptr p) {
  try {
    std::rethrow_exception(p);
  } catch (const Error&) {
    translate_exception();
  } catch (const PythonError&) {
    translate_exception();
  }
}

/// Names the public module as the home of the classes: there pickle finds them in a process that never asked for a
/// part.
void set_home(const py::module_& m, const char* home) {
  for (const auto& [name, value] : m.attr("__dict__").cast<py::dict>()) {
    if (PyType_Check(value.ptr()) && !name.cast<std::string>().starts_with('_')) value.attr("__module__") = home;
  }
}

py::module_ make(py::module_ module, const Part& part) {
  if (part.needs) py::getattr(module, part.needs);  // makes it
  // By its own name, whatever the module is called meanwhile (vesta.as_torch calls it torch._C).
  const std::string name = std::string("vesta._C.") + part.name;
  auto m = py::reinterpret_borrow<py::module_>(checked(PyImport_AddModule(name.c_str())));
  m.doc() = part.doc;
  part.fill(m);
  if (part.public_module) set_home(m, part.public_module);
  module.attr(part.name) = m;  // last: another thread finds it from now on without asking here
  return m;
}

/// vesta._C.__getattr__: makes the part of a name that the module does not have yet.
PyObject* getattr_object(PyObject* module, PyObject* name) {
  return guarded([&]() -> PyObject* {
    if (!PyUnicode_Check(name)) type_error("__getattr__(): expected a str, got %s", Py_TYPE(name)->tp_name);
    for (Part& part : parts) {
      if (PyUnicode_CompareWithASCIIString(name, part.name) != 0) continue;
      const auto m = py::reinterpret_borrow<py::module_>(module);
      try {
        return part.made.call_once_and_store_result([&] { return make(m, part); }).get_stored().inc_ref().ptr();
      } catch (py::error_already_set& e) {
        e.restore();
        return nullptr;
      }
    }
    PyErr_Format(PyExc_AttributeError, "module 'vesta._C' has no attribute '%U'", name);
    return nullptr;
  });
}

PyMethodDef methods[] = {{"__getattr__", getattr_object, METH_O, "Makes a part of the module on first use."},
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool add_parts(PyObject* module) {
  py::register_local_exception_translator(translate);
  return PyModule_AddFunctions(module, methods) == 0;
}

}  // namespace vesta::python
