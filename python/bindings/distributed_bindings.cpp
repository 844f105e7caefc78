// vesta._C._distributed: stores, process groups and Work. vesta.distributed gives them PyTorch's functions.
#include "distributed_bindings.h"

#include <pybind11/chrono.h>
#include <pybind11/stl.h>

#include <vesta/multiprocessing/process_group.h>
#include <vesta/multiprocessing/store.h>

#include "errors.h"
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

// ---- Stores ----

py::bytes bytes_of(const std::string& s) { return py::bytes(s); }

void add_store_base(py::module_& m) {
  py::class_<Store, StorePtr>(m, "Store", "Keys and values that processes share.")
      .def(
          "set", [](Store& s, const std::string& key, const std::string& value) { s.set(key, value); }, NoGil(),
          py::arg("key"), py::arg("value"), "Sets a value (str or bytes), over an old one.")
      .def(
          "get",
          [](Store& s, const std::string& key) {
            std::string value;
            {
              WithoutGil release;
              value = s.get(key);
            }
            return bytes_of(value);
          },
          py::arg("key"), "Returns a value as bytes, waiting until there is one.")
      .def("add", &Store::add, NoGil(), py::arg("key"), py::arg("amount"), "Adds to a number and returns the sum.")
      .def(
          "wait",
          [](Store& s, const Keys& keys, const MaybeTime& timeout) { s.wait(keys, timeout ? *timeout : s.timeout()); },
          NoGil(), py::arg("keys"), py::arg("timeout") = py::none(), "Waits until all keys are there.")
      .def("check", &Store::check, NoGil(), py::arg("keys"), "Whether all keys are there.")
      .def(
          "compare_set",
          [](Store& s, const std::string& key, const std::string& expected, const std::string& desired) {
            std::string value;
            {
              WithoutGil release;
              value = s.compare_set(key, expected, desired);
            }
            return bytes_of(value);
          },
          py::arg("key"), py::arg("expected_value"), py::arg("desired_value"),
          "Sets a value where the old one is as expected; returns the value that holds then.")
      .def("delete_key", &Store::delete_key, NoGil(), py::arg("key"), "Removes a key; whether there was one.")
      .def("num_keys", &Store::num_keys, NoGil(), "Counts the keys.")
      .def("append", &Store::append, NoGil(), py::arg("key"), py::arg("value"), "Appends to a value.")
      .def(
          "multi_get",
          [](Store& s, const Keys& keys) {
            std::vector<std::string> values;
            {
              WithoutGil release;
              values = s.multi_get(keys);
            }
            py::list r;
            for (const std::string& v : values) r.append(bytes_of(v));
            return r;
          },
          py::arg("keys"), "Returns several values, waiting for each.")
      .def("multi_set", &Store::multi_set, NoGil(), py::arg("keys"), py::arg("values"), "Sets several values.")
      .def(
          "list_keys", [](Store& s) { return s.keys(); }, NoGil(), "Lists all keys.")
      .def(
          "has_extended_api", [](Store&) { return true; }, "Whether append, multi_get and multi_set are there.")
      .def("set_timeout", &Store::set_timeout, py::arg("timeout"), "Sets how long an operation may wait.")
      .def_property_readonly("timeout", &Store::timeout, "How long an operation may wait.");
}

TCPStoreOptions tcp_options(int port, std::optional<int> world_size, bool master, Milliseconds timeout, bool wait,
                            bool multi_tenant, std::optional<int> listen_fd) {
  TCPStoreOptions o;
  o.port = port;
  o.is_master = master;
  o.num_workers = world_size.value_or(-1);
  o.wait_for_workers = wait;
  o.timeout = timeout;
  o.multi_tenant = multi_tenant;
  o.listen_fd = listen_fd.value_or(-1);
  return o;
}

