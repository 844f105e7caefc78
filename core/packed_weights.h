// Whether the calling thread's products and convolutions may keep packed weights.
#pragma once
#include <utility>

#include <vesta/core/dispatch/layer.h>

namespace vesta {

/// Whether a WithoutPackedWeights is alive in this thread.
extern VESTA_API constinit thread_local bool packed_weights_unwanted __attribute__((tls_model("initial-exec")));

/// A guard during which this thread keeps no packed weights: in a backward pass, after which the optimizer writes them.
class WithoutPackedWeights {
 public:
  WithoutPackedWeights() : saved_(std::exchange(packed_weights_unwanted, true)) {}
  ~WithoutPackedWeights() { packed_weights_unwanted = saved_; }
  WithoutPackedWeights(const WithoutPackedWeights&) = delete;
  /// Returns whether weights may be kept: nothing is recorded, and no such guard is alive.
  static bool may_keep() { return !layer_state.grad_enabled && !packed_weights_unwanted; }

 private:
  bool saved_;
};

}  // namespace vesta
