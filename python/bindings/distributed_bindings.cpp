// vesta._C._distributed: Work, ReduceOp and the module itself. vesta.distributed gives it PyTorch's functions.
#include "distributed_bindings.h"

#include <pybind11/chrono.h>
#include <pybind11/stl.h>

#include <vesta/multiprocessing/process_group.h>

#include "errors.h"
#include "parts.h"
#include "type_caster.h"

namespace vesta::python {
namespace {

namespace py = pybind11;
using NoGil = py::call_guard<WithoutGil>;

// ---- Work ----

/// Holds a Python callable that other threads call, and drops it under the GIL.
std::shared_ptr<py::function> shared_function(py::function f) {
  return {new py::function(std::move(f)), [](py::function* p) {
            Gil gil;
            delete p;
          }};
}

py::object exception_object(std::exception_ptr e) {
  if (!e) return py::none();
  try {
    std::rethrow_exception(e);
  } catch (...) {
    translate_exception();
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  Py_XDECREF(type);
  Py_XDECREF(trace);
  return py::reinterpret_steal<py::object>(value);
}

void add_work(py::module_& m) {
  py::class_<Work, WorkPtr>(m, "Work", "An operation that was started.")
      .def("is_completed", &Work::is_completed, "Whether it ended, well or not.")
      .def("is_success", &Work::is_success, "Whether it ended well.")
      .def(
          "exception", [](const Work& w) { return exception_object(w.exception()); }, "What it failed with, or None.")
      .def(
          "wait",
          [](Work& w, const std::optional<Milliseconds>& timeout) {
            w.wait(timeout.value_or(Milliseconds(0)));
            return true;
          },
          NoGil(), py::arg("timeout") = py::none(), "Waits for the end and raises what the operation failed with.")
      .def("synchronize", &Work::synchronize, NoGil(), "Orders what follows after the operation.")
      .def("_on_device", &Work::on_device)
      .def("result", &Work::result, "The output tensors; empty once wait has returned.")
      .def("source_rank", &Work::source_rank, "The rank (of the group) that a message came from.")
      .def("_source_rank", &Work::source_rank)
      .def("_sequence_number", &Work::sequence_number)
      .def_property_readonly("_name", &Work::name)
      .def(
          "_then",
          [](const WorkPtr& w, py::function f) {
            auto shared = shared_function(std::move(f));
            WithoutGil release;
            w->then([shared](Work& done) {
              Gil gil;
              try {
                (*shared)(py::cast(done.result()), exception_object(done.exception()));
              } catch (py::error_already_set& e) {
                e.discard_as_unraisable("vesta.distributed: a callback of Work");
              }
            });
          },
          "Calls f(outputs, exception) once, on the thread that ends the operation.");
  m.def("_all_of", [](std::vector<WorkPtr> parts) { return all_of(std::move(parts)); }, NoGil());
}

// ---- ReduceOp ----

void add_reduce_op(py::module_& m) {
  py::class_<ReduceOp> c(m, "ReduceOp", "How values are combined.");
  c.def(py::init<const ReduceOp&>(), py::arg("op"));
  c.def("__eq__",
        [](const ReduceOp& a, const py::object& b) { return py::isinstance<ReduceOp>(b) && a == b.cast<ReduceOp>(); });
  c.def("__hash__", [](const ReduceOp& a) { return int(a.kind); });
  c.def("__repr__", [](const ReduceOp& a) { return text("ReduceOp.", name(a)); });
  c.def_property_readonly("name", [](const ReduceOp& a) { return name(a); });
  c.def_property_readonly("value", [](const ReduceOp& a) { return int(a.kind); });
  c.def(py::pickle([](const ReduceOp& a) { return py::make_tuple(int(a.kind), a.factor); },
                   [](const py::tuple& t) { return ReduceOp(ReduceOp::Kind(t[0].cast<int>()), t[1].cast<double>()); }));
  for (int i = 0; i <= int(ReduceOp::premul_sum); ++i) {
    const ReduceOp op{ReduceOp::Kind(i)};
    c.attr(name(op)) = py::cast(op);
  }
  c.attr("RedOpType") = c;  // PyTorch's name of the operators apart from their factor
  m.def("_make_premul_sum", [](double factor) { return ReduceOp(ReduceOp::premul_sum, factor); }, py::arg("factor"));
}

}  // namespace

void fill_distributed(py::module_& m) {
  add_stores(m);
  add_work(m);
  add_reduce_op(m);
  add_groups(m);
}

}  // namespace vesta::python