void add_stores(py::module_& m) {
  add_store_base(m);
  const Milliseconds kFiveMinutes = std::chrono::minutes(5);
  py::class_<TCPStore, Store, std::shared_ptr<TCPStore>>(m, "TCPStore", "A store whose server the master runs.")
      .def(py::init([](const std::string& host, int port, std::optional<int> world_size, bool master,
                       Milliseconds timeout, bool wait, bool multi_tenant, std::optional<int> listen_fd, bool) {
             WithoutGil release;
             return std::make_shared<TCPStore>(
                 host, tcp_options(port, world_size, master, timeout, wait, multi_tenant, listen_fd));
           }),
           py::arg("host_name"), py::arg("port"), py::arg("world_size") = py::none(), py::arg("is_master") = false,
           py::arg("timeout") = kFiveMinutes, py::arg("wait_for_workers") = true, py::arg("multi_tenant") = false,
           py::arg("master_listen_fd") = py::none(), py::arg("use_libuv") = true)
      .def_property_readonly("host", &TCPStore::host)
      .def_property_readonly("port", &TCPStore::port)
      .def("__repr__",
           [](const TCPStore& s) { return text("TCPStore(host_name='", s.host(), "', port=", s.port(), ")"); });
  py::class_<FileStore, Store, std::shared_ptr<FileStore>>(m, "FileStore", "A store in a file that all can open.")
      .def(py::init<std::string, int>(), NoGil(), py::arg("file_name"), py::arg("world_size") = -1)
      .def_property_readonly("path", &FileStore::path);
  py::class_<HashStore, Store, std::shared_ptr<HashStore>>(m, "HashStore", "A store for the threads of one process.")
      .def(py::init<>());
  py::class_<PrefixStore, Store, std::shared_ptr<PrefixStore>>(m, "PrefixStore", "A store within a store.")
      .def(py::init<std::string, StorePtr>(), py::arg("prefix"), py::arg("store"))
      .def_property_readonly("underlying_store", &PrefixStore::underlying_store)
      .def_property_readonly("prefix", &PrefixStore::prefix);
}

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
          [](Work& w, const MaybeTime& timeout) {
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

// ---- Process groups ----

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

void add_reductions(Group& c) {
  c.def(
       "allreduce",
       [](ProcessGroup& g, Tensors tensors, ReduceOp op, const MaybeTime& timeout) {
         return at_call_site([&] { return g.all_reduce(std::move(tensors), op, options_of(timeout)); });
       },
       py::arg("tensors"), py::arg("op") = ReduceOp(), py::arg("timeout") = py::none())
      .def(
          "reduce",
          [](ProcessGroup& g, Tensor t, int root, ReduceOp op, const MaybeTime& timeout) {
            return at_call_site([&] { return g.reduce(std::move(t), root, op, options_of(timeout)); });
          },
          py::arg("tensor"), py::arg("root"), py::arg("op") = ReduceOp(), py::arg("timeout") = py::none())
      .def(
          "reduce_scatter",
          [](ProcessGroup& g, Tensor out, Tensors in, ReduceOp op, const MaybeTime& timeout) {
            return at_call_site(
                [&] { return g.reduce_scatter(std::move(out), std::move(in), op, options_of(timeout)); });
          },
          py::arg("output"), py::arg("inputs"), py::arg("op") = ReduceOp(), py::arg("timeout") = py::none())
      .def(
          "_reduce_scatter_base",
          [](ProcessGroup& g, Tensor out, Tensor in, ReduceOp op, const MaybeTime& timeout) {
            return at_call_site(
                [&] { return g.reduce_scatter_tensor(std::move(out), std::move(in), op, options_of(timeout)); });
          },
          py::arg("output"), py::arg("input"), py::arg("op") = ReduceOp(), py::arg("timeout") = py::none());
}

void add_gathers(Group& c) {
  c.def(
       "allgather",
       [](ProcessGroup& g, Tensors out, Tensor in, const MaybeTime& timeout) {
         return at_call_site([&] { return g.all_gather(std::move(out), std::move(in), options_of(timeout)); });
       },
       py::arg("outputs"), py::arg("input"), py::arg("timeout") = py::none())
      .def(
          "_allgather_base",
          [](ProcessGroup& g, Tensor out, Tensor in, const MaybeTime& timeout) {
            return at_call_site([&] { return g.all_gather_into(std::move(out), std::move(in), options_of(timeout)); });
          },
          py::arg("output"), py::arg("input"), py::arg("timeout") = py::none())
      .def(
          "gather",
          [](ProcessGroup& g, Tensors out, Tensor in, int root, const MaybeTime& timeout) {
            return at_call_site([&] { return g.gather(std::move(out), std::move(in), root, options_of(timeout)); });
          },
          py::arg("outputs"), py::arg("input"), py::arg("root"), py::arg("timeout") = py::none())
      .def(
          "scatter",
          [](ProcessGroup& g, Tensor out, Tensors in, int root, const MaybeTime& timeout) {
            return at_call_site([&] { return g.scatter(std::move(out), std::move(in), root, options_of(timeout)); });
          },
          py::arg("output"), py::arg("inputs"), py::arg("root"), py::arg("timeout") = py::none());
}

void add_exchanges(Group& c) {
  c.def(
       "broadcast",
       [](ProcessGroup& g, Tensors tensors, int root, const MaybeTime& timeout) {
         return at_call_site([&] { return g.broadcast(std::move(tensors), root, options_of(timeout)); });
       },
       py::arg("tensors"), py::arg("root"), py::arg("timeout") = py::none())
      .def(
          "alltoall",
          [](ProcessGroup& g, Tensors out, Tensors in, const MaybeTime& timeout) {
            return at_call_site([&] { return g.all_to_all(std::move(out), std::move(in), options_of(timeout)); });
          },
          py::arg("outputs"), py::arg("inputs"), py::arg("timeout") = py::none())
      .def(
          "alltoall_base",
          [](ProcessGroup& g, Tensor out, Tensor in, std::vector<int64_t> out_splits, std::vector<int64_t> in_splits,
             const MaybeTime& timeout) {
            return at_call_site([&] {
              return g.all_to_all_single(std::move(out), std::move(in), std::move(out_splits), std::move(in_splits),
                                         options_of(timeout));
            });
          },
          py::arg("output"), py::arg("input"), py::arg("output_split_sizes") = std::vector<int64_t>{},
          py::arg("input_split_sizes") = std::vector<int64_t>{}, py::arg("timeout") = py::none())
      .def(
          "send",
          [](ProcessGroup& g, Tensor t, int to, int tag, const MaybeTime& timeout) {
            return at_call_site([&] { return g.send(std::move(t), to, tag, options_of(timeout)); });
          },
          py::arg("tensor"), py::arg("dst"), py::arg("tag") = 0, py::arg("timeout") = py::none())
      .def(
          "recv",
          [](ProcessGroup& g, Tensor t, int from, int tag, const MaybeTime& timeout) {
            return at_call_site([&] { return g.recv(std::move(t), from, tag, options_of(timeout)); });
          },
          py::arg("tensor"), py::arg("src"), py::arg("tag") = 0, py::arg("timeout") = py::none())
      .def(
          "barrier",
          [](ProcessGroup& g, const MaybeTime& timeout) {
            return at_call_site([&] { return g.barrier(options_of(timeout)); });
          },
          py::arg("timeout") = py::none());
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
  add_reductions(c);
  add_gathers(c);
  add_exchanges(c);
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
  m.def("_tensor_of_bytes", [](const py::bytes& b) {
    const std::string_view view = b;
    const int64_t size[] = {int64_t(view.size())};
    Tensor t = empty_tensor(IntSpan(size, 1), DType::uint8);
    std::memcpy(t.data_ptr(), view.data(), view.size());
    return t;
  });
  m.def("_bytes_of_tensor", [](const Tensor& t) {
    VESTA_CHECK(t.defined() && t.is_contiguous() && t.device().type == DeviceType::cpu, value,
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

}  // namespace

bool add_distributed(PyObject* module) {
  return guarded(
      [&] {
        auto m =
            py::reinterpret_borrow<py::module_>(module).def_submodule("_distributed", "Stores and process groups.");
        py::register_local_exception_translator([](std::exception_ptr p) {
          try {
            std::rethrow_exception(p);
          } catch (const Error&) {
            translate_exception();
          } catch (const PythonError&) {
            translate_exception();
          }
        });
        m.def("_set_package_root", [](const std::string& root) { package_root() = root; });
        add_stores(m);
        add_work(m);
        add_reduce_op(m);
        add_groups(m);
        return true;
      },
      false);
}

}  // namespace vesta::python
