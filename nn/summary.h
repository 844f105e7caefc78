// summary: the outputs and the costs of a model's layers for an input, as a table. Its text is that of vesta.summary
// in Python.
//
//   nn::Sequential net{nn::make<nn::Linear>(4, 3), nn::make<nn::ReLU>()};
//   std::cout << nn::summary(net, zeros({2, 4}));
//
//   Layer       Kind    Output  Parameters  Multiply-adds  Activations
//   Sequential          [2, 3]          15             24         48 B
//     0         Linear  [2, 3]          15             24         24 B
//     1         ReLU    [2, 3]                                    24 B
//   Parameters: 15 (60 B), all trained. Multiply-adds: 24. Activations: 48 B. Input: 32 B.
#pragma once
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <vesta/nn/module.h>

namespace vesta::nn {

/// One call of one layer. Its parameters, multiply-adds and bytes are those of everything in it.
struct SummaryRow {
  std::string name;  // qualified as in named_modules(); empty: the model
  std::string kind;
  int64_t depth = 0;  // calls around this one
  int64_t call = 1;   // 1: the first call of this layer
  std::string inputs,
      outputs;  // sizes as Python writes them: "[2, 3]", "([5, 2, 8], ([1, 2, 8], [1, 2, 8]))"; "-": none
  int64_t parameters = 0, trainable_parameters = 0, multiply_adds = 0;
  int64_t activation_bytes = 0;  // outputs of the layers without layers in them, less what shares memory with an input
  bool has_parts = false;  // another layer was called in it
};

/// The result of summary(): a row for each call in the order of the calls, and totals in which shared parameters count
/// once.
struct VESTA_API Summary {
  std::vector<SummaryRow> rows;
  int64_t parameters = 0, trainable_parameters = 0, parameter_bytes = 0, buffer_bytes = 0;
  int64_t multiply_adds = 0, activation_bytes = 0, input_bytes = 0;
  std::vector<std::string> not_called;  // layers that were not reached
  std::vector<std::string> uncounted;  // classes with parameters of their own and no formula

  /// Returns the table as text, without a newline at its end.
  std::string str() const;
};
VESTA_API std::ostream& operator<<(std::ostream& out, const Summary& summary);

/// The multiply-adds of one call of a layer; none for a layer that it does not know.
using CountMultiplyAdds =
    std::function<std::optional<int64_t>(Module& layer, const Values& inputs, const Value& output)>;

/// Runs `model` once in evaluation mode, without gradients and over copies of the inputs, and returns a table of its
/// layers. The formulas are those of Python's `vesta.summary`: one multiply-add is one product and one sum; `counts` is
/// asked first. The model is left as it was: modes, hooks, buffers and the states of the random generators, also where
/// it raises. A layer whose forward() is overloaded has no hooks, and raises; what is not called through `(*layer)(x)`
/// is not seen.
VESTA_API Summary summary(Module& model, const Values& inputs, const CountMultiplyAdds& counts = {});
/// Does so for one tensor.
VESTA_API Summary summary(Module& model, const Tensor& input, const CountMultiplyAdds& counts = {});

namespace detail {
/// The cost of one call: `count` is none where the layer's class has no formula, and `known` whether it is listed.
struct Cost {
  std::optional<int64_t> count;
  bool known = false;
};
/// Returns the multiply-adds of a call of this library's layers.
VESTA_API Cost multiply_adds(const Module& layer, const Values& inputs, const Value& output);
/// Returns whether a layer has a formula, so that layers in it are counted with it.
VESTA_API bool has_formula(const Module& layer);
}  // namespace detail

}  // namespace vesta::nn
