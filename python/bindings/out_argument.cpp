#include "out_argument.h"

#include <algorithm>
#include <string_view>

#include <vesta/core/dispatch/autocast.h>
#include <vesta/core/dispatch/layer.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/pointwise.h>
#include <vesta/core/ops/promotion.h>
#include <vesta/core/ops/strided_iter.h>

#include "dtype_device.h"
#include "hand.h"

namespace vesta::python {
namespace {

/// Returns the tensors of a tensor, or of a tuple or list of them. TypeError: something else.
std::vector<Tensor> tensors_of(const Table& t, PyObject* out) {
  std::vector<Tensor> outs;
  auto add = [&](PyObject* o) {
    if (!is_tensor(o)) type_error("%s(): argument 'out' must be Tensor, not %s", t.op, Py_TYPE(o)->tp_name);
    outs.push_back(unwrap(o));
  };
  if (!PyTuple_Check(out) && !PyList_Check(out)) add(out);
  else
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(out); ++i) add(PySequence_Fast_GET_ITEM(out, i));
  return outs;
}

/// Calls `f(tensor)` with every tensor among the arguments of a call, those in lists as well.
template <class F>
void for_each_operand(const Table& t, const Bound& b, F f) {
  auto see = [&](PyObject* o) {
    if (o && is_tensor(o)) f(unwrap(o));
  };
  auto see_all = [&](PyObject* o) {
    if (!o || (!PyTuple_Check(o) && !PyList_Check(o))) return see(o);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) see(PySequence_Fast_GET_ITEM(o, i));
  };
  for (int i = 0; i < t.slots(); ++i) see_all(b.slot[i]);
  for (Py_ssize_t i = 0; i < b.rest_count; ++i) see_all(b.rest[i]);
}

/// The ops whose result may not overlap an operand, as in PyTorch: they read elements in another order than they write.
constexpr std::string_view kApart[] = {"cat",    "concat",         "concatenate", "dstack",        "gather",
                                       "hstack", "index_select",   "row_stack",   "column_stack",  "stack",
                                       "take",   "take_along_dim", "vstack",      "masked_select", "aminmax"};

/// Raises if a tensor of `out` overlaps an operand, or another one, of an op that does not allow it.
void check_apart(const Table& t, const Bound& b, const std::vector<Tensor>& outs) {
  if (std::ranges::find(kApart, std::string_view(t.op)) == std::end(kApart)) return;
  for (size_t i = 1; i < outs.size(); ++i) {
    VESTA_CHECK(overlap(outs[i], outs[0]) == Overlap::none, value, t.op,
                ": expected tensors that do not overlap each other (out).");
  }
  for_each_operand(t, b, [&](const Tensor& operand) {
    for (const Tensor& out : outs) {
      VESTA_CHECK(operand.is_sparse() || overlap(out, operand) == Overlap::none, runtime, t.op,
                  ": unsupported operation: some elements of an input tensor and the written-to tensor refer to a "
                  "single memory location (out). Clone the input first.");
    }
  });
}

bool share(const Tensor& a, const Tensor& b) { return a.impl()->storage() == b.impl()->storage(); }

/// Returns whether kernels may write into `outs` while they read the operands.
bool may_be_written(const Table& t, const Bound& b, const std::vector<Tensor>& outs) {
  bool apart = true, recorded = false;
  for (size_t i = 0; i < outs.size(); ++i) {
    apart = apart && !outs[i].impl()->storage()->read_only();
    recorded = recorded || outs[i].requires_grad();
    for (size_t k = 0; k < i; ++k) apart = apart && !share(outs[i], outs[k]);
  }
  for_each_operand(t, b, [&](const Tensor& operand) {
    recorded = recorded || operand.requires_grad();
    for (const Tensor& out : outs) apart = apart && !share(out, operand);
  });
  return apart && !(recorded && GradMode::enabled());
}

/// Returns whether `out` has as many tensors as the result: only then may kernels write into it, because any other is
/// refused when the result is there.
bool has_form(const Table& t, PyObject* out, size_t count) {
  if (!t.named) return is_tensor(out) && std::string_view(t.result) == "Tensor";
  Ref parts(checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(t.named), "n_sequence_fields")));
  return !is_tensor(out) && PyLong_AsSize_t(parts.get()) == count;
}

/// Returns truth values in the dtype of out, which is bool or uint8, as in PyTorch.
Tensor as_truth(const Table& t, const Tensor& result, DType dtype) {
  VESTA_CHECK(dtype == DType::bool_ || dtype == DType::uint8, runtime, t.op,
              ": only supports bool tensor for result, expected bool or uint8, got ", dtype, " (out).");
  NoGrad off;
  return result.to(dtype);
}

/// Makes `to` hold the result. A kernel may have written it there already.
void write(const Table& t, const Tensor& to, const Tensor& from) {
  if (to.is_same(from)) return to.impl()->bump(t.op);
  resize_out(to, from.sizes(), t.op);
  NoGrad off;
  copy_into(to, from, t.op);
}

}  // namespace

void check_not_recorded(const Table& t, const Bound& b, std::span<const Tensor> outs) {
  if (!GradMode::enabled() || !t.schema || !t.schema->differentiable) return;
  bool recorded = false;
  for_each_operand(t, b, [&](const Tensor& operand) { recorded = recorded || operand.requires_grad(); });
  for (const Tensor& out : outs) recorded = recorded || out.requires_grad();
  check_out_not_recorded(recorded, t.op);
}

