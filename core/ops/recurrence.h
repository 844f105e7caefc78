// Recurrent networks: the step, and one layer in one direction over whole sequences.
//
// The ops are for devices with a kernel that runs all steps of a layer: it packs the weight once, keeps the states in
// working memory, and computes the weight's gradient as one product. Their bodies run step by step.
#pragma once
#include <tuple>
#include <vector>

#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/recurrence.h>

namespace vesta {

/// The outputs of all steps [R, H], the last states [N, H], and what the gradient needs: the activations of an LSTM or
/// a GRU [R, 4 H] and the cells before each step of an LSTM [R, H]. Undefined where a network has none.
using RecurrenceResults = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;
/// The gradients of x, h, c, weight and bias.
using RecurrenceGradients = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

VESTA_DECLARE_OPS(VESTA_OPS_RECURRENCE)

// The bodies, for cases that the device's kernel does not support.
VESTA_API RecurrenceResults _recurrence_composite(const Tensor& x, const Tensor& h, MaybeTensor c, const Tensor& weight,
                                                  MaybeTensor bias, IntList sizes, int64_t kind, bool reverse);
VESTA_API RecurrenceGradients _recurrence_backward_composite(MaybeTensor grad_out, MaybeTensor grad_h,
                                                             MaybeTensor grad_c, const Tensor& x, const Tensor& h,
                                                             MaybeTensor c, const Tensor& weight, MaybeTensor bias,
                                                             const Tensor& out, MaybeTensor activations,
                                                             MaybeTensor cells, IntList sizes, int64_t kind,
                                                             bool reverse);

namespace recurrence {

enum class Kind : int64_t { lstm, gru, tanh, relu };

/// Returns the rows of a weight per hidden unit.
constexpr int64_t gates_of(Kind kind) { return kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1; }

/// The state of a network at one step: the hidden state [N, H], and the cell of an LSTM.
struct State {
  Tensor h, c;
};

/// The weights of one layer in one direction.
struct Weights {
  Tensor ih, hh, b_ih, b_hh;
  Tensor hr;  // [P, H], of an LSTM with projections
};

/// Multiplies by the hidden state's weights and takes the step. `x` is what the input contributes, [N, G H], with both
/// biases where they are only added (not in a GRU).
State step(Kind kind, const Tensor& x, const State& before, const Weights& w);

/// A function that runs one layer in one direction step by step, longest sequence first.
struct Layer {
  Kind kind;
  const Weights& w;
  const std::vector<Tensor>& inputs;  // what those of each step contribute, [sizes[t], G H]
  IntSpan sizes;                      // the numbers of sequences

  /// Appends the outputs, and the states before each step if they are requested, in the order of time. Returns the last
  /// states.
  State run(const State& start, bool reverse, std::vector<Tensor>& outputs, std::vector<State>* before = nullptr) const;

 private:
  State forward(const State& start, std::vector<Tensor>& outputs, std::vector<State>* before) const;
  State backward(const State& start, std::vector<Tensor>& outputs, std::vector<State>* before) const;
};

/// Returns whether one kernel runs all steps of a layer whose inputs contribute x. Kernels take no projections and no
/// empty operands, and the CPU's no 16-bit floats. Autocast is for the products of single steps; of CUDA's networks it
/// has cast all operands before the first one, and is paused.
bool in_one_kernel(Kind kind, const Tensor& x, const State& start, const Weights& w);

/// Checks the operands of `_recurrence`. Error(runtime): sizes that do not fit; Error(type): dtypes that differ.
VESTA_API void check(const Tensor& x, const Tensor& h, MaybeTensor c, const Tensor& weight, MaybeTensor bias,
                     IntSpan sizes, int64_t kind);

}  // namespace recurrence
}  // namespace vesta
