// The C++ and Python front ends' way to CUDA: functions of the loaded library, found on first use. A program that
// includes this header links only libvesta.so, and also runs without a GPU.
//
//   if (vesta::cuda::is_available()) { Tensor x = randn({8}).to(Device("cuda")); vesta::cuda::synchronize(); }
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <vesta/core/backend.h>
#include <vesta/core/tensor.h>
#include <vesta/cuda/memory/allocator_snapshot.h>

namespace vesta::cuda {

/// The properties of a device, as in torch.cuda.get_device_properties.
struct DeviceInfo {
  std::string name;
  int major, minor, multi_processor_count, max_threads_per_multi_processor, regs_per_multiprocessor, warp_size;
  size_t total_memory, l2_cache_size, shared_memory_per_block_optin;
  bool is_integrated;
};

/// The table that the CUDA library fills (api.cpp); streams and events are numbers and addresses here.
struct Api {
  const char* (*implementation)();
  int (*runtime_version)();
  int (*device_count)();
  std::string (*why_no_device)();
  int (*current_device)();
  void (*set_device)(int device);
  DeviceInfo (*device_info)(int device);
  bool (*can_access_peer)(int device, int peer);
  void (*synchronize)(int device);

  uint32_t (*stream_from_pool)(int device, int priority);
  uint32_t (*current_stream)(int device);
  void (*set_stream)(int device, uint32_t stream);
  bool (*stream_query)(int device, uint32_t stream);
  void (*stream_synchronize)(int device, uint32_t stream);
  void (*stream_wait_stream)(int device, uint32_t later, uint32_t earlier);
  uint64_t (*stream_handle)(int device, uint32_t stream);

  void* (*event_create)(bool timing);
  void (*event_destroy)(void* event);
  void (*event_record)(void* event, int device, uint32_t stream);
  void (*event_wait)(void* event, int device, uint32_t stream);
  bool (*event_query)(void* event);
  void (*event_synchronize)(void* event);
  double (*event_elapsed)(void* begin, void* end);

  std::vector<std::pair<std::string, int64_t>> (*memory_stats)(int device);
  void (*reset_peak_memory_stats)(int device);
  void (*reset_accumulated_memory_stats)(int device);
  void (*empty_cache)();
  std::pair<size_t, size_t> (*memory_info)(int device);
  void (*set_memory_fraction)(int device, double fraction);
  Snapshot (*memory_snapshot)(int device);
  void (*record_memory_history)(int device, bool on, size_t max_entries);
  std::vector<std::pair<std::string, uint64_t>> (*counters)();
  int (*sync_debug_mode)();  // 0: off, 1: a warning, 2: an error where an op makes the host wait
  void (*set_sync_debug_mode)(int mode);
  std::pair<size_t, std::string> (*cudnn_version)();
  int64_t (*fft_plan_count)(int device);  // of cuFFT's plans, see lib/cufft.h
  int64_t (*fft_plan_limit)(int device);
  void (*set_fft_plan_limit)(int device, int64_t limit);
  void (*clear_fft_plans)(int device);

  int (*nccl_version)();  // 0 where there is none
  std::string (*nccl_problem)();
};

/// Returns the table; Error(device) with advice if there is no CUDA library.
inline const Api& api() {
  backend(DeviceType::cuda);
  static const Api& table = *static_cast<const Api*>(backend_symbol(DeviceType::cuda, "vesta_cuda_api"));
  return table;
}

/// Returns whether tensors can be made on a CUDA device. Never raises.
inline bool is_available() { return has_backend(DeviceType::cuda) && api().device_count() > 0; }
/// Returns the number of CUDA devices; 0 if there is no library, driver or GPU.
inline int device_count() { return has_backend(DeviceType::cuda) ? api().device_count() : 0; }
/// Waits for everything queued on a device (the current one for -1); raises what a kernel reported.
inline void synchronize(int device = -1) { api().synchronize(device < 0 ? api().current_device() : device); }
/// Returns cached memory that no tensor uses to the driver.
inline void empty_cache() { api().empty_cache(); }

}  // namespace vesta::cuda
