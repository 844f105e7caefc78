// vesta._C: everything the package needs from C++.
#include <vesta/core/plug_in.h>
#include <vesta/core/pool.h>
#include <vesta_build_identity.h>

#include "dtype_device.h"
#include "factories.h"
#include "hand.h"
#include "out_argument.h"
#include "parts.h"
#include "registry.h"
#include "torch_function.h"

namespace vesta::python {
namespace {

struct LiveTensors {
  static constexpr char name[] = "_live_tensors", params[] = "()", doc[] = "Counts live tensors, for tests of leaks.";
  static PyObject* run(const Table&, Bound&) { return PyLong_FromLongLong(pool::live()); }
};
/// A class that defines __getattr__ pays for it at every attribute, found or not. nn.Module has one that only raises
/// for what subclasses ask of it by name (super().__getattr__): classes without another need not go through it.
struct PlainAttributes {
  static constexpr char name[] = "_look_up_plainly", params[] = "(object cls, object getattr)",
                        doc[] = "Lets a class look attributes up as if it had no __getattr__, if it has this one.";
  static PyObject* run(const Table& t, Bound& b) {
    if (!PyType_Check(b.slot[0])) wrong_type(t, 0, "a class", b.slot[0]);
    auto same = [&](const char* method, PyObject* cls, PyObject* other) {
      Ref found(checked(PyObject_GetAttrString(cls, method)));
      return found.get() == other;
    };
    Ref plain(checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__getattribute__")));
    if (same("__getattr__", b.slot[0], b.slot[1]) && same("__getattribute__", b.slot[0], plain.get())) {
      auto* type = reinterpret_cast<PyTypeObject*>(b.slot[0]);
      type->tp_getattro = PyObject_GenericGetAttr;
      PyType_Modified(type);
    }
    Py_RETURN_NONE;
  }
};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "vesta._C", "The C++ side of vesta.", -1, nullptr, nullptr, nullptr, nullptr, nullptr};

bool fill(PyObject* m) {
  return add_errors(m) && add_torch_function(m) && add_value_types(m) && add_tensor_type(m) && add_ops(m) &&
         add_methods_by_hand(m) && add_conversions(m) && add_factories(m) && add_numpy(m) && add_dlpack(m) &&
         add_random(m) && add_sample_seeds(m) && add_autograd(m) && add_functions_of_autograd(m) && add_settings(m) &&
         add_autocast(m) && add_profiler(m) && add_io(m) && add_parts(m) && add_extension_api(m) &&
         add_out_argument(m) && add_functions<LiveTensors, PlainAttributes>(m);
}

}  // namespace
}  // namespace vesta::python

extern "C" __attribute__((visibility("default"))) PyObject* PyInit__C() {
  const std::string problem = vesta::other_build("vesta._C", VESTA_BUILD_IDENTITY);
  if (!problem.empty()) {
    PyErr_SetString(PyExc_ImportError, problem.c_str());
    return nullptr;
  }
  PyObject* m = PyModule_Create(&vesta::python::definition);
  if (!m) return nullptr;
  // Some thousand objects are made, and all stay: the collector would walk them several times and find nothing.
#if PY_VERSION_HEX >= 0x030A0000
  const bool collects = PyGC_Disable() != 0;
#endif
  const bool ok = vesta::python::guarded<bool>([&] { return vesta::python::fill(m); });
#if PY_VERSION_HEX >= 0x030A0000
  if (collects) PyGC_Enable();
#endif
  if (ok) return m;
  Py_DECREF(m);
  return nullptr;
}
