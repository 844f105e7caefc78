// vesta._C_cuda: the extension below `vesta.cuda`. It is thin: every function is one entry of the table in cuda/api.h.
// It is imported when `vesta.cuda` first needs it, never by `import vesta`.
#include "gil.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <vesta/core/plug_in.h>
#include <vesta/cuda/api.h>
#include <vesta/multiprocessing/distributed_error.h>
#include <vesta_build_identity.h>

namespace py = pybind11;
namespace vesta::cuda {
namespace {

using NoGil = py::call_guard<python::WithoutGil>;

py::dict dict_of(const DeviceInfo& i) {
  using namespace py::literals;
  return py::dict(
      "name"_a = i.name, "major"_a = i.major, "minor"_a = i.minor, "multi_processor_count"_a = i.multi_processor_count,
      "max_threads_per_multi_processor"_a = i.max_threads_per_multi_processor,
      "regs_per_multiprocessor"_a = i.regs_per_multiprocessor, "warp_size"_a = i.warp_size,
      "total_memory"_a = i.total_memory, "L2_cache_size"_a = i.l2_cache_size,
      "shared_memory_per_block_optin"_a = i.shared_memory_per_block_optin, "is_integrated"_a = i.is_integrated);
}

py::list frames_of(const char* op) {
  py::list frames;
  if (op) {
    using namespace py::literals;
    frames.append(py::dict("name"_a = op, "filename"_a = "", "line"_a = 0));
  }
  return frames;
}

/// Returns a snapshot in the layout of torch.cuda.memory._snapshot().
py::dict dict_of(const Snapshot& s, int device) {
  using namespace py::literals;
  py::list segments, trace;
  for (const SegmentInfo& segment : s.segments) {
    py::list blocks;
    for (const BlockInfo& b : segment.blocks) {
      blocks.append(py::dict("address"_a = b.address, "size"_a = b.size, "requested_size"_a = b.requested_size,
                             "state"_a = b.state, "frames"_a = frames_of(b.op)));
    }
    segments.append(
        py::dict("device"_a = segment.device, "address"_a = segment.address, "total_size"_a = segment.total_size,
                 "allocated_size"_a = segment.allocated_size, "active_size"_a = segment.active_size,
                 "requested_size"_a = segment.requested_size, "stream"_a = segment.stream,
                 "segment_type"_a = segment.segment_type,
                 "segment_pool_id"_a = py::make_tuple(segment.segment_pool_id.capture, segment.segment_pool_id.user),
                 "is_expandable"_a = segment.is_expandable, "blocks"_a = blocks));
  }
  for (const TraceEntry& e : s.device_traces) {
    trace.append(py::dict("action"_a = kTraceActionNames[int(e.action)], "addr"_a = e.addr, "size"_a = e.size,
                          "stream"_a = e.stream, "time_us"_a = e.time_us, "frames"_a = frames_of(e.op)));
  }
  py::list traces;
  for (int d = 0; d <= device; ++d) traces.append(d == device ? trace : py::list());
  return py::dict("segments"_a = segments, "device_traces"_a = traces);
}

/// Returns the exception class of an error, one of those in vesta._C.
py::object class_of(const Error& e) {
  const py::module_ core = py::module_::import("vesta._C");
  if (dynamic_cast<const DistributedError*>(&e)) return core.attr("_DistBackendError");  // a collective had failed
  switch (e.cause()) {
    case Cause::value: return core.attr("ArgumentError");
    case Cause::type: return core.attr("DTypeError");
    case Cause::memory: return core.attr("OutOfMemoryError");
    case Cause::device: return core.attr("DeviceError");
    case Cause::index: return py::reinterpret_borrow<py::object>(PyExc_IndexError);
    case Cause::not_implemented: return py::reinterpret_borrow<py::object>(PyExc_NotImplementedError);
    default: return core.attr("Error");
  }
}

/// A CUDA event that Python owns.
class OwnedEvent {
 public:
  explicit OwnedEvent(bool timing) : event_(api().event_create(timing)) {}
  ~OwnedEvent() { api().event_destroy(event_); }
  OwnedEvent(const OwnedEvent&) = delete;
  void* get() const { return event_; }

