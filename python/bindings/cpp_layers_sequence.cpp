// Layers of sequences, and those of several parts.
#include <vesta/nn/layers/list.h>

#include "cpp_options.h"

namespace vesta::python {
void add_sequence_layers(py::module_& m) { VESTA_SEQUENCE_LAYERS(VESTA_ADD_LAYER) }
}  // namespace vesta::python
