// out=: where a function of Python that is no pointwise op puts its results. (Pointwise ops take it themselves.)
#pragma once
#include <span>

#include "callable.h"

namespace vesta::python {

/// Runs a function whose results go to `out`, a tensor or a tuple or list of as many tensors as there are results;
/// returns them. Kernels write into them where they can (core/ops/destination.h); what does not fit is refused before
/// anything is written.
PyObject* run_with_out(const Table& t, Thin thin, Bound& b, PyObject* out);

/// Raises where a gradient would have to pass through out=.
void check_not_recorded(const Table& t, const Bound& b, std::span<const Tensor> outs);

/// Adds the function by which functions written in Python write their results into out= to a module.
bool add_out_argument(PyObject* module);

}  // namespace vesta::python
