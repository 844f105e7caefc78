// vesta._C._ddp: the reducer of gradients, and communication hooks written in Python.
#include <pybind11/stl.h>

#include <vesta/multiprocessing/ddp/reducer.h>
#include <vesta/multiprocessing/ddp/replicas.h>

#include "errors.h"
#include "parts.h"
#include "type_caster.h"

namespace vesta::python {
namespace {

namespace py = pybind11;
using ddp::GradBucket;
using ddp::Reducer;
using WithoutTheGil = py::call_guard<WithoutGil>;

/// Holds a Python object on behalf of C++, which may let go of it on any thread.
class Held {
 public:
  explicit Held(py::object o) : object_(std::move(o)) {}
  ~Held() {
    if (!Py_IsInitialized()) {
      object_.release();
      return;
    }
    Gil gil;
    object_ = py::object();
  }
  Held(const Held&) = delete;
  const py::object& operator*() const { return object_; }

 private:
  py::object object_;
};

/// Runs Python from C++ frames that hold no GIL; a Python exception travels as PythonError.
template <class F>
auto in_python(F&& f) {
  Gil gil;
  try {
    return run_python(f);
  } catch (py::error_already_set& e) {
    e.restore();
    throw PythonError();
  }
}

/// What a hook in Python returned: a future of a tensor, or of a list that begins with one.
class PendingFuture final : public ddp::PendingBucket {
 public:
  explicit PendingFuture(py::object future) : future_(std::move(future)) {}
  Tensor wait() override {
    return in_python([&] {
      py::object value = (*future_).attr("wait")();
      if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) value = value[py::int_(0)];
      if (!is_tensor(value.ptr())) {
        type_error("communication hook: expected a future of a tensor, got one of %s.", Py_TYPE(value.ptr())->tp_name);
      }
      return unwrap(value.ptr());
    });
  }

 private:
  Held future_;
};

class PythonCommHook final : public ddp::CommHook {
 public:
  PythonCommHook(py::object state, py::object hook) : state_(std::move(state)), hook_(std::move(hook)) {}
  std::shared_ptr<ddp::PendingBucket> run(GradBucket& bucket) override {
    return in_python([&]() -> std::shared_ptr<ddp::PendingBucket> {
      py::object future = (*hook_)(*state_, py::cast(bucket, py::return_value_policy::copy));
      if (!py::hasattr(future, "wait")) {
        type_error("communication hook: expected a future to be returned, got %s.", Py_TYPE(future.ptr())->tp_name);
      }
      return std::make_shared<PendingFuture>(std::move(future));
    });
  }

