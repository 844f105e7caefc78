// Whether operations compute what PyTorch computes where Vesta refuses on purpose (docs/as_torch.md). Asked only where
// an operation would raise otherwise, so that it costs nothing.
#pragma once
#include <vesta/core/base/macros.h>

namespace vesta {

/// False, unless the process has been told otherwise. Any thread may ask and set.
VESTA_API bool follows_torch();
VESTA_API void follow_torch(bool on);

}  // namespace vesta
