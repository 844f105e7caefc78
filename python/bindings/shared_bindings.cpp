// vesta._C._shared: shared memory, channels with descriptors and the tie between processes, for vesta.multiprocessing.
#include <pybind11/stl.h>

#include <vesta/multiprocessing/fd_channel.h>
#include <vesta/multiprocessing/process_tie.h>
#include <vesta/multiprocessing/reservation.h>
#include <vesta/multiprocessing/shared_memory.h>
#include <vesta/multiprocessing/waiting_slots.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "dtype_device.h"
#include "errors.h"
#include "exports.h"
#include "parts.h"
#include "type_caster.h"

namespace vesta::python {
namespace {

namespace py = pybind11;
using shared::Arena, shared::Attachments, shared::FdChannel, shared::Handle, shared::Lease, shared::Message;
using HandleTuple = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t, uint64_t>;

Handle handle_of(const HandleTuple& t) {
  return {std::get<0>(t), std::get<1>(t), std::get<2>(t), std::get<3>(t), std::get<4>(t)};
}

/// Returns the end of a wait of `timeout` seconds; None is no end.
Clock::time_point deadline_of(std::optional<double> timeout) {
  if (!timeout || !(*timeout < 1e9)) return deadline_in(kForever);
  return deadline_in(Milliseconds(int64_t(std::ceil(std::max(*timeout, 0.0) * 1000))));
}

/// Makes a contiguous tensor that fills a block of `allocate(nbytes)`.
template <class F>
Tensor empty_in(const std::vector<int64_t>& size, py::handle dtype, F allocate) {
  DType d;
  if (!to_dtype(dtype.ptr(), d)) type_error("empty(): argument 'dtype' must be vesta.dtype");
  IntSpan sizes(size.data(), size.size());
  const int64_t bytes = checked_mul(numel_of(sizes, "empty"), itemsize(d), "empty");
  StoragePtr storage = [&] {
    WithoutGil open;  // new memory is cleared by the kernel: milliseconds
    return allocate(uint64_t(bytes));
  }();
  return Tensor(TensorImpl::make(std::move(storage), sizes, contiguous_strides(sizes), 0, d, "empty"));
}

Tensor bytes_over(StoragePtr storage) {
  Dims size{int64_t(storage->nbytes())}, stride{1};
  return Tensor(TensorImpl::make(std::move(storage), size, stride, 0, DType::uint8, "attach"));
}

Tensor attach(int fd, const HandleTuple& handle, Attachments* keep) {
  return bytes_over(shared::attach(fd, handle_of(handle), keep));
}

py::list stats() {
  py::list all;
  for (const auto& s : shared::stats()) {
    py::dict one;
    one["id"] = s.id, one["owner"] = s.owner, one["reserved"] = s.reserved, one["free"] = s.free;
    one["live"] = s.live, one["blocks"] = s.blocks, one["lent"] = s.lent;
    all.append(one);
  }
  return all;
}

void share(const Tensor& t) {
  Memory old;
  const StoragePtr& storage = t.impl()->storage();
  shared::share(*storage, &old);
  free_after_exports(*storage, old);
}

void add_memory(py::module_& m) {
  m.def("share", &share, "Moves a tensor's memory, with all that view it.");
  m.def("is_shared", [](const Tensor& t) { return shared::is_shared(*t.impl()->storage()); });
  m.def(
      "empty",
      [](const std::vector<int64_t>& size, py::handle dtype) { return empty_in(size, dtype, shared::allocate_shared); },
      "A tensor, not initialised, in the arena that this process has for whoever asks.");
  m.def("attach", &attach, py::arg("fd"), py::arg("handle"), py::arg("keep") = nullptr,
        "The bytes of a block that another process leased, as a uint8 tensor over them.");
  m.def("collect", &shared::collect, "Takes back what other processes have dropped; closes arenas without use.");
  m.def("stats", &stats, "What this process has open: a dict per arena.");
  m.def("memory_headroom", &shared::memory_headroom, "Bytes that may still be taken, or None.");
  py::class_<Arena>(m, "Arena")
      .def(py::init<>())
      .def("empty", [](Arena& self, const std::vector<int64_t>& size, py::handle dtype) {
        return empty_in(size, dtype, [&](uint64_t bytes) { return self.allocate(bytes); });
      });
  py::class_<Attachments>(m, "Attachments").def(py::init<>()).def("__len__", &Attachments::size);
  py::class_<Lease>(m, "Lease")
      .def(py::init<>())
      .def(
          "add",
          [](Lease& self, const Tensor& t) {
            Handle h;
            const int index = self.add(*t.impl()->storage(), h);
            return std::pair(index, HandleTuple(h.window, h.window_bytes, h.offset, h.bytes, h.nbytes));
          },
          "Keeps a tensor's block; returns (which of descriptors(), handle).")
      .def("descriptors", &Lease::descriptors)
      .def("close", &Lease::close);
}

/// Runs a channel's call; a dead other side is BrokenPipeError or EOFError.
template <class F>
auto on_channel(PyObject* closed, F f) {
  try {
    return f();
  } catch (const shared::ChannelClosed& e) {
    if (Ref arguments(Py_BuildValue("(is)", EPIPE, e.what())); arguments) PyErr_SetObject(closed, arguments.get());
    throw_current();
  }
}

std::unique_ptr<Message> receive(FdChannel& channel, std::optional<double> timeout) {
  auto message = std::make_unique<Message>();
  const auto deadline = deadline_of(timeout);
  const shared::Arrival arrival = on_channel(PyExc_EOFError, [&] {
    WithoutGil open;
    return channel.receive(*message, deadline);
  });
  if (arrival == shared::Arrival::timeout) return nullptr;
  if (arrival == shared::Arrival::closed) {
    PyErr_SetString(PyExc_EOFError, "receive: the other side of the channel is gone.");
    throw_current();
  }
  return message;
}

void add_channel(py::module_& m) {
  py::class_<Message>(m, "Message")
      .def_property_readonly("bytes", [](const Message& self) { return py::bytes(self.bytes); })
      .def("__len__", [](const Message& self) { return self.descriptors.size(); })
      .def(
          "attach",
          [](const Message& self, size_t index, const HandleTuple& handle, Attachments* keep) {
            return attach(self.descriptors.at(index).get(), handle, keep);
          },
          py::arg("index"), py::arg("handle"), py::arg("keep") = nullptr)
      .def("duplicate",
           [](const Message& self, size_t index) {
             return shared::Descriptor::duplicate(self.descriptors.at(index).get()).release();
           })
      .def("close", [](Message& self) { self.descriptors.clear(); });
  py::class_<FdChannel>(m, "Channel")
      .def(py::init([](int fd) { return FdChannel(shared::Descriptor(fd)); }), "Takes over a connected Unix socket.")
      .def_static("pair", &FdChannel::make_pair)
      .def("fileno", &FdChannel::fd)
      .def("close", &FdChannel::close)
      .def_property_readonly("closed", &FdChannel::closed)
      .def("detach", [](FdChannel& self) { return self.detach().release(); })
      .def(
          "send",
          [](FdChannel& self, const py::buffer& data, const std::vector<int>& fds, std::optional<double> timeout) {
            const py::buffer_info view = data.request();
            const std::span bytes(static_cast<const char*>(view.ptr), size_t(view.size * view.itemsize));
            const auto deadline = deadline_of(timeout);
            return on_channel(PyExc_BrokenPipeError, [&] {
              WithoutGil open;
              return self.send(bytes, fds, deadline);
            });
          },
          py::arg("data"), py::arg("descriptors") = std::vector<int>(), py::arg("timeout") = py::none())
      .def("receive", &receive, py::arg("timeout") = py::none())
      .def(
          "poll",
          [](const FdChannel& self, std::optional<double> timeout) {
            const auto deadline = deadline_of(timeout);
            WithoutGil open;
            return self.poll(deadline);
          },
          py::arg("timeout") = 0.0);
}

/// Returns the number of free slots that a tensor in shared memory holds.
int32_t* slots_of(const Tensor& t) {
  VESTA_CHECK(t.dtype() == DType::int32 && t.numel() == 1 && shared::is_shared(*t.impl()->storage()), value,
              "slots: expected one int32 in shared memory.");
  return static_cast<int32_t*>(t.data_ptr());
}

void add_slots(py::module_& m) {
  m.def(
      "take_slot",
      [](const Tensor& t, std::optional<double> timeout) {
        int32_t* free = slots_of(t);
        const auto deadline = deadline_of(timeout);
        WithoutGil open;
        return shared::take_slot(free, deadline);
      },
      py::arg("free"), py::arg("timeout") = py::none(), "Takes one of the slots that a tensor counts.");
  m.def("give_slot", [](const Tensor& t) { shared::give_slot(slots_of(t)); }, "Gives a slot back.");
}

void add_processes(py::module_& m) {
  m.def(
      "life_of_this_process", [] { return shared::life_of_this_process().release(); },
      "Opens a descriptor that is ready when this process is dead.");
  m.def("die_with", &shared::die_with, py::arg("life"), py::arg("wake") = -1,
        "Ends this process as soon as the one behind a descriptor is dead.");
  m.def("is_over", &shared::is_over, "Whether the process behind a descriptor is dead.");
}

}  // namespace

void fill_shared(py::module_& m) {
  add_memory(m);
  add_channel(m);
  add_slots(m);
  add_processes(m);
}

}  // namespace vesta::python
