#include <vesta/nn/utils/to_empty.h>

#include <vesta/core/ops/copy.h>

namespace vesta::nn::utils {

void to_empty(Module& module, Device device) {
  NoGrad off;
  for (const auto& list : {module.parameters(), module.buffers()}) {
    for (const Tensor& t : list) {
      if (t.requires_grad() && t.is_leaf()) t.set_grad({});
      const Tensor made = empty_preserving(t, t.dtype(), device);
      const TensorImpl& memory = *made.impl();
      t.impl()->set_storage(memory.storage(), memory.sizes(), memory.strides(), 0, memory.dtype(), "to_empty");
    }
  }
}

}  // namespace vesta::nn::utils
