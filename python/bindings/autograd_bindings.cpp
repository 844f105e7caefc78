// What Tensor shows of autograd, the modes, and the engine's entry points.
#include <vesta/autograd/engine.h>
#include <vesta/autograd/grad_meta.h>

#include "factories.h"
#include "hand.h"
#include "properties.h"
#include "python_hooks.h"
#include "torch_function.h"

namespace vesta::python {
namespace {

// ---- properties ----

template <void (*f)(const Tensor&, PyObject*)>
int set(PyObject* o, PyObject* value, void* name) {
  return guarded(
      [&] {
        if (overrides_property(o)) {
          const char* const method = value ? "__set__" : "__delete__";
          return Ref(override_property(o, static_cast<const char*>(name), method, value)) ? 0 : -1;
        }
        f(unwrap(o), value);
        return 0;
      },
      -1);
}

PyObject* requires_grad(const Tensor& t) { return PyBool_FromLong(autograd::requires_grad(t)); }
void set_requires_grad(const Tensor& t, PyObject* on) {
  if (!on || !PyBool_Check(on)) type_error("requires_grad must be a bool");
  autograd::set_requires_grad(t, on == Py_True);
}
PyObject* grad(const Tensor& t) {
  if (!t.impl()->autograd) return new_ref(Py_None);
  Tensor g = autograd::grad(t);
  if (!g.defined() && !autograd::is_leaf(t) && !autograd::retains_grad(t) &&
      PyErr_WarnEx(PyExc_UserWarning,
                   "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
                   "won't be populated during backward(). Use .retain_grad() before, or the leaf Tensor.",
                   1) < 0) {
    return nullptr;
  }
  return wrap(std::move(g));
}
void set_grad(const Tensor& t, PyObject* g) {
  if (!g || g == Py_None) return autograd::set_grad(t, {});
  if (!is_tensor(g))
    type_error("assigned grad expected to be a Tensor or None but got grad of type %s", Py_TYPE(g)->tp_name);
  VESTA_CHECK(!unwrap(g).is_same(t), runtime, "grad: can't assign Variable as its own grad.");
  autograd::set_grad(t, unwrap(g));
}
PyObject* grad_fn(const Tensor& t) { return wrap_node(autograd::grad_fn(t)); }
PyObject* is_leaf(const Tensor& t) { return PyBool_FromLong(autograd::is_leaf(t)); }
PyObject* output_nr(const Tensor& t) { return PyLong_FromUnsignedLong(autograd::output_nr(t)); }
PyObject* retains_grad(const Tensor& t) { return PyBool_FromLong(autograd::retains_grad(t)); }
PyObject* data(const Tensor& t) { return wrap(t.variable_data()); }
void set_data(const Tensor& t, PyObject* value) {
  VESTA_CHECK(value, runtime, "data: a tensor's data cannot be deleted. Delete the tensor by `del x`.");
  if (!is_tensor(value)) type_error("data: expected a Tensor, got %s.", Py_TYPE(value)->tp_name);
  const Tensor& from = unwrap(value);
  VESTA_CHECK(!autograd::requires_grad(t) || is_differentiable(from.dtype()), runtime,
              "data set to a tensor that requires gradients must be floating point or complex dtype, got ",
              from.dtype(), ".");
  // Its version goes on: what was saved before is not said to be overwritten, and writes do not count for `value`.
  intrusive_ptr<VersionCounter> versions(new VersionCounter);
  versions->version = t.version(), versions->last_writer = t.impl()->last_writer();
  t.impl()->versions = std::move(versions);
  autograd::replace_memory(t, from, "data");
}
PyObject* base(const Tensor& t) { return wrap(autograd::view_base(t)); }

PyGetSetDef properties[] = {
    {"requires_grad", property<requires_grad>, set<set_requires_grad>, "Whether backward wants a gradient of it.",
     nullptr},
    {"grad", property<grad>, set<set_grad>, "The accumulated gradient, or None.", nullptr},
    {"grad_fn", property<grad_fn>, nullptr, "The step of the tape that made it, None for a leaf.", nullptr},
    {"is_leaf", property<is_leaf>, nullptr, "Whether the user made it (or it requires no grad).", nullptr},
    {"output_nr", property<output_nr>, nullptr, "Which result of grad_fn it is.", nullptr},
    {"retains_grad", property<retains_grad>, nullptr, "Whether retain_grad() was called on a non-leaf.", nullptr},
    {"data", property<data>, set<set_data>,
     "The same memory without history, whose writes backward does not see (detach() is the "
     "safe form); assigning replaces memory and geometry.",
     nullptr},
    {"_base", property<base>, nullptr, "The tensor it is a view of, or None.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- methods ----

struct RequiresGrad {
  static constexpr char name[] = "requires_grad_", params[] = "(bool requires_grad = true)",
                        doc[] = "Switches recording for a leaf, in place; returns it.";
  static PyObject* run(const Table& t, Bound& b) {
    autograd::set_requires_grad(unwrap(b.slot[0]), Arg<bool>(t, 1, b).get());
    return new_ref(b.slot[0]);
  }
};
struct RetainGrad {
  static constexpr char name[] = "retain_grad", params[] = "()", doc[] = "Keeps the gradient of a non-leaf in grad.";
  static PyObject* run(const Table&, Bound& b) {
    autograd::retain_grad(unwrap(b.slot[0]));
    Py_RETURN_NONE;
  }
};
struct DetachInPlace {
  static constexpr char name[] = "detach_", params[] = "()", doc[] = "Drops the history: the tensor becomes a leaf.";
  static PyObject* run(const Table&, Bound& b) {
    autograd::detach_(unwrap(b.slot[0]));
    return new_ref(b.slot[0]);
  }
};
struct IsView {
  static constexpr char name[] = "_is_view", params[] = "()", doc[] = "Whether it is a view of a recorded tensor.";
  static PyObject* run(const Table&, Bound& b) {
    return PyBool_FromLong(autograd::view_base(unwrap(b.slot[0])).defined());
  }
};

/// Collects the tensors of a tensor, None, or a sequence with None among them.
std::vector<Tensor> tensors_of(const Table& t, int i, PyObject* o) {
  std::vector<Tensor> list;
  if (!o || o == Py_None) return list;
  if (is_tensor(o)) return {unwrap(o)};
  Ref fast(PySequence_Fast(o, "expected a Tensor or a sequence of Tensors"));
  if (!fast) throw_current();
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(fast.get()); ++k) {
    PyObject* item = PySequence_Fast_GET_ITEM(fast.get(), k);
    if (is_tensor(item)) list.push_back(unwrap(item));
    else if (item == Py_None) list.emplace_back();
    else wrong_type(t, i, "a Tensor, None or a sequence of them", item);
  }
  return list;
}
bool flag(const Table& t, int i, Bound& b, bool missing) {
  if (!b.slot[i] || b.slot[i] == Py_None) return missing;
  return to_bool(t, i, b.slot[i]);
}

struct Backward {
  static constexpr char
      name[] = "backward",
      params[] = "(MaybeTensor gradient = {}, object retain_graph = {}, bool create_graph = false, object inputs = {})",
      doc[] =
          "Adds d(self)/d(leaf) * gradient into every leaf's grad; gradient may be missing for a "
          "tensor of one element. retain_graph keeps what was saved for another run, create_graph "
          "records the run itself, inputs limits it to these.";
  static PyObject* run(const Table& t, Bound& b) {
    Arg<Tensor> gradient(t, 1, b);
    bool create = Arg<bool>(t, 3, b).get();
    autograd::BackwardOptions options;
    options.create_graph = create, options.retain_graph = flag(t, 2, b, create);
    std::vector<Tensor> inputs = tensors_of(t, 4, b.slot[4]);
    bool limited = b.slot[4] && b.slot[4] != Py_None;
    VESTA_CHECK(!limited || !inputs.empty(), runtime, "'inputs' argument to backward() cannot be empty.");
    {
      WithoutGil open;
      autograd::run_backward(TensorList::Span(&unwrap(b.slot[0]), 1), TensorList::Span(&gradient.get(), 1), options,
                             inputs);
    }
    Py_RETURN_NONE;
  }
};

struct EngineBackward {
  static constexpr char name[] = "_backward",
                        params[] =
                            "(object tensors, object grads, bool retain_graph, bool create_graph, object inputs)",
                        doc[] = "What vesta.autograd.backward calls, with every choice made.";
  static PyObject* run(const Table& t, Bound& b) {
    std::vector<Tensor> roots = tensors_of(t, 0, b.slot[0]), grads = tensors_of(t, 1, b.slot[1]);
    std::vector<Tensor> inputs = tensors_of(t, 4, b.slot[4]);
    autograd::BackwardOptions options;
    options.retain_graph = Arg<bool>(t, 2, b).get(), options.create_graph = Arg<bool>(t, 3, b).get();
    {
      WithoutGil open;
      autograd::run_backward(roots, grads, options, inputs);
    }
    Py_RETURN_NONE;
  }
};

struct EngineGrad {
  static constexpr char name[] = "_grad",
                        params[] =
                            "(object outputs, object inputs, object grads, bool retain_graph, bool create_graph, "
                            "bool allow_unused, bool materialize_grads)",
                        doc[] = "What vesta.autograd.grad calls, with every choice made.";
  static PyObject* run(const Table& t, Bound& b) {
    std::vector<Tensor> outputs = tensors_of(t, 0, b.slot[0]), inputs = tensors_of(t, 1, b.slot[1]);
    std::vector<Tensor> grads = tensors_of(t, 2, b.slot[2]);
    bool retain = Arg<bool>(t, 3, b).get(), create = Arg<bool>(t, 4, b).get(), unused = Arg<bool>(t, 5, b).get(),
         zeros = Arg<bool>(t, 6, b).get();
    std::vector<Tensor> result;
    {
      WithoutGil open;
      result = vesta::grad(outputs, inputs, grads, retain, create, unused, zeros);
    }
    return tuple_of(std::move(result));
  }
};

// ---- modes ----

struct SetGradEnabled {
  static constexpr char name[] = "set_grad_enabled", params[] = "(bool mode)",
                        doc[] = "Switches recording on this thread.";
  static PyObject* run(const Table& t, Bound& b) {
    GradMode::set(Arg<bool>(t, 0, b).get());
    Py_RETURN_NONE;
  }
};
struct IsGradEnabled {
  static constexpr char name[] = "is_grad_enabled", params[] = "()", doc[] = "Whether this thread records.";
  static PyObject* run(const Table&, Bound&) { return PyBool_FromLong(GradMode::enabled()); }
};
struct SetInference {
  static constexpr char name[] = "_set_inference_mode", params[] = "(bool mode)",
                        doc[] = "Switches whether new tensors are of inference mode.";
  static PyObject* run(const Table& t, Bound& b) {
    layer_state.inference = Arg<bool>(t, 0, b).get();
    Py_RETURN_NONE;
  }
};
struct IsInference {
  static constexpr char name[] = "is_inference_mode_enabled", params[] = "()", doc[] = "Whether inference mode is on.";
  static PyObject* run(const Table&, Bound&) { return PyBool_FromLong(layer_state.inference); }
};
struct QueueCallback {
  static constexpr char name[] = "_queue_callback", params[] = "(object callback)",
                        doc[] = "Calls callback() when the backward run under way ends. Raises outside a run.";
  static PyObject* run(const Table&, Bound& b) {
    auto hook = std::make_shared<PyHook>(b.slot[0]);
    autograd::queue_callback([hook] {
      Gil gil;
      Ref r(checked(call_python(hook->callable())));
    });
    Py_RETURN_NONE;
  }
};
/// Returns whether the attribute `grad` of a type's objects is the one of Tensor.
bool inherits_grad(PyTypeObject* type) {
  if (type->tp_getattro != tensor_type->tp_getattro) return false;
  Ref own(checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), "grad")));
  Ref its(checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "grad")));
  return own.get() == its.get();
}
struct GradsOf {
  static constexpr char name[] = "_grads_of", params[] = "(object params, object known, object present)",
                        doc[] =
                            "The list of the params' gradients, and whether these are the known parameters, of "
                            "which those with `present` have one.";
  static PyObject* run(const Table& t, Bound& b) {
    for (int i = 1; i < 3; ++i) {
      if (!PyList_Check(b.slot[i])) wrong_type(t, i, "list", b.slot[i]);
    }
    Ref fast(checked(PySequence_Fast(b.slot[0], "expected a sequence of Tensors")));
    PyObject *params = fast.get(), *known = b.slot[1], *present = b.slot[2];
    Ref grads(checked(PyList_New(0)));
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(params);
    bool same = n == PyList_GET_SIZE(known) && n == PyList_GET_SIZE(present);
    PyTypeObject *last = tensor_type, *plain = tensor_type;  // the last type seen, and the last one that inherits
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(params); ++i) {
      Ref param(new_ref(PySequence_Fast_GET_ITEM(params, i)));
      if (Py_TYPE(param.get()) != last) {
        last = Py_TYPE(param.get());
        if (is_tensor(param.get()) && inherits_grad(last)) plain = last;
      }
      Ref g(checked(last == plain ? grad(unwrap(param.get())) : PyObject_GetAttrString(param.get(), "grad")));
      same = same && i < PyList_GET_SIZE(known) && i < PyList_GET_SIZE(present) &&
             PyList_GET_ITEM(known, i) == param.get() &&
             (PyList_GET_ITEM(present, i) == Py_True) == (g.get() != Py_None);
      if (PyList_Append(grads.get(), g.get()) < 0) throw_current();
    }
    return Py_BuildValue("(OO)", grads.get(), same ? Py_True : Py_False);
  }
};
struct SetAnomaly {
  static constexpr char name[] = "set_anomaly_enabled", params[] = "(bool enabled, bool check_nan = true)",
                        doc[] = "Switches anomaly detection: errors of backward name the node; a NaN gradient raises.";
  static PyObject* run(const Table& t, Bound& b) {
    autograd::set_detect_anomaly(Arg<bool>(t, 0, b).get(), Arg<bool>(t, 1, b).get());
    Py_RETURN_NONE;
  }
};
struct IsAnomaly {
  static constexpr char name[] = "is_anomaly_enabled", params[] = "()", doc[] = "Whether anomaly detection is on.";
  static PyObject* run(const Table&, Bound&) { return PyBool_FromLong(autograd::detect_anomaly()); }
};

}  // namespace

bool add_autograd(PyObject* module) {
  return add_properties(properties) && add_methods<RequiresGrad, RetainGrad, DetachInPlace, IsView, Backward>() &&
         add_functions<EngineBackward, EngineGrad, SetGradEnabled, IsGradEnabled, SetInference, IsInference,
                       QueueCallback, GradsOf, SetAnomaly, IsAnomaly>(module) &&
         add_hooks(module) && add_nodes(module);
}

}  // namespace vesta::python
