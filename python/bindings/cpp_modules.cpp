// The C++ layers and optimizers as vesta._C.cpp_nn, with the arguments of the Python layers: so that tests can hold the
// two together. A program in Python uses vesta.nn. Nothing here knows a layer: names come from the list of layers,
// arguments from the fields of their options.
#include <vesta/nn/layers/container.h>
#include <vesta/nn/optim/optim.h>
#include <vesta/nn/summary.h>

#include "cpp_options.h"
#include "parts.h"

namespace vesta::python {
namespace {

// ---- values ----

nn::Value value_of(py::handle given);

nn::Values values_of(const py::sequence& given) {
  nn::Values r;
  for (const py::handle part : given) r.push_back(value_of(part));
  return r;
}

nn::Value value_of(py::handle given) {
  if (given.is_none()) return {};
  if (py::isinstance<py::bool_>(given)) return given.cast<bool>();
  if (py::isinstance<py::int_>(given)) return given.cast<int64_t>();
  if (py::isinstance<py::float_>(given)) return given.cast<double>();
  if (py::isinstance<py::str>(given)) return given.cast<std::string>();
  if (py::isinstance<py::tuple>(given) || py::isinstance<py::list>(given)) {
    return values_of(py::reinterpret_borrow<py::sequence>(given));
  }
  return given.cast<Tensor>();
}

py::object object_of(const nn::Value& value) {
  return value.visit([]<class T>(const T& held) -> py::object {
    if constexpr (std::same_as<T, std::monostate> || std::same_as<T, std::any>) {
      return py::none();
    } else if constexpr (std::same_as<T, nn::Values>) {
      py::tuple r(held.size());
      for (size_t i = 0; i < held.size(); ++i) r[i] = object_of(held[i]);
      return r;
    } else {
      return py::cast(held);
    }
  });
}

// ---- modules ----

py::dict named(const nn::Module::Named& list) {
  py::dict r;
  for (const auto& [name, t] : list) r[py::str(name)] = py::cast(t);
  return r;
}

void add_base(py::module_& m) {
  py::class_<nn::Module, ModulePtr>(m, "Module")
      .def("__call__",
           [](nn::Module& self, const py::args& inputs) {
             const nn::Values given = values_of(inputs);
             return object_of(self.run(given));
           })
      .def("__repr__", &nn::Module::repr)
      .def("summary",
           [](nn::Module& self, const py::args& inputs) { return nn::summary(self, values_of(inputs)).str(); })
      .def("train", &nn::Module::train, py::arg("mode") = true)
      .def("eval", &nn::Module::eval)
      .def("clone", &nn::Module::clone)
      .def("named_parameters", [](const nn::Module& self) { return named(self.named_parameters()); })
      .def("state_dict", [](const nn::Module& self) { return named(self.state_dict()); })
      .def("register_forward_hook",
           [](nn::Module& self, const py::function& hook) {
             return self.register_forward_hook([hook](nn::Module&, const nn::Values& inputs, const nn::Value& output) {
               return value_of(hook(object_of(inputs), object_of(output)));
             });
           })
      .def(
          "load_state_dict",
          [](nn::Module& self, const std::map<std::string, Tensor>& state, bool strict) {
            self.load_state_dict({state.begin(), state.end()}, strict);
          },
          py::arg("state_dict"), py::arg("strict") = true);
}

// ---- optimizers ----

void add_optimizer_base(py::module_& m) {
  using optim::Optimizer;
  py::class_<Optimizer, std::shared_ptr<Optimizer>>(m, "Optimizer")
      .def("step", [](Optimizer& self) { self.step(); })
      .def("set_lr", &Optimizer::set_lr)
      .def("state_dict", [](const Optimizer& self) { return named(self.state_dict()); })
      .def("load_state_dict", [](Optimizer& self, const std::map<std::string, Tensor>& state) {
        self.load_state_dict({state.begin(), state.end()});
      });
}

using MakeOptimizer = std::shared_ptr<optim::Optimizer> (*)(const char* name, const std::vector<Tensor>& parameters,
                                                            const py::kwargs& kwargs);

template <class O>
std::shared_ptr<optim::Optimizer> make_optimizer(const char* name, const std::vector<Tensor>& parameters,
                                                 const py::kwargs& kwargs) {
  return std::make_shared<O>(parameters, options_of<typename O::Options>(name, py::args(), kwargs));
}

void add_optimizer(py::module_& m, const char* name, MakeOptimizer make) {
  m.def(name, [name, make](const std::vector<Tensor>& parameters, const py::kwargs& kwargs) {
    return make(name, parameters, kwargs);
  });
}

template <class C>
void add_container(py::module_& m, const char* name) {
  m.def(name, [](const py::args& parts) -> ModulePtr {
    auto made = nn::make<C>();
    for (const py::handle& part : parts) made->push_back(part.cast<ModulePtr>());
    return made;
  });
}

}  // namespace

std::vector<int64_t> integers(py::handle given) {
  if (py::isinstance<py::int_>(given)) return {given.cast<int64_t>()};
  return given.cast<std::vector<int64_t>>();
}

void read_arguments(const std::string& layer, std::string_view field_names, std::span<const Field> fields,
                    const py::args& args, const py::kwargs& kwargs) {
  const std::vector<std::string_view> names = nn::split_names(field_names);
  VESTA_CHECK(args.size() <= names.size(), type, layer, ": expected at most ", names.size(), " arguments, got ",
              args.size(), ".");
  for (const auto& [name, value] : kwargs) {
    const auto given = py::cast<std::string>(name);
    VESTA_CHECK(std::ranges::find(names, given) != names.end(), type, layer, ": has no argument '", given, "'.");
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    const py::str name{std::string(names[i])};
    if (i < args.size()) fields[i].read(fields[i].at, args[i]);
    else if (kwargs.contains(name)) fields[i].read(fields[i].at, kwargs[name]);
  }
}

void add_layer(py::module_& m, const char* name, MakeModule make) {
  m.def(name, [name, make](const py::args& args, const py::kwargs& kwargs) { return make(name, args, kwargs); });
}

void fill_cpp_nn(py::module_& m) {
  add_base(m);
  add_elementwise_layers(m);
  add_window_layers(m);
  add_loss_layers(m);
  add_sequence_layers(m);
  add_container<nn::Sequential>(m, "Sequential");
  add_optimizer_base(m);
#define VESTA_ADD_OPTIMIZER(Name) add_optimizer(m, #Name, make_optimizer<optim::Name>);
  VESTA_OPTIMIZERS(VESTA_ADD_OPTIMIZER)
#undef VESTA_ADD_OPTIMIZER
}

}  // namespace vesta::python
