// The conversion of Python's arguments for C++ layers and optimizers, by the fields of their options. Each list of
// layers is compiled in a file of its own, cpp_layers_*.cpp.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <pybind11/stl.h>

#include <vesta/nn/fields.h>
#include <vesta/nn/layers/conv.h>

#include "errors.h"
#include "type_caster.h"

namespace vesta::python {

namespace py = pybind11;
using ModulePtr = std::shared_ptr<nn::Module>;

/// Reads one integer or several.
std::vector<int64_t> integers(py::handle given);
template <class T>
void read(T& field, py::handle given) {
  field = given.cast<T>();
}
template <size_t n>
void read(nn::Ints<n>& field, py::handle given) {
  const std::vector<int64_t> all = integers(given);
  VESTA_CHECK(all.size() == 1 || all.size() == n, value, "expected one integer or ", n, ", got ", all.size(), ".");
  for (size_t i = 0; i < n; ++i) field.v[i] = all[all.size() == n ? i : 0];
}
template <size_t n>
void read(nn::MaybeInts<n>& field, py::handle given) {
  if (py::isinstance<py::int_>(given) || given.is_none()) {
    field.v.fill(given.cast<MaybeInt>());
  } else {
    field.v = given.cast<std::array<MaybeInt, n>>();
  }
}
template <size_t n>
void read(nn::ConvPadding<n>& field, py::handle given) {
  if (py::isinstance<py::str>(given)) field.word = given.cast<std::string>();
  else read(field.amount, given);
}
inline void read(nn::Shape& field, py::handle given) { field.v = integers(given); }
template <class T>
void read(nn::PerDimension<T>& field, py::handle given) {
  if (py::isinstance<py::sequence>(given)) field.v = given.cast<std::vector<T>>();
  else field.v = {given.cast<T>()};
}
template <class T>
void read(std::optional<T>& field, py::handle given) {
  if (given.is_none()) field.reset();
  else read(field.emplace(), given);
}

/// A field of an options struct: where it is, and what reads it. One reader serves all fields of a type.
struct Field {
  void* at;
  void (*read)(void* at, py::handle given);
};
template <class T>
void read_into(void* at, py::handle given) {
  read(*static_cast<T*>(at), given);
}

/// Reads Python's arguments into fields, by position and by name.
void read_arguments(const std::string& layer, std::string_view field_names, std::span<const Field> fields,
                    const py::args& args, const py::kwargs& kwargs);

/// Makes options from Python's arguments.
template <class Options>
Options options_of(const std::string& layer, const py::args& args, const py::kwargs& kwargs) {
  Options options{};
  const auto fields = options.with_fields([](auto&... f) {
    return std::array<Field, sizeof...(f)>{Field{&f, read_into<std::remove_reference_t<decltype(f)>>}...};
  });
  read_arguments(layer, Options::field_names, fields, args, kwargs);
  return options;
}

using MakeModule = ModulePtr (*)(const char* name, const py::args& args, const py::kwargs& kwargs);

template <class L>
ModulePtr make_layer(const char* name, const py::args& args, const py::kwargs& kwargs) {
  if constexpr (std::same_as<typename L::Options, nn::NoOptions>) {
    VESTA_CHECK(args.empty() && kwargs.empty(), type, name, ": expected no arguments, got some.");
    return std::make_shared<L>();
  } else {
    return std::make_shared<L>(options_of<typename L::Options>(name, args, kwargs));
  }
}

/// Adds a layer to the module cpp_nn.
void add_layer(py::module_& m, const char* name, MakeModule make);
#define VESTA_ADD_LAYER(Name) add_layer(m, #Name, make_layer<nn::Name>);

void add_elementwise_layers(py::module_& m);
void add_window_layers(py::module_& m);
void add_loss_layers(py::module_& m);
void add_sequence_layers(py::module_& m);

}  // namespace vesta::python
