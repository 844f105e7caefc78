// The visit of the graph behind a tensor by the garbage collector.
#pragma once
#include "python_tensor.h"

namespace vesta::python {

/// Visits the Python objects that only the graph of `t` can reach: `t`'s hooks, and hooks and contexts of nodes that
/// only this graph owns. `t` is held by its Python object alone.
int traverse_graph(const Tensor& t, visitproc visit, void* arg);
/// Drops the graph and the hooks of `t`, which breaks every cycle that traverse_graph shows.
void clear_graph(const Tensor& t);

}  // namespace vesta::python
