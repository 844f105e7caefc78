// The type caster by which pybind11 passes tensors as their own Python objects, so that identity is kept. None is an
// undefined tensor. And devices.
#pragma once
#include <pybind11/pybind11.h>

#include "dtype_device.h"
#include "python_tensor.h"

namespace pybind11::detail {

template <>
struct type_caster<vesta::Tensor> {
  PYBIND11_TYPE_CASTER(vesta::Tensor, const_name("Tensor"));

  bool load(handle source, bool) {
    if (source.is_none()) return true;
    if (!vesta::python::is_tensor(source.ptr())) return false;
    value = vesta::python::unwrap(source.ptr());
    return true;
  }
  static handle cast(const vesta::Tensor& t, return_value_policy, handle) { return vesta::python::wrap(t); }
};

template <>
struct type_caster<vesta::Device> {
  PYBIND11_TYPE_CASTER(vesta::Device, const_name("device"));

  bool load(handle source, bool) { return vesta::python::to_device(source.ptr(), value); }
  static handle cast(vesta::Device d, return_value_policy, handle) { return vesta::python::wrap_device(d); }
};

}  // namespace pybind11::detail
