// Layers: what may happen between an op's call and its kernel, and the thread's settings for them.
#pragma once
#include <cstdint>

#include <vesta/core/base/macros.h>

namespace vesta {

/// The layer slots of an op. A call starts at the highest active one: profiler, autocast, (vmap, jvp), autograd, sparse
/// (an operand is a sparse tensor, which no kernel takes), then the kernel. Bit positions are the enumerators.
enum class Layer : uint8_t { sparse = 0, autograd = 1, jvp = 2, vmap = 3, autocast = 4, profiler = 5 };
inline constexpr int kNumLayers = 6;

constexpr uint8_t bit(Layer l) { return uint8_t(1u << unsigned(l)); }

/// The thread's settings: layers switched on for every call, layers skipped, and the modes of autograd.
struct LayerState {
  uint8_t included = bit(Layer::profiler);  // Note [Switching the profiler] in op.h
  uint8_t excluded = 0;
  bool grad_enabled = true;  // no_grad() clears it and excludes Layer::autograd
  bool inference = false;  // inference_mode(): new tensors carry no autograd state at all
};

/// The state of the calling thread, defined once in the core library. Initial-exec: reading it is one instruction.
extern VESTA_API constinit thread_local LayerState layer_state __attribute__((tls_model("initial-exec")));

/// A guard that runs the rest of the call below `layer`: that layer and those above it are skipped, except for the
/// profiler, which sees the ops that an op calls.
class Below {
 public:
  explicit Below(Layer l) : saved_(layer_state.excluded) {
    layer_state.excluded |= uint8_t((0xffu << unsigned(l)) & (bit(Layer::profiler) - 1u));
  }
  ~Below() { layer_state.excluded = saved_; }
  Below(const Below&) = delete;

 private:
  uint8_t saved_;
};

/// A guard that switches gradient recording on or off for this thread while it lives.
class GradMode {
 public:
  explicit GradMode(bool enabled) : saved_(layer_state) { set(enabled); }
  ~GradMode() { layer_state = saved_; }
  GradMode(const GradMode&) = delete;
  static bool enabled() { return layer_state.grad_enabled; }
  /// Sets the mode without a guard (for language bindings that restore it themselves).
  static void set(bool enabled) {
    layer_state.grad_enabled = enabled;
    if (enabled) layer_state.excluded &= uint8_t(~bit(Layer::autograd));
    else layer_state.excluded |= bit(Layer::autograd);
  }

 private:
  LayerState saved_;
};
/// A GradMode(false): nothing in this scope is recorded.
struct NoGrad : GradMode {
  NoGrad() : GradMode(false) {}
};
/// A GradMode(true).
struct EnableGrad : GradMode {
  EnableGrad() : GradMode(true) {}
};
/// A guard that switches inference mode on or off while it lives: no recording, and new tensors cannot enter a graph
/// later.
class InferenceMode {
 public:
  explicit InferenceMode(bool enabled = true) : saved_(layer_state) {
    layer_state.inference = enabled;
    GradMode::set(!enabled);
  }
  ~InferenceMode() { layer_state = saved_; }
  InferenceMode(const InferenceMode&) = delete;

 private:
  LayerState saved_;
};

}  // namespace vesta
