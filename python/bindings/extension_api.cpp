// The capsule that extensions of users import (python/extension/api.h).
#include <vesta/python/extension/api.h>
#include <vesta_build_identity.h>

#include "dtype_device.h"
#include "errors.h"
#include "factories.h"

namespace vesta::python {

bool add_extension_api(PyObject* module) {
  static const ExtensionApi api{VESTA_BUILD_IDENTITY,
                                &is_tensor,
                                &unwrap,
                                &wrap,
                                &to_dtype,
                                &to_device,
                                &wrap_dtype,
                                &wrap_device,
                                []() noexcept { translate_exception(); }};
  PyObject* capsule = PyCapsule_New(const_cast<ExtensionApi*>(&api), kExtensionApi, nullptr);
  return capsule && PyModule_AddObject(module, "_extension_api", capsule) == 0;
}

}  // namespace vesta::python
