// The C++ layers as vesta._C.cpp_nn, with the arguments of the Python layers: so that tests can hold the two together.
// A program in Python uses vesta.nn.
#include "cpp_modules.h"

#include <pybind11/stl.h>

#include <vesta/nn/layers/activation.h>
#include <vesta/nn/layers/container.h>
#include <vesta/nn/layers/conv.h>
#include <vesta/nn/layers/linear.h>
#include <vesta/nn/layers/norm.h>

#include "errors.h"
#include "type_caster.h"

namespace vesta::python {
namespace {

namespace py = pybind11;
using ModulePtr = std::shared_ptr<nn::Module>;
using IntOrPair = std::variant<int64_t, std::pair<int64_t, int64_t>>;

nn::Pair pair(const IntOrPair& v) {
  if (const auto* both = std::get_if<int64_t>(&v)) return *both;
  return {std::get<1>(v).first, std::get<1>(v).second};
}

py::dict named(const nn::Module::Named& list) {
  py::dict r;
  for (const auto& [name, t] : list) r[py::str(name)] = py::cast(t);
  return r;
}

void add_base(py::module_& m) {
  py::class_<nn::Module, ModulePtr>(m, "Module")
      .def("__call__", [](nn::Module& self, const Tensor& input) { return self(input); })
      .def("__repr__", &nn::Module::repr)
      .def("train", &nn::Module::train, py::arg("mode") = true)
      .def("eval", &nn::Module::eval)
      .def("clone", &nn::Module::clone)
      .def("named_parameters", [](const nn::Module& self) { return named(self.named_parameters()); })
      .def("state_dict", [](const nn::Module& self) { return named(self.state_dict()); })
      .def(
          "load_state_dict",
          [](nn::Module& self, const std::map<std::string, Tensor>& state, bool strict) {
            self.load_state_dict({state.begin(), state.end()}, strict);
          },
          py::arg("state_dict"), py::arg("strict") = true);
}

/// Adds NAME(), for layers without arguments.
template <class M>
void add_plain(py::module_& m, const char* name) {
  m.def(name, []() -> ModulePtr { return nn::make<M>(); });
}

void add_activations(py::module_& m) {
  add_plain<nn::ReLU>(m, "ReLU");
  add_plain<nn::Tanh>(m, "Tanh");
  add_plain<nn::Sigmoid>(m, "Sigmoid");
  add_plain<nn::LogSigmoid>(m, "LogSigmoid");
  m.def(
      "Softplus",
      [](double beta, double threshold) -> ModulePtr {
        return nn::make<nn::Softplus>(nn::SoftplusOptions{beta, threshold});
      },
      py::arg("beta") = 1.0, py::arg("threshold") = 20.0);
  add_plain<nn::Identity>(m, "Identity");
  m.def("Dropout", [](double p) -> ModulePtr { return nn::make<nn::Dropout>(p); }, py::arg("p") = 0.5);
  m.def(
      "Flatten",
      [](int64_t start, int64_t end) -> ModulePtr { return nn::make<nn::Flatten>(nn::FlattenOptions{start, end}); },
      py::arg("start_dim") = 1, py::arg("end_dim") = -1);
}

void add_weighted(py::module_& m) {
  m.def(
      "Linear", [](int64_t in, int64_t out, bool bias) -> ModulePtr { return nn::make<nn::Linear>(in, out, bias); },
      py::arg("in_features"), py::arg("out_features"), py::arg("bias") = true);
  m.def(
      "Embedding",
      [](int64_t rows, int64_t dim, std::optional<int64_t> padding) -> ModulePtr {
        return nn::make<nn::Embedding>(nn::EmbeddingOptions{rows, dim, padding});
      },
      py::arg("num_embeddings"), py::arg("embedding_dim"), py::arg("padding_idx") = py::none());
  m.def(
      "Conv2d",
      [](int64_t in, int64_t out, const IntOrPair& kernel, const IntOrPair& stride, const IntOrPair& padding,
         const IntOrPair& dilation, int64_t groups, bool bias) -> ModulePtr {
        return nn::make<nn::Conv2d>(
            nn::Conv2dOptions{in, out, pair(kernel), pair(stride), pair(padding), pair(dilation), groups, bias});
      },
      py::arg("in_channels"), py::arg("out_channels"), py::arg("kernel_size"), py::arg("stride") = 1,
      py::arg("padding") = 0, py::arg("dilation") = 1, py::arg("groups") = 1, py::arg("bias") = true);
  m.def(
      "MaxPool2d",
      [](const IntOrPair& kernel, const std::optional<IntOrPair>& stride, const IntOrPair& padding,
         const IntOrPair& dilation, bool ceil_mode) -> ModulePtr {
        return nn::make<nn::MaxPool2d>(nn::MaxPool2dOptions{pair(kernel),
                                                            stride ? std::optional(pair(*stride)) : std::nullopt,
                                                            pair(padding), pair(dilation), ceil_mode});
      },
      py::arg("kernel_size"), py::arg("stride") = py::none(), py::arg("padding") = 0, py::arg("dilation") = 1,
      py::arg("ceil_mode") = false);
  m.def(
      "BatchNorm2d",
      [](int64_t features, double eps, std::optional<double> momentum, bool affine, bool track,
         bool bias) -> ModulePtr {
        return nn::make<nn::BatchNorm2d>(nn::BatchNorm2dOptions{features, eps, momentum, affine, track, bias});
      },
      py::arg("num_features"), py::arg("eps") = 1e-5, py::arg("momentum") = 0.1, py::arg("affine") = true,
      py::arg("track_running_stats") = true, py::kw_only(), py::arg("bias") = true);
  m.def(
      "LayerNorm",
      [](const std::variant<int64_t, std::vector<int64_t>>& shape, double eps, bool affine, bool bias) -> ModulePtr {
        const auto* one = std::get_if<int64_t>(&shape);
        return nn::make<nn::LayerNorm>(
            nn::LayerNormOptions{one ? std::vector{*one} : std::get<1>(shape), eps, affine, bias});
      },
      py::arg("normalized_shape"), py::arg("eps") = 1e-5, py::arg("elementwise_affine") = true, py::arg("bias") = true);
}

void add_the_rest(py::module_& m) {
  m.def("Sequential", [](const py::args& parts) -> ModulePtr {
    auto net = nn::make<nn::Sequential>();
    for (const py::handle& part : parts) net->push_back(part.cast<ModulePtr>());
    return net;
  });
  py::class_<nn::CrossEntropyLoss, nn::Module, std::shared_ptr<nn::CrossEntropyLoss>>(m, "CrossEntropyLoss")
      .def(py::init(
               [](const Tensor& weight, int64_t ignore_index, const std::string& reduction, double label_smoothing) {
                 return nn::make<nn::CrossEntropyLoss>(
                     nn::CrossEntropyLossOptions{weight, ignore_index, reduction, label_smoothing});
               }),
           py::arg("weight") = py::none(), py::arg("ignore_index") = -100, py::arg("reduction") = "mean",
           py::arg("label_smoothing") = 0.0)
      .def("__call__",
           [](nn::CrossEntropyLoss& self, const Tensor& input, const Tensor& target) { return self(input, target); });
  py::class_<nn::BCEWithLogitsLoss, nn::Module, std::shared_ptr<nn::BCEWithLogitsLoss>>(m, "BCEWithLogitsLoss")
      .def(py::init([](const Tensor& weight, const std::string& reduction, const Tensor& pos_weight) {
             return nn::make<nn::BCEWithLogitsLoss>(nn::BCEWithLogitsLossOptions{weight, reduction, pos_weight});
           }),
           py::arg("weight") = py::none(), py::arg("reduction") = "mean", py::arg("pos_weight") = py::none())
      .def("__call__",
           [](nn::BCEWithLogitsLoss& self, const Tensor& input, const Tensor& target) { return self(input, target); });
}

}  // namespace

bool add_cpp_modules(PyObject* module) {
  return guarded(
      [&] {
        auto m = py::reinterpret_borrow<py::module_>(module).def_submodule("cpp_nn", "The C++ layers, for comparison.");
        py::register_local_exception_translator([](std::exception_ptr p) {
          try {
            std::rethrow_exception(p);
          } catch (const Error&) {
            translate_exception();
          } catch (const PythonError&) {
            translate_exception();
          }
        });
        add_base(m);
        add_activations(m);
        add_weighted(m);
        add_the_rest(m);
        return true;
      },
      false);
}

}  // namespace vesta::python
