// Norms, dropout and losses.
#include <vesta/nn/layers/list.h>

#include "cpp_options.h"

namespace vesta::python {
void add_loss_layers(py::module_& m) { VESTA_LOSS_LAYERS(VESTA_ADD_LAYER) }
}  // namespace vesta::python
