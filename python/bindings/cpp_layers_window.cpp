// Layers that look at windows of images.
#include <vesta/nn/layers/list.h>

#include "cpp_options.h"

namespace vesta::python {
void add_window_layers(py::module_& m) { VESTA_WINDOW_LAYERS(VESTA_ADD_LAYER) }
}  // namespace vesta::python
