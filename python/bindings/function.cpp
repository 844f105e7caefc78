// Custom Functions of Python as nodes of the tape. See Note [What _C._function_apply does] in
// vesta/autograd/function.py.
#include <vesta/autograd/function.h>
#include <vesta/core/ops/factory.h>

#include "factories.h"
#include "hand.h"
#include "python_hooks.h"

namespace vesta::python {

using namespace autograd;

namespace {

/// What ctx.save_for_backward kept; shared by the node and the context's `_unpack`.
struct SavedBox {
  std::vector<Saved> saved;
  Node* node = nullptr;  // null once the node is gone
  bool released = false;

  Ref unpack() {
    VESTA_CHECK(
        !released, runtime,
        "Trying to backward through the graph a second time (or directly access saved tensors after they have "
        "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
        "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if "
        "you need to access saved tensors after calling backward.");
    RunningNode running(node);
    Ref tuple(checked(PyTuple_New(Py_ssize_t(saved.size()))));
    for (size_t i = 0; i < saved.size(); ++i) {
      Tensor t = saved[i].defined() ? saved[i].with_history() : Tensor{};
      PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), checked(wrap(std::move(t))));
    }
    return tuple;
  }
};

class PyFunctionNode final : public FunctionNode {
 public:
  PyFunctionNode(PyObject* cls, PyObject* ctx, std::vector<bool> is_tensor)
      : box(std::make_shared<SavedBox>()), cls_(new_ref(cls)), ctx_(new_ref(ctx)), is_tensor_(std::move(is_tensor)) {
    box->node = this;
    ++objects_in_graph;
    name_ = reinterpret_cast<PyTypeObject*>(cls)->tp_name;
    name_ = name_.substr(name_.rfind('.') + 1) + "Backward";
  }
  ~PyFunctionNode() override {
    box->node = nullptr;
    if (!Py_IsInitialized()) return;
    Gil gil;
    --objects_in_graph;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    box->saved.clear();
    Py_DECREF(ctx_);
    Py_DECREF(cls_);
    PyErr_Restore(type, value, trace);
  }
  std::string name() const override { return name_; }
  void release_saved() override {
    box->released = true;
    box->saved.clear();
  }
  PyObject* context() const { return ctx_; }

  GradList apply(GradList grads, Needs) override {
    Gil gil;
    Ref args(checked(PyTuple_New(Py_ssize_t(outputs.size()) + 1)));
    PyTuple_SET_ITEM(args.get(), 0, new_ref(ctx_));
    for (size_t i = 0; i < outputs.size(); ++i) {
      PyTuple_SET_ITEM(args.get(), Py_ssize_t(i) + 1, incoming(grads, outputs[i]).release());
    }
    Ref backward(checked(PyObject_GetAttrString(cls_, "_backward")));
    Ref result(checked(run_python([&] { return PyObject_Call(backward.get(), args.get(), nullptr); })));
    return outgoing(std::move(result));
  }

  std::shared_ptr<SavedBox> box;
  std::vector<int> outputs;  // of each output of forward: its number among the tensors, or -1
  bool materialize = true;

 private:
  Ref incoming(const GradList& grads, int i) const {
    if (i < 0) return Ref(new_ref(Py_None));
    if (size_t(i) < grads.size() && grads[size_t(i)].defined()) return Ref(checked(wrap(grads[size_t(i)])));
    if (!materialize || uint32_t(i) >= num_inputs()) return Ref(new_ref(Py_None));
    const TensorMeta& m = input_meta(uint32_t(i));
    return Ref(checked(wrap(zeros(m.sizes(), m.dtype(), m.device()))));
  }

