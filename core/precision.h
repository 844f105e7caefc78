// The precision of float32 products on devices that can trade accuracy for speed, and the choice of algorithms.
// Backends read these settings; front ends write them. They are kept here because a program sets them before any device
// exists.
#pragma once
#include <atomic>

#include <vesta/core/base/macros.h>

namespace vesta {

/// The settings of the process. Any thread may read and write any of them.
struct ProductSettings {
  std::atomic<bool> matmul_allow_tf32{false};  // torch.backends.cuda.matmul.allow_tf32
  std::atomic<bool> convolution_allow_tf32{true};  // torch.backends.cudnn.allow_tf32
  std::atomic<bool> convolution_library{true};  // torch.backends.cudnn.enabled
  std::atomic<bool> attention_library{true};  // torch.backends.cuda.enable_cudnn_sdp
  std::atomic<bool> allow_nondeterministic{false};  // vesta.backends.cuda.allow_nondeterministic
  std::atomic<bool> deterministic_only{false};  // torch.use_deterministic_algorithms, which wins over it
  std::atomic<bool> matmul_allow_relu_epilogue{false};  // vesta.backends.cuda.matmul.allow_relu_epilogue
};
VESTA_API ProductSettings& product_settings();
/// Returns whether a device may use algorithms whose bits change from run to run.
VESTA_API bool may_be_nondeterministic();

}  // namespace vesta
