// Registers autograd with core: rules with the ops, functions with the port of Tensor's methods.
#pragma once
#include <vesta/core/base/macros.h>

namespace vesta::autograd {

/// Fills the autograd slot of every op and the port; called once, by vesta::initialize().
VESTA_API void register_autograd();

}  // namespace vesta::autograd