  /// Sorts what backward returned (one entry per argument of forward) to the tensor arguments.
  GradList outgoing(Ref result) const {
    Ref tuple(PyTuple_Check(result.get()) ? new_ref(result.get()) : PyTuple_Pack(1, result.get()));
    Py_ssize_t given = PyTuple_GET_SIZE(tuple.get());
    for (; given > Py_ssize_t(is_tensor_.size()); --given) {  // extra Nones at the end are harmless
      if (PyTuple_GET_ITEM(tuple.get(), given - 1) != Py_None) break;
    }
    VESTA_CHECK(given == Py_ssize_t(is_tensor_.size()), runtime, "function ", name_,
                " returned an incorrect number of gradients (expected ", is_tensor_.size(), ", got ", int64_t(given),
                ")");
    GradList list(edges().size());
    size_t at = 0;
    for (size_t i = 0; i < is_tensor_.size(); ++i) {
      PyObject* g = PyTuple_GET_ITEM(tuple.get(), Py_ssize_t(i));
      if (!is_tensor_[i]) {
        VESTA_CHECK(g == Py_None, runtime, "function ", name_, " returned a gradient different from None at position ",
                    i + 1, ", but the corresponding forward input was not a Variable");
        continue;
      }
      if (g != Py_None && !is_tensor(g)) {
        type_error("expected Variable or None (got %s) from %s at position %zu", Py_TYPE(g)->tp_name, name_.c_str(),
                   i + 1);
      }
      if (g != Py_None && at < list.size()) list[at] = unwrap(g);
      ++at;
    }
    return list;
  }

  PyObject *cls_, *ctx_;
  std::vector<bool> is_tensor_;
  std::string name_;
};

// ---- ctx._unpack ----

void free_box(PyObject* capsule) {
  delete static_cast<std::shared_ptr<SavedBox>*>(PyCapsule_GetPointer(capsule, "vesta.saved"));
}
PyObject* unpack(PyObject* capsule, PyObject*) {
  return guarded([&] {
    auto box = *static_cast<std::shared_ptr<SavedBox>*>(PyCapsule_GetPointer(capsule, "vesta.saved"));
    return box->unpack().release();
  });
}
PyMethodDef unpack_method = {"_unpack", unpack, METH_NOARGS, "Returns the saved tensors."};
Ref make_unpack(const std::shared_ptr<SavedBox>& box) {
  Ref capsule(checked(PyCapsule_New(new std::shared_ptr<SavedBox>(box), "vesta.saved", free_box)));
  return Ref(checked(PyCFunction_New(&unpack_method, capsule.get())));
}

// ---- apply ----

