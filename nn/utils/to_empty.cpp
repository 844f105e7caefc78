#include <vesta/nn/utils/to_empty.h>

#include <vesta/autograd/accumulate_grad.h>
#include <vesta/core/ops/copy.h>

namespace vesta::nn::utils {

void to_empty(Module& module, Device device) {
  NoGrad off;
  for (const auto& list : {module.parameters(), module.buffers()}) {
    for (const Tensor& t : list) {
      if (t.requires_grad() && t.is_leaf()) t.set_grad({});
      autograd::replace_memory(t, empty_preserving(t, t.dtype(), device), "to_empty");
    }
  }
}

}  // namespace vesta::nn::utils
