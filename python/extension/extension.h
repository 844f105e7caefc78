// Everything that a Python extension in C++ needs: the library, and pybind11 with tensors, dtypes and devices as
// arguments and results. vesta.utils.cpp_extension compiles such a file:
//
// clang-format off
//   #include <vesta/extension.h>
//   vesta::Tensor twice(const vesta::Tensor& x) { return x + x; }
//   PYBIND11_MODULE(VESTA_EXTENSION_NAME, m) { m.def("twice", &twice); }
// clang-format on
//
// Errors of the library become Python's of the same classes. An extension of another build than the vesta that is
// imported raises ImportError at its first call.
#pragma once
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <vesta/autograd/function.h>
#include <vesta/python/extension/api.h>
#include <vesta/vesta.h>
#include <vesta_build_identity.h>

#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

namespace vesta::python {

/// Translates exceptions of the library, and those that its hooks carry; pybind11 knows its own.
inline void translate_for_pybind(std::exception_ptr in_flight);

/// Returns the functions of the vesta that is imported. ImportError if it is another build. The caller holds the GIL,
/// which guards `api`; a static's own guard would deadlock with it, because an import lets the GIL go.
inline const ExtensionApi& extension_api() {
  static constinit const ExtensionApi* api = nullptr;
  if (api) return *api;
  auto* found = static_cast<const ExtensionApi*>(PyCapsule_Import(kExtensionApi, 0));
  if (!found) throw pybind11::error_already_set();
  if (std::strcmp(found->build, VESTA_BUILD_IDENTITY) != 0) {
    throw pybind11::import_error(std::string("extension: it was compiled against Vesta ") + VESTA_BUILD_IDENTITY +
                                 ", and this is " + found->build + ". Compile it again.");
  }
  if (!api) {  // else another thread came first
    pybind11::register_local_exception_translator(&translate_for_pybind);
    api = found;
  }
  return *api;
}

inline void translate_for_pybind(std::exception_ptr in_flight) {
  try {
    std::rethrow_exception(in_flight);
  } catch (const pybind11::builtin_exception&) {
    throw;  // this one and the next are pybind11's to translate: std::out_of_range is an IndexError
  } catch (const std::logic_error&) {
    throw;
  } catch (...) {
    extension_api().translate_exception();
  }
}

}  // namespace vesta::python

namespace pybind11::detail {

template <>
struct type_caster<vesta::Tensor> {
  PYBIND11_TYPE_CASTER(vesta::Tensor, const_name("vesta.Tensor"));

  bool load(handle source, bool) {
    const auto& api = vesta::python::extension_api();
    if (!api.is_tensor(source.ptr())) return false;
    value = api.unwrap(source.ptr());
    return true;
  }
  static handle cast(const vesta::Tensor& t, return_value_policy, handle) {
    return vesta::python::extension_api().wrap(t);
  }
};

template <>
struct type_caster<vesta::DType> {
  PYBIND11_TYPE_CASTER(vesta::DType, const_name("vesta.dtype"));

  bool load(handle source, bool) { return vesta::python::extension_api().to_dtype(source.ptr(), value); }
  static handle cast(vesta::DType d, return_value_policy, handle) {
    return vesta::python::extension_api().wrap_dtype(d);
  }
};

template <>
struct type_caster<vesta::Device> {
  PYBIND11_TYPE_CASTER(vesta::Device, const_name("vesta.device"));

  bool load(handle source, bool) { return vesta::python::extension_api().to_device(source.ptr(), value); }
  static handle cast(vesta::Device d, return_value_policy, handle) {
    return vesta::python::extension_api().wrap_device(d);
  }
};

}  // namespace pybind11::detail