/// One call of a custom Function.
class Application {
 public:
  Application(PyObject* cls, PyObject* args) : cls_(cls), args_(args) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* a = PyTuple_GET_ITEM(args, i);
      is_tensor_.push_back(is_tensor(a));
      if (is_tensor(a)) inputs_.push_back(unwrap(a));
    }
  }

  PyObject* run() {
    ctx_ = Ref(checked(run_python([&] { return PyObject_CallMethod(cls_, "_context", nullptr); })));
    bool records = any_requires_grad(inputs_);
    tell_needs(records);
    Ref output = forward();
    collect_outputs(output.get());
    intrusive_ptr<PyFunctionNode> node(records ? new PyFunctionNode(cls_, ctx_.get(), is_tensor_) : nullptr);
    std::vector<Tensor> dirty = listed("_dirty"), plain = listed("_non_differentiable"), to_save = listed("_to_save");
    std::vector<Tensor> before = outputs_;
    if (node) {
      node->outputs = places_;
      node->materialize = truth("_materialize_grads");
    }
    for (const Tensor& d : dirty) check_dirty(d, before);
    record_function(node, inputs_, outputs_, dirty, plain);
    if (node && !node->edges().empty()) save(*node, to_save, before);
    return result(std::move(output), before);
  }

 private:
  void tell_needs(bool records) {
    Ref needs(checked(PyTuple_New(PyTuple_GET_SIZE(args_))));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args_); ++i) {
      PyObject* a = PyTuple_GET_ITEM(args_, i);
      bool wants = records && is_tensor(a) && unwrap(a).requires_grad();
      PyTuple_SET_ITEM(needs.get(), i, PyBool_FromLong(wants));
    }
    checked(PyObject_SetAttrString(ctx_.get(), "needs_input_grad", needs.get()));
  }
  Ref forward() {
    NoGrad off;
    Ref f(checked(PyObject_GetAttrString(cls_, "_forward")));
    return Ref(checked(call_python(f.get(), ctx_.get(), args_)));
  }
  void collect_outputs(PyObject* output) {
    is_tuple_ = PyTuple_Check(output);
    auto see = [&](PyObject* o) {
      places_.push_back(is_tensor(o) ? int(outputs_.size()) : -1);
      if (is_tensor(o)) outputs_.push_back(unwrap(o));
    };
    if (!is_tuple_) return see(output);  // what is no tensor is given back as it is, as in PyTorch
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(output); ++i) see(PyTuple_GET_ITEM(output, i));
  }
  std::vector<Tensor> listed(const char* attribute) {
    Ref value(checked(PyObject_GetAttrString(ctx_.get(), attribute)));
    Ref fast(checked(PySequence_Fast(value.get(), "expected a tuple of tensors")));
    std::vector<Tensor> list;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
      PyObject* o = PySequence_Fast_GET_ITEM(fast.get(), i);
      if (o != Py_None && !is_tensor(o)) {
        type_error("%s: expected Tensors, got %s (ctx.%s).", reinterpret_cast<PyTypeObject*>(cls_)->tp_name,
                   Py_TYPE(o)->tp_name, attribute[0] == '_' ? attribute + 1 : attribute);
      }
      list.push_back(o == Py_None ? Tensor{} : unwrap(o));
    }
    return list;
  }
  bool truth(const char* attribute) {
    Ref value(checked(PyObject_GetAttrString(ctx_.get(), attribute)));
    const int is_true = PyObject_IsTrue(value.get());
    if (is_true < 0) throw_current();
    return is_true == 1;
  }
  void check_dirty(const Tensor& d, const std::vector<Tensor>& outputs) {
    for (const Tensor& o : outputs) {
      if (o.is_same(d)) return;
    }
    for (const Tensor& i : inputs_) {
      VESTA_CHECK(!i.is_same(d), runtime,
                  "Some elements marked as dirty during the forward method were not returned as "
                  "output. The inputs that are modified inplace must all be outputs of the Function.");
    }
  }
  /// Saves what forward asked for: outputs as the node's results, so that it does not own itself.
  void save(PyFunctionNode& node, const std::vector<Tensor>& tensors, const std::vector<Tensor>& before) {
    for (const Tensor& t : tensors) {
      size_t k = 0;
      while (k < before.size() && !(t.defined() && before[k].is_same(t))) ++k;
      bool own = k < before.size() && outputs_[k].is_same(t);  // not an input that was returned as it came
      node.box->saved.push_back(own ? Saved::result(outputs_[k], uint32_t(k)) : Saved(t));
    }
    Ref f = make_unpack(node.box);
    checked(PyObject_SetAttrString(ctx_.get(), "_unpack", f.get()));
    Ref nothing(checked(PyTuple_New(0)));
    checked(PyObject_SetAttrString(ctx_.get(), "_to_save", nothing.get()));
  }
  /// Puts recorded outputs in their places; what was not replaced keeps its object (and its class).
  PyObject* result(Ref output, const std::vector<Tensor>& before) {
    bool same = true;
    for (size_t i = 0; i < before.size(); ++i) same = same && before[i].is_same(outputs_[i]);
    if (same) return output.release();
    if (!is_tuple_) return wrap(outputs_[0]);
    Ref tuple(checked(PyTuple_New(PyTuple_GET_SIZE(output.get()))));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(output.get()); ++i) {
      int place = places_[size_t(i)];
      PyTuple_SET_ITEM(tuple.get(), i,
                       place < 0 ? new_ref(PyTuple_GET_ITEM(output.get(), i)) : checked(wrap(outputs_[size_t(place)])));
    }
    return tuple.release();
  }

  PyObject *cls_, *args_;
  Ref ctx_;
  std::vector<bool> is_tensor_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<int> places_;
  bool is_tuple_ = false;
};

struct FunctionApply {
  static constexpr char name[] = "_function_apply", params[] = "(object cls, object args)",
                        doc[] = "Runs a custom Function's forward and records it.";
  static PyObject* run(const Table& t, Bound& b) {
    if (!PyType_Check(b.slot[0])) wrong_type(t, 0, "a class", b.slot[0]);
    if (!PyTuple_Check(b.slot[1])) wrong_type(t, 1, "tuple", b.slot[1]);
    return Application(b.slot[0], b.slot[1]).run();
  }
};

}  // namespace

PyObject* context_of(Node* node) {
  auto* f = dynamic_cast<PyFunctionNode*>(node);
  return f ? f->context() : nullptr;
}

int traverse_function(Node* node, visitproc visit, void* arg) {
  if (PyObject* ctx = context_of(node)) Py_VISIT(ctx);
  return 0;
}

bool add_functions_of_autograd(PyObject* module) { return add_functions<FunctionApply>(module); }

}  // namespace vesta::python
