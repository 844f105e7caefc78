// vesta._C: everything the package needs from C++.
#include <vesta/core/plug_in.h>
#include <vesta/core/pool.h>
#include <vesta_build_identity.h>

#include "cpp_modules.h"
#include "ddp_bindings.h"
#include "distributed_bindings.h"
#include "dtype_device.h"
#include "factories.h"
#include "hand.h"
#include "registry.h"
#include "torch_function.h"

namespace vesta::python {
namespace {

struct LiveTensors {
  static constexpr char name[] = "_live_tensors", params[] = "()", doc[] = "Counts live tensors, for tests of leaks.";
  static PyObject* run(const Table&, Bound&) { return PyLong_FromLongLong(pool::live()); }
};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "vesta._C", "The C++ side of vesta.", -1, nullptr, nullptr, nullptr, nullptr, nullptr};

bool fill(PyObject* m) {
  return add_errors(m) && add_torch_function(m) && add_value_types(m) && add_tensor_type(m) && add_ops(m) &&
         add_methods_by_hand(m) && add_conversions(m) && add_factories(m) && add_numpy(m) && add_dlpack(m) &&
         add_random(m) && add_sample_seeds(m) && add_autograd(m) && add_functions_of_autograd(m) && add_settings(m) &&
         add_autocast(m) && add_profiler(m) && add_io(m) && add_cpp_modules(m) && add_shared(m) && add_distributed(m) &&
         add_ddp(m) && add_extension_api(m) && add_functions<LiveTensors>(m);
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
  bool ok = vesta::python::guarded<bool>([&] { return vesta::python::fill(m); });
  if (ok) return m;
  Py_DECREF(m);
  return nullptr;
}
