// Python callables where autograd takes hooks. Each holds its callable under the GIL and shows it to the collector.
#pragma once
#include <memory>

#include <vesta/autograd/hooks.h>

#include "errors.h"

namespace vesta::python {

/// Counts hooks and contexts that the graph holds; while it is 0, the collector need not look into graphs.
extern int64_t objects_in_graph;

/// The owner of a Python callable on behalf of C++, which may release it on any thread.
class PyHook {
 public:
  explicit PyHook(PyObject* callable) : callable_(new_ref(callable)) { ++objects_in_graph; }
  virtual ~PyHook() {
    if (!Py_IsInitialized()) return;
    Gil gil;
    --objects_in_graph;
    Py_XDECREF(callable_);
  }
  PyHook(const PyHook&) = delete;
  PyObject* callable() const { return callable_; }

 protected:
  PyObject* callable_;
};

/// Returns the Python handle of a hook on a tensor: remove(), `id`, and a context manager.
PyObject* make_handle(PyObject* tensor, autograd::HookId id);
/// Returns the handle of a hook on a node.
PyObject* make_handle(const autograd::NodePtr& node, autograd::HookId id);
/// Returns the object of a node (a new reference), the same one as long as it is referenced; None for no node.
PyObject* wrap_node(const autograd::NodePtr& node);

/// Makes a tuple of tensors; undefined ones are None. Throws.
Ref tuple_of(std::span<const Tensor> list);
/// Replaces entries of `list` by what a hook returned (None: keep all; a tensor or tuple otherwise). Throws.
void replace_by(autograd::GradList& list, PyObject* returned, const char* what);

bool add_hooks(PyObject* module);
bool add_nodes(PyObject* module);

/// Visits, for the garbage collector, the hooks and contexts behind a node along its edges, if the node is held only
/// once.
int traverse_nodes(autograd::Node* first, visitproc visit, void* arg);
int traverse_hooks(const autograd::NodeHooks* hooks, visitproc visit, void* arg);
/// Visits the context of a custom Function's node; 0 for other nodes. Defined in function.cpp.
int traverse_function(autograd::Node* node, visitproc visit, void* arg);
/// Returns the context object of a custom Function's node (borrowed), null for other nodes.
PyObject* context_of(autograd::Node* node);

}  // namespace vesta::python