 private:
  void* event_;
};

}  // namespace

PYBIND11_MODULE(_C_cuda, m) {
  const std::string problem = other_build("vesta._C_cuda", VESTA_BUILD_IDENTITY);
  if (!problem.empty()) throw py::import_error(problem);
  py::register_local_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const Error& e) {
      PyErr_SetString(class_of(e).ptr(), e.what());
    }
  });
  m.def("is_available", &is_available);
  m.def("device_count", static_cast<int (*)()>(&device_count));
  m.def("why_no_device", [] { return api().why_no_device(); });
  m.def("implementation", [] { return std::string(api().implementation()); });
  m.def("runtime_version", [] { return api().runtime_version(); });
  m.def("current_device", [] {
    VESTA_CHECK(api().device_count() > 0, device, api().why_no_device());
    return api().current_device();
  });
  m.def("set_device", [](int d) { api().set_device(d); });
  m.def("device_info", [](int d) { return dict_of(api().device_info(d)); });
  m.def("can_access_peer", [](int a, int b) { return api().can_access_peer(a, b); });
  m.def("synchronize", [](int d) { api().synchronize(d); }, NoGil());

  m.def("stream_from_pool", [](int d, int priority) { return api().stream_from_pool(d, priority); });
  m.def("current_stream", [](int d) { return api().current_stream(d); });
  m.def("set_stream", [](int d, uint32_t s) { api().set_stream(d, s); });
  m.def("stream_query", [](int d, uint32_t s) { return api().stream_query(d, s); });
  m.def("stream_synchronize", [](int d, uint32_t s) { api().stream_synchronize(d, s); }, NoGil());
  m.def("stream_wait_stream", [](int d, uint32_t a, uint32_t b) { api().stream_wait_stream(d, a, b); });
  m.def("stream_handle", [](int d, uint32_t s) { return api().stream_handle(d, s); });

  py::class_<OwnedEvent>(m, "Event")
      .def(py::init<bool>())
      .def("record", [](OwnedEvent& e, int d, uint32_t s) { api().event_record(e.get(), d, s); })
      .def("wait", [](OwnedEvent& e, int d, uint32_t s) { api().event_wait(e.get(), d, s); })
      .def("query", [](OwnedEvent& e) { return api().event_query(e.get()); })
      .def(
          "synchronize", [](OwnedEvent& e) { api().event_synchronize(e.get()); }, NoGil())
      .def("elapsed", [](OwnedEvent& a, OwnedEvent& b) { return api().event_elapsed(a.get(), b.get()); });

  m.def("memory_stats", [](int d) { return api().memory_stats(d); });
  m.def("reset_peak_memory_stats", [](int d) { api().reset_peak_memory_stats(d); });
  m.def("reset_accumulated_memory_stats", [](int d) { api().reset_accumulated_memory_stats(d); });
  m.def("empty_cache", [] { api().empty_cache(); }, NoGil());
  m.def("memory_info", [](int d) { return api().memory_info(d); });
  m.def("set_memory_fraction", [](int d, double fraction) { api().set_memory_fraction(d, fraction); });
  m.def("memory_snapshot", [](int d) { return dict_of(api().memory_snapshot(d), d); });
  m.def("record_memory_history", [](int d, bool on, size_t n) { api().record_memory_history(d, on, n); });
  m.def("sync_debug_mode", [] { return api().sync_debug_mode(); });
  m.def("set_sync_debug_mode", [](int mode) { api().set_sync_debug_mode(mode); });
  m.def("cudnn_version", [] { return api().cudnn_version(); });
  m.def("fft_plan_count", [](int d) { return api().fft_plan_count(d); });
  m.def("fft_plan_limit", [](int d) { return api().fft_plan_limit(d); });
  m.def("set_fft_plan_limit", [](int d, int64_t limit) { api().set_fft_plan_limit(d, limit); });
  m.def("clear_fft_plans", [](int d) { api().clear_fft_plans(d); });
  m.def("counters", [] { return api().counters(); });
  m.def("nccl_version", [] { return api().nccl_version(); });
  m.def("nccl_problem", [] { return api().nccl_problem(); });
}

}  // namespace vesta::cuda
