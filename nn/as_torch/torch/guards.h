// What holds for a scope or the process: recording, random seeds, threads, CUDA's presence.
#pragma once
#include <torch/tensor.h>  // before Vesta's

#include <vesta/core/backend.h>
#include <vesta/core/random.h>

namespace torch {

/// Nothing in its scope is recorded.
class NoGradGuard {
 public:
  NoGradGuard() : mode_(false) {}

 private:
  vesta::GradMode mode_;
};

/// Sets whether its scope is recorded.
class AutoGradMode {
 public:
  explicit AutoGradMode(bool enabled) : mode_(enabled) {}

 private:
  vesta::GradMode mode_;
};

/// The switch of the current thread.
struct GradMode {
  static bool is_enabled() { return vesta::GradMode::enabled(); }
  static void set_enabled(bool enabled) { vesta::GradMode::set(enabled); }
};

/// Nothing in its scope is recorded, and its tensors never take part in a recording.
class InferenceMode : public vesta::InferenceMode {
 public:
  using vesta::InferenceMode::InferenceMode;
  static bool is_enabled() { return vesta::layer_state.inference; }
};

/// Seeds the generators of all devices.
inline void manual_seed(uint64_t seed) { vesta::manual_seed(seed); }

namespace autograd {
using torch::AutoGradMode;
using torch::GradMode;
using torch::NoGradGuard;

/// The switch of anomaly detection: errors carry the node's name, a NaN gradient raises.
struct AnomalyMode {
  static bool is_enabled() { return vesta::autograd::detect_anomaly(); }
  static void set_enabled(bool enabled, bool check_nan = true) {
    vesta::autograd::set_detect_anomaly(enabled, check_nan);
  }
};
}  // namespace autograd

namespace cuda {
/// Returns the number of GPUs that can be used.
inline size_t device_count() {
  return vesta::has_backend(vesta::DeviceType::cuda) ? size_t(vesta::backend(vesta::DeviceType::cuda).device_count())
                                                     : 0;
}
inline bool is_available() { return device_count() > 0; }
/// Returns whether cuDNN could be used; Vesta loads it when an op needs it.
inline bool cudnn_is_available() { return is_available(); }
inline void manual_seed(uint64_t seed) { vesta::manual_seed(seed); }
inline void manual_seed_all(uint64_t seed) { vesta::manual_seed(seed); }
/// Waits for all work on a GPU, the first one by default. Error: there is none.
inline void synchronize(int64_t device_index = -1) {
  VESTA_CHECK(is_available(), runtime, "torch::cuda::synchronize: no CUDA GPUs are available.");
  vesta::backend(vesta::DeviceType::cuda).synchronize(Device(kCUDA, DeviceIndex(std::max<int64_t>(device_index, 0))));
}
}  // namespace cuda

// Kinds of devices that Vesta does not have.
namespace mps {
inline bool is_available() { return false; }
}  // namespace mps
namespace xpu {
inline bool is_available() { return false; }
inline size_t device_count() { return 0; }
}  // namespace xpu

}  // namespace torch

namespace at {
using torch::AutoGradMode;
using torch::GradMode;
using torch::InferenceMode;
using torch::NoGradGuard;
}  // namespace at
namespace c10 {
using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;
using torch::ArrayRef;
using torch::AutoGradMode;
using torch::BFloat16;
using torch::Device;
using torch::DeviceIndex;
using torch::DeviceType;
using torch::GradMode;
using torch::Half;
using torch::InferenceMode;
using torch::IntArrayRef;
using torch::kCPU;
using torch::kCUDA;
using torch::Layout;
using torch::MemoryFormat;
using torch::OptionalIntArrayRef;
using torch::Scalar;
using torch::ScalarType;
using torch::scalarTypeToTypeMeta;
using torch::TensorOptions;
using torch::toString;
using torch::typeMetaToScalarType;
template <class T>
using OptionalArrayRef = optional<torch::ArrayRef<T>>;
}  // namespace c10
