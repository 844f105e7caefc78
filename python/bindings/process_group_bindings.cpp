// Process groups of vesta._C._distributed: collectives and messages, each of which returns a Work.
#include "distributed_bindings.h"

#include <pybind11/chrono.h>
#include <pybind11/stl.h>

#include <vesta/multiprocessing/process_group.h>
#include <vesta/multiprocessing/store.h>

#include "type_caster.h"

namespace vesta::python {
namespace {

namespace py = pybind11;
using Tensors = std::vector<Tensor>;
using NoGil = py::call_guard<WithoutGil>;
using MaybeTime = std::optional<Milliseconds>;

// ---- Call sites: the first frame outside the package ----

std::string& package_root() {
  static std::string root;
  return root;
}

std::string python_call_site() {
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    Py_ssize_t size = 0;
    const char* file = PyUnicode_AsUTF8AndSize(code->co_filename, &size);
    std::string where;
    if (file && (package_root().empty() || !std::string_view(file, size_t(size)).starts_with(package_root()))) {
      where = text(std::string_view(file, size_t(size)), ":", PyFrame_GetLineNumber(frame));
    }
    if (!file) PyErr_Clear();
    Py_DECREF(code);
    PyFrameObject* back = where.empty() ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    if (!where.empty()) return where;
    frame = back;
  }
  return {};
}

/// Calls `f` with the GIL released, under the caller's call site.
template <class F>
auto at_call_site(F&& f) {
  CallSite here(python_call_site());
  WithoutGil release;
  return f();
}

CallOptions options_of(const MaybeTime& timeout) {
  CallOptions o;
  if (timeout) o.timeout = *timeout;
  return o;
}

/// Lets a group end without the GIL: its threads may need it.
ProcessGroupPtr ended_without_gil(ProcessGroupPtr group) {
  ProcessGroup* raw = group.get();
  return {raw, [group = std::move(group)](ProcessGroup*) mutable {
            if (!Py_IsInitialized() || !PyGILState_Check()) {
              group.reset();
              return;
            }
            WithoutGil release;
            group.reset();
          }};
}

using Group = py::class_<ProcessGroup, ProcessGroupPtr>;
using TensorLists = std::vector<Tensors>;

/// Returns the only element of a list: PyTorch's methods take a list for the devices of a process, of which it has one.
template <class T>
T only(std::vector<T>&& list, const char* what) {
  VESTA_CHECK(list.size() == 1, value, what, ": expected a list of one, got ", list.size(), ".");
  return std::move(list[0]);
}

/// Returns a binding of one of ProcessGroup's operations, whose last parameter, the options, is a timeout in Python.
template <class... Parameter, size_t... I>
auto with_timeout(WorkPtr (ProcessGroup::*operation)(Parameter...), std::index_sequence<I...>) {
  using All = std::tuple<Parameter...>;
  return [operation](ProcessGroup& g, std::tuple_element_t<I, All>... arguments, const MaybeTime& timeout) {
    return at_call_site([&] { return (g.*operation)(std::move(arguments)..., options_of(timeout)); });
  };
}

/// Adds an operation under PyTorch's name, with its parameters' names (and defaults) but for the timeout.
template <class... Parameter, class... Name>
void add(Group& c, const char* name, WorkPtr (ProcessGroup::*operation)(Parameter...), const Name&... names) {
  static_assert(sizeof...(Name) + 1 == sizeof...(Parameter));
  c.def(name, with_timeout(operation, std::make_index_sequence<sizeof...(Name)>()), names...,
        py::arg("timeout") = py::none());
}

void add_operations(Group& c) {
  using G = ProcessGroup;
  const auto op = py::arg("op") = ReduceOp();
  add(c, "allreduce", &G::all_reduce, py::arg("tensors"), op);
  add(c, "reduce", &G::reduce, py::arg("tensor"), py::arg("root"), op);
  add(c, "reduce_scatter", &G::reduce_scatter, py::arg("output"), py::arg("inputs"), op);
  add(c, "_reduce_scatter_base", &G::reduce_scatter_tensor, py::arg("output"), py::arg("input"), op);
  add(c, "allgather", &G::all_gather, py::arg("outputs"), py::arg("input"));
  add(c, "_allgather_base", &G::all_gather_into, py::arg("output"), py::arg("input"));
  add(c, "gather", &G::gather, py::arg("outputs"), py::arg("input"), py::arg("root"));
  add(c, "scatter", &G::scatter, py::arg("output"), py::arg("inputs"), py::arg("root"));
  add(c, "broadcast", &G::broadcast, py::arg("tensors"), py::arg("root"));
  add(c, "alltoall", &G::all_to_all, py::arg("outputs"), py::arg("inputs"));
  const std::vector<int64_t> even;
  add(c, "alltoall_base", &G::all_to_all_single, py::arg("output"), py::arg("input"),
      py::arg("output_split_sizes") = even, py::arg("input_split_sizes") = even);
  add(c, "send", &G::send, py::arg("tensor"), py::arg("dst"), py::arg("tag") = 0);
  add(c, "recv", &G::recv, py::arg("tensor"), py::arg("src"), py::arg("tag") = 0);
  add(c, "barrier", &G::barrier);
}

/// Adds the forms in which PyTorch's methods take tensors: in a list of one, and that of one tensor without a list.
void add_list_forms(Group& c) {
  c.def(
       "allreduce",
       [](ProcessGroup& g, Tensor t, ReduceOp op, const MaybeTime& timeout) {
         return at_call_site([&] { return g.all_reduce({std::move(t)}, op, options_of(timeout)); });
       },
       py::arg("tensor"), py::arg("op") = ReduceOp(), py::arg("timeout") = py::none(), py::prepend())
      .def(
          "broadcast",
          [](ProcessGroup& g, Tensor t, int root, const MaybeTime& timeout) {
            return at_call_site([&] { return g.broadcast({std::move(t)}, root, options_of(timeout)); });
          },
          py::arg("tensor"), py::arg("root"), py::arg("timeout") = py::none(), py::prepend())
      .def("allgather",
           [](ProcessGroup& g, TensorLists out, Tensors in) {
             return at_call_site(
                 [&] { return g.all_gather(only(std::move(out), "allgather"), only(std::move(in), "allgather")); });
           })
      .def(
          "reduce",
          [](ProcessGroup& g, Tensors t, int root, ReduceOp op) {
            return at_call_site([&] { return g.reduce(only(std::move(t), "reduce"), root, op); });
          },
          py::arg("tensors"), py::arg("root") = 0, py::arg("op") = ReduceOp())
      .def(
          "reduce_scatter",
          [](ProcessGroup& g, Tensors out, TensorLists in, ReduceOp op) {
            return at_call_site([&] {
              return g.reduce_scatter(only(std::move(out), "reduce_scatter"), only(std::move(in), "reduce_scatter"),
                                      op);
            });
          },
          py::arg("outputs"), py::arg("inputs"), py::arg("op") = ReduceOp())
      .def("gather",
           [](ProcessGroup& g, TensorLists out, Tensors in, int root) {
             return at_call_site([&] {
               return g.gather(out.empty() ? Tensors() : only(std::move(out), "gather"), only(std::move(in), "gather"),
                               root);
             });
           })
      .def("scatter",
           [](ProcessGroup& g, Tensors out, TensorLists in, int root) {
             return at_call_site([&] {
               return g.scatter(only(std::move(out), "scatter"),
                                in.empty() ? Tensors() : only(std::move(in), "scatter"), root);
             });
           })
      .def("send", [](ProcessGroup& g, Tensors t, int to,
                      int tag) { return at_call_site([&] { return g.send(only(std::move(t), "send"), to, tag); }); })
      .def("recv", [](ProcessGroup& g, Tensors t, int from,
                      int tag) { return at_call_site([&] { return g.recv(only(std::move(t), "recv"), from, tag); }); })
      .def("recv_anysource", [](ProcessGroup& g, Tensors t, int tag) {
        return at_call_site([&] { return g.recv(only(std::move(t), "recv_anysource"), -1, tag); });
      });
}

}  // namespace