namespace {

/// Lets a call compute in the dtype of out, where the op takes a dtype and none is given. Returns what the slot
/// borrows.
Ref take_dtype(const Table& t, Bound& b, std::span<const Tensor> outs) {
  if (outs.size() != 1 || !t.schema || t.schema->exact_out) return {};
  for (int i = 0; i < t.slots(); ++i) {
    if (t.params[size_t(i)].name != "dtype" || (b.slot[i] && b.slot[i] != Py_None)) continue;
    Ref dtype(wrap_dtype(outs[0].dtype()));
    b.slot[i] = dtype.get();
    return dtype;
  }
  return {};
}

}  // namespace

PyObject* run_with_out(const Table& t, Thin thin, Bound& b, PyObject* out) {
  const std::vector<Tensor> outs = tensors_of(t, out);
  check_not_recorded(t, b, outs);
  check_apart(t, b, outs);
  const Ref dtype = take_dtype(t, b, outs);
  Ref result;
  {
    autocast::Pause as_asked;  // such a call names its dtype
    const bool offers = has_form(t, out, outs.size()) && may_be_written(t, b, outs);
    const Destination offered(offers ? std::span<const Tensor>(outs) : std::span<const Tensor>());
    result = Ref(thin(t, b, Out{}));
  }
  if (!result) return nullptr;
  const bool several = PyTuple_Check(result.get());
  const size_t n = several ? size_t(PyTuple_GET_SIZE(result.get())) : 1;
  if (several == bool(is_tensor(out)) || outs.size() != n) {
    const char* given = Py_TYPE(out)->tp_name;
    if (several) type_error("%s(): argument 'out' must be a tuple of %zu Tensors, not %s", t.op, n, given);
    type_error("%s(): argument 'out' must be Tensor, not %s", t.op, given);
  }
  const bool truth = t.schema && t.schema->gives[0] == Gives::truth;
  std::vector<Tensor> results;
  for (size_t i = 0; i < n; ++i) {
    results.push_back(unwrap(several ? PyTuple_GET_ITEM(result.get(), Py_ssize_t(i)) : result.get()));
    if (truth) results[i] = as_truth(t, results[i], outs[i].dtype());
    check_out(outs[i], results[i], t.schema && t.schema->exact_out, t.op);
  }
  for (size_t i = 0; i < n; ++i) {  // a result may lie in the memory of another's out
    if (results[i].is_same(outs[i])) continue;
    if (std::ranges::any_of(outs, [&](const Tensor& to) { return share(to, results[i]); })) {
      NoGrad off;
      results[i] = clone(results[i]);
    }
  }
  for (size_t i = 0; i < n; ++i) write(t, outs[i], results[i]);
  if (!several) return new_ref(out);
  if (PyTuple_CheckExact(result.get())) return new_ref(out);
  Ref named(checked(PyStructSequence_New(Py_TYPE(result.get()))));
  for (size_t i = 0; i < n; ++i) {
    PyStructSequence_SetItem(named.get(), Py_ssize_t(i), new_ref(PySequence_Fast_GET_ITEM(out, Py_ssize_t(i))));
  }
  return named.release();
}

namespace {

struct WriteOut {
  static constexpr char name[] = "_write_out", params[] = "(Text op, object made, object out, bool exact = false)",
                        doc[] =
                            "Writes a result, or each of several, into its tensor of out; returns out. What does not "
                            "fit is refused before anything is written; exact asks for the result's dtype.";
  static PyObject* run(const Table& t, Bound& b) {
    const std::string op(Arg<Text>(t, 0, b).get());
    PyObject *made = b.slot[1], *out = b.slot[2];
    if (is_tensor(made)) {
      if (!is_tensor(out)) type_error("%s: expected Tensor, got %s (out).", op.c_str(), Py_TYPE(out)->tp_name);
      write_out(unwrap(out), unwrap(made), op.c_str(), Arg<bool>(t, 3, b).get());
      return new_ref(out);
    }
    if (!PyTuple_Check(out) && !PyList_Check(out)) {
      type_error("%s: expected a tuple of Tensors, got %s (out).", op.c_str(), Py_TYPE(out)->tp_name);
    }
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(made);
    if (PySequence_Fast_GET_SIZE(out) != n) {
      type_error("%s: expected %zd tensors, got %zd (out).", op.c_str(), n, PySequence_Fast_GET_SIZE(out));
    }
    const bool exact = Arg<bool>(t, 3, b).get();
    std::vector<Tensor> outs, results;
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* to = PySequence_Fast_GET_ITEM(out, i);
      if (!is_tensor(to)) type_error("%s: expected Tensor, got %s (out).", op.c_str(), Py_TYPE(to)->tp_name);
      outs.push_back(unwrap(to)), results.push_back(unwrap(PySequence_Fast_GET_ITEM(made, i)));
      check_written(outs.back(), results.back(), exact, op.c_str());
    }
    for (Tensor& from : results) {  // which may lie in the memory of another's out
      NoGrad off;
      if (std::ranges::any_of(outs, [&](const Tensor& to) { return share(to, from); })) from = clone(from);
    }
    for (size_t i = 0; i < outs.size(); ++i) write_out(outs[i], results[i], op.c_str(), exact);
    return new_ref(out);
  }
};

}  // namespace

bool add_out_argument(PyObject* module) { return add_functions<WriteOut>(module); }

}  // namespace vesta::python
