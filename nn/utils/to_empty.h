// Memory for modules that have none yet.
#pragma once
#include <vesta/nn/module.h>

namespace vesta::nn::utils {

/// Moves parameters and buffers to a device in place, without their values: what a module on the meta device, which has
/// none, needs before they are loaded or initialised. Gradients are dropped.
VESTA_API void to_empty(Module& module, Device device);

}  // namespace vesta::nn::utils