void add_groups(py::module_& m) {
  Group c(m, "ProcessGroup", py::dynamic_attr(), "Processes that work together; every call returns a Work.");
  c.def("rank", &ProcessGroup::rank)
      .def("size", &ProcessGroup::size)
      .def("name", &ProcessGroup::backend)
      .def_property_readonly("group_name", &ProcessGroup::name)
      .def_property_readonly("_ranks", &ProcessGroup::ranks)
      .def_property("_timeout", &ProcessGroup::timeout, &ProcessGroup::set_timeout)
      .def("_start_coalescing", &ProcessGroup::start_coalescing)
      .def("_end_coalescing", &ProcessGroup::end_coalescing)
      .def("_report", &ProcessGroup::report, NoGil())
      .def("_sequence_number", &ProcessGroup::sequence_number)
      .def("_busy", &ProcessGroup::busy)
      .def("abort", &ProcessGroup::abort, NoGil(), py::arg("reason") = "abort was called")
      .def("shutdown", &ProcessGroup::shutdown, NoGil());
  add_operations(c);
  add_list_forms(c);
  m.def(
      "_new_process_group",
      [](const std::string& backend, StorePtr store, int rank, int size, const std::string& name, Milliseconds timeout,
         std::vector<int> ranks) {
        GroupOptions o;
        o.name = name;
        o.timeout = timeout;
        o.ranks = std::move(ranks);
        ProcessGroupPtr group;
        {
          WithoutGil release;
          group = new_process_group(backend, std::move(store), rank, size, o);
        }
        return ended_without_gil(std::move(group));
      },
      py::arg("backend"), py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("name"), py::arg("timeout"),
      py::arg("ranks") = std::vector<int>{});
  m.def("_set_package_root", [](const std::string& root) { package_root() = root; });
  m.def("_tensor_of_bytes", [](const py::bytes& b) {
    const std::string_view view = b;
    const int64_t size[] = {int64_t(view.size())};
    Tensor t = empty_tensor(IntSpan(size, 1), DType::uint8);
    std::memcpy(t.data_ptr(), view.data(), view.size());
    return t;
  });
  m.def("_bytes_of_tensor", [](const Tensor& t) {
    VESTA_CHECK(t.defined() && t.is_contiguous() && t.device().type() == DeviceType::cpu, value,
                "_bytes_of_tensor: expected a contiguous tensor of host memory.");
    return py::bytes(static_cast<const char*>(t.data_ptr()), size_t(t.numel() * t.element_size()));
  });
  m.def(
      "_why_no_backend",
      [](const std::string& backend) -> std::optional<std::string> {
        std::string why;
        if (has_group_backend(backend, &why)) return std::nullopt;
        return why;
      },
      NoGil(), "None where a backend can be had, else the reason.");
}

}  // namespace vesta::python
