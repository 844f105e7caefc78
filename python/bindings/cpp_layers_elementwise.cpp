// Activations and layers of single vectors.
#include <vesta/nn/layers/list.h>

#include "cpp_options.h"

namespace vesta::python {
void add_elementwise_layers(py::module_& m) { VESTA_ELEMENTWISE_LAYERS(VESTA_ADD_LAYER) }
}  // namespace vesta::python
