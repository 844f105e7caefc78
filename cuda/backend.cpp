// CUDA for core: the Backend port, and the entry that core calls when it has loaded this library.
#include <vesta/core/backend.h>
#include <vesta_build_identity.h>

#include <vesta/core/base/waiting.h>
#include <vesta/core/storage.h>
#include <vesta/cuda/allocator.h>
#include <vesta/cuda/device_wait.h>
#include <vesta/cuda/fault.h>
#include <vesta/cuda/kernels/condition.h>
#include <vesta/cuda/pointwise.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

class CudaBackend final : public Backend {
 public:
  const char* name() const override { return "cuda"; }
  int device_count() const override { return visible_devices(); }
  Memory allocate(size_t nbytes, Device device) override { return allocate_memory(nbytes, index_of(device)); }
  void copy_bytes(void* to, const void* from, size_t nbytes, Device device) override {
    if (!nbytes) return;
    DeviceGuard guard(index_of(device));
    VESTA_CUDA_CHECK(rt::memcpy_async(to, from, nbytes, rt::Copy::device_to_device, stream(device)));
  }
  void run(const PointwisePlan& plan) override { run_plan(plan); }
  void synchronize(Device device) override { synchronize_device(index_of(device)); }
  void raise_later(const bool* flag, const char* message, Device device) override {
    DeviceGuard guard(index_of(device));
    run_condition(flag, message, fault_of(index_of(device)), stream(device));
  }
  int current_device() const override {
    VESTA_CHECK(visible_devices() > 0, device, why_no_device());
    return cuda::current_device();
  }
  void transfer(void* to, Device to_device, const void* from, Device from_device, size_t nbytes,
                bool non_blocking) override;
  uint32_t current_stream(Device d) const override { return uint32_t(cuda::current_stream(index_of(d)).number()); }
  void set_current_stream(Device d, uint32_t number) override {
    cuda::set_current_stream(checked_stream(index_of(d), number));
  }
  void order(Device d, uint32_t later, uint32_t earlier) override {
    Stream(index_of(d), int(later)).wait(Stream(index_of(d), int(earlier)));
  }
  void record_use(const Storage& s, uint32_t number) override {
    const int device = index_of(s.device());
    auto* block = static_cast<DeviceAllocator::Block*>(s.context());
    if (block && s.resizable()) allocator(device).record_stream(block, checked_stream(device, number).handle());
  }
  Memory allocate_pinned(size_t nbytes) override {
    VESTA_CHECK(visible_devices() > 0, device, why_no_device());
    return cuda::allocate_pinned(nbytes);
  }
  bool is_pinned(const void* p) const override { return visible_devices() > 0 && cuda::is_pinned(p); }

 private:
  static StreamHandle stream(Device d) { return cuda::current_stream(index_of(d)).handle(); }
};

/// Copies between devices: earlier work on the source comes first, later work on either side after.
void copy_between_devices(void* to, int to_index, const void* from, int from_index, size_t nbytes) {
  const Stream source = cuda::current_stream(from_index), target = cuda::current_stream(to_index);
  Event written, read;
  written.record(source);
  written.block(target);
  allow_peer(to_index, from_index);
  DeviceGuard guard(to_index);
  VESTA_CUDA_CHECK(rt::memcpy_peer_async(to, to_index, from, from_index, nbytes, target.handle()));
  read.record(target);
  read.block(source);
}

void CudaBackend::transfer(void* to, Device to_device, const void* from, Device from_device, size_t nbytes,
                           bool non_blocking) {
  if (!nbytes) return;
  const bool to_cuda = to_device.type() == DeviceType::cuda, from_cuda = from_device.type() == DeviceType::cuda;
  if (to_cuda && from_cuda) return copy_between_devices(to, index_of(to_device), from, index_of(from_device), nbytes);
  const Device device = to_cuda ? to_device : from_device;
  const void* host = to_cuda ? from : to;
  const Stream stream = cuda::current_stream(index_of(device));
  DeviceGuard guard(stream.device());
  const rt::Copy kind = to_cuda ? rt::Copy::host_to_device : rt::Copy::device_to_host;
  const bool pinned = is_pinned(host);
  if (non_blocking && pinned) {
    VESTA_CUDA_CHECK(rt::memcpy_async(to, from, nbytes, kind, stream.handle()));
    return record_pinned_use(host, stream);
  }
  // When the call returns, the runtime has read pageable memory, unless the device reads it by itself, but not
  // page-locked memory, even another library's; and a pageable destination would be read too early.
  const bool waits =
      !to_cuda || pinned || properties(stream.device()).reads_pageable_memory || rt::is_page_locked(host);
  if (waits) before_hidden_wait();
  {
    Waiting open;  // a copy from or to pageable memory may wait by itself
    const auto finish = [h = stream.handle()] { return rt::stream_synchronize(h); };
    // That wait would be inside the copy, for good if the device is lost.
    if (!to_cuda && loss_is_expected()) VESTA_CUDA_CHECK(wait_for_device(stream.device(), finish));
    VESTA_CUDA_CHECK(rt::memcpy_async(to, from, nbytes, kind, stream.handle()));
    if (!waits) return;
    VESTA_CUDA_CHECK(wait_for_device(stream.device(), finish));
  }
  raise_fault(stream.device());
}

}  // namespace

void register_all() {
#define VESTA_X(topic, cpu, meta, cuda, rules) VESTA_IF_##cuda(register_##topic();)
  VESTA_KERNEL_TOPICS(VESTA_X)
#undef VESTA_X
  static CudaBackend backend;
  set_backend(DeviceType::cuda, &backend);
}

}  // namespace vesta::cuda

/// The build of this library (core/plug_in.h).
extern "C" VESTA_API const char vesta_plug_in_build[];
const char vesta_plug_in_build[] = VESTA_BUILD_IDENTITY;

/// Registers CUDA with core; core calls it once, by name, when it has loaded this library.
extern "C" VESTA_API void vesta_plug_in() { vesta::cuda::register_all(); }
