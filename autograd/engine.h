// The engine: runs the tape backwards. engine.cpp opens with a tour of a run.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include <vesta/autograd/node.h>

namespace vesta::autograd {

/// The options of a backward run.
struct BackwardOptions {
  bool retain_graph = false;   // keep saved tensors for another run
  bool create_graph = false;   // record the run itself: gradients of gradients
  bool accumulate = true;      // add into grad; false: return the gradients of `inputs`
  bool allow_unused = false;   // an input that was not used gives an undefined gradient instead of an error
};

/// Runs backwards from `roots` with the incoming gradients `grads` (same length or empty; for a one-element root an
/// undefined gradient means one). With `inputs`, only they get gradients: accumulated into their grad, or returned in
/// order where `accumulate` is false. Errors: a root without history, a gradient of a wrong shape, an unused input.
/// Callable from hooks and custom functions, and from several threads at once.
VESTA_API std::vector<Tensor> run_backward(TensorList roots, TensorList grads, const BackwardOptions& options = {},
                                           TensorList inputs = {});
/// Does the same for callers that spell out every option.
inline std::vector<Tensor> run_backward(TensorList roots, TensorList grads, bool retain_graph, bool create_graph,
                                        TensorList inputs, bool accumulate, bool allow_unused) {
  return run_backward(roots, grads, BackwardOptions{retain_graph, create_graph, accumulate, allow_unused}, inputs);
}

/// Returns the running sum of the gradient for the current node's only input, with the pieces that were kept joined, or
/// null. It is null unless this run alone owns the sum, its stream is the current one, and nothing is recorded or
/// hooked. A rule that adds its part to the sum in place returns an undefined gradient.
VESTA_API Tensor* sum_in_progress();

/// Leaves the gradient of a piece of the current node's only input, of `sizes`, to the run: elements [start, start +
/// g.size(dim)) along `dim`. It is copied unless it is `alone`, without another holder who might change it. Returns
/// false where the run cannot keep it. Pieces are joined when the gradient is needed.
VESTA_API bool keep_piece(const Tensor& g, bool alone, IntSpan sizes, int64_t dim, int64_t start);

/// Calls `f` when the backward run under way on this thread ends without error. Error: called outside a run.
VESTA_API void queue_callback(std::function<void()> f);
/// Does the same for the end of the outermost run, where a backward runs inside a backward.
VESTA_API void queue_final_callback(std::function<void()> f);

/// Turns anomaly detection on or off: errors carry the node's name, and (with check_nan) a NaN gradient raises.
VESTA_API void set_detect_anomaly(bool enabled, bool check_nan = true);
VESTA_API bool detect_anomaly();
/// Sets whether runs note their nodes in the profiler's recorder.
void watch_by_profiler(bool on);

}  // namespace vesta::autograd

namespace vesta {

/// Adds d(tensors)/d(leaf) into every leaf's grad (only those of `inputs` if given). As torch.autograd.backward.
VESTA_API void backward(TensorList tensors, TensorList grad_tensors = {}, std::optional<bool> retain_graph = {},
                        bool create_graph = false, TensorList inputs = {});
/// Returns d(outputs)/d(inputs), summed over outputs; undefined (or zeros) for unused ones. As torch.autograd.grad.
VESTA_API std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList grad_outputs = {},
                                   std::optional<bool> retain_graph = {}, bool create_graph = false,
                                   std::optional<bool> allow_unused = {}, bool materialize_grads = false);

}  // namespace vesta