 private:
  Held state_, hook_;
};

py::dict stats_dict(const Reducer& reducer) {
  const ddp::ReducerStats s = reducer.stats();
  py::dict r;
  r["iteration"] = s.rounds;
  r["has_rebuilt_buckets"] = s.rebuilt;
  r["bucket_sizes"] = s.bucket_bytes;
  r["backward_seconds"] = s.backward_seconds;
  r["exposed_comm_seconds"] = s.exposed_seconds;
  r["total_exposed_comm_seconds"] = s.total_exposed_seconds;
  r["can_set_static_graph"] = !s.unused_changed;
  return r;
}

void add_grad_bucket(py::module_& m) {
  py::class_<GradBucket>(m, "GradBucket", "The gradients of one bucket, as a communication hook gets them.")
      .def("index", &GradBucket::index, "Which bucket it is, in the order in which buckets are sent.")
      .def("buffer", &GradBucket::buffer, "All gradients of the bucket as one vector.")
      .def("gradients", &GradBucket::gradients, "The gradients, each shaped as its parameter.")
      .def("parameters", &GradBucket::parameters, "The parameters whose gradients these are.")
      .def("is_last", &GradBucket::is_last, "Whether it is the last bucket of this backward.")
      .def("set_buffer", &GradBucket::set_buffer, py::arg("buffer"), "Replaces what buffer() returns.");
  py::enum_<ddp::BuiltinCommHook>(m, "BuiltinCommHookType", "Communication hooks that exist in C++.")
      .value("ALLREDUCE", ddp::BuiltinCommHook::all_reduce)
      .value("FP16_COMPRESS", ddp::BuiltinCommHook::fp16_compress)
      .value("BF16_COMPRESS", ddp::BuiltinCommHook::bf16_compress);
}

void add_reducer(py::module_& m) {
  auto make = [](std::vector<Tensor> parameters, std::vector<std::string> names, ProcessGroupPtr group,
                 int64_t first_bucket_bytes, int64_t bucket_bytes, bool taper, std::vector<int64_t> bucket_limits,
                 bool find_unused_parameters, bool static_graph, bool skip_unused_buckets) {
    return Reducer::make(std::move(parameters), std::move(names), std::move(group),
                         {first_bucket_bytes, bucket_bytes, taper, std::move(bucket_limits), find_unused_parameters,
                          static_graph, skip_unused_buckets});
  };
  py::class_<Reducer, std::shared_ptr<Reducer>>(m, "Reducer", "Averages gradients while backward goes on.")
      .def(py::init(make), py::arg("parameters"), py::arg("names"), py::arg("group"), py::kw_only(),
           py::arg("first_bucket_bytes") = ddp::kFirstBucketBytes, py::arg("bucket_bytes") = ddp::kBucketBytes,
           py::arg("taper") = true, py::arg("bucket_limits") = std::vector<int64_t>(),
           py::arg("find_unused_parameters") = false, py::arg("static_graph") = false,
           py::arg("skip_unused_buckets") = false)
      .def("prepare_for_forward", &Reducer::prepare_for_forward, WithoutTheGil())
      .def("prepare_for_backward", &Reducer::prepare_for_backward, py::arg("outputs"), py::arg("sync"), WithoutTheGil())
      .def(
          "register_comm_hook",
          [](Reducer& self, py::object state, py::object hook) {
            auto held = std::make_shared<PythonCommHook>(std::move(state), std::move(hook));
            WithoutGil off;
            self.register_comm_hook(std::move(held));
          },
          py::arg("state"), py::arg("hook"))
      .def(
          "register_builtin_comm_hook",
          [](Reducer& self, ddp::BuiltinCommHook which) {
            self.register_comm_hook(ddp::make_builtin_hook(which, self.group()));
          },
          py::arg("which"), WithoutTheGil())
      .def("set_forward_work", &Reducer::set_forward_work, py::arg("work"), py::arg("count"), WithoutTheGil())
      .def("shadow_round", &Reducer::shadow_round, WithoutTheGil())
      .def("stats", &stats_dict);
}

}  // namespace

void fill_ddp(py::module_& m) {
  add_grad_bucket(m);
  add_reducer(m);
  m.def(
      "verify_replicas",
      [](ProcessGroupPtr group, const ddp::NamedTensors& tensors, const std::string& kind, Device device) {
        ddp::verify_replicas(*group, tensors, kind, device);
      },
      py::arg("group"), py::arg("tensors"), py::arg("kind"), py::arg("device"), WithoutTheGil());
  m.def(
      "broadcast_tensors",
      [](ProcessGroupPtr group, const std::vector<Tensor>& tensors, int source, int64_t bytes) {
        ddp::broadcast_tensors(*group, tensors, source, bytes);
      },
      py::arg("group"), py::arg("tensors"), py::arg("source") = 0, py::arg("bytes") = ddp::kBroadcastBytes,
      WithoutTheGil());
  m.def(
      "refresh_tensors",
      [](ProcessGroupPtr group, const std::vector<Tensor>& tensors, int source) {
        ddp::refresh_tensors(*group, tensors, source);
      },
      py::arg("group"), py::arg("tensors"), py::arg("source") = 0, WithoutTheGil());
}

}  // namespace vesta::python
