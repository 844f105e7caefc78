// The narrow interface between our host code and a GPU: the few calls of the CUDA runtime that we use, with CUDA's
// meanings and error numbers, and without a CUDA header. Two libraries define them: runtime/cuda_runtime.cpp on the
// CUDA runtime (libvesta_cuda.so), emulation/runtime.cpp on threads of the CPU (libvesta_cuda_emulation.so).
#pragma once
#include <cstddef>
#include <cstdint>

struct CUstream_st;
struct CUevent_st;

namespace vesta::cuda {

using StreamHandle = CUstream_st*;  // CUDA's cudaStream_t; null is the default stream
using EventHandle = CUevent_st*;    // CUDA's cudaEvent_t

/// The shape of a launch: blocks in the grid, threads in a block, bytes of dynamic shared memory, and its stream.
struct LaunchShape {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  StreamHandle stream = nullptr;
};

/// The properties of a device.
struct DeviceProperties {
  char name[256] = {};
  int major = 0, minor = 0;  // compute capability
  int multi_processor_count = 0;
  int warp_size = 32;
  int max_threads_per_multi_processor = 0;
  int regs_per_multiprocessor = 0;
  size_t shared_memory_per_block_optin = 0;
  size_t total_memory = 0;
  size_t l2_cache_size = 0;
  bool is_integrated = false;
  bool reads_pageable_memory = false;  // copies from pageable memory may still be under way when their call returns
};

namespace rt {

/// A result of the runtime: the numbers of cudaError_t.
enum class Status : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  insufficient_driver = 35,
  no_device = 100,
  invalid_device = 101,
  invalid_handle = 400,
  not_ready = 600,
  illegal_address = 700,
  not_supported = 801,
  capture_unsupported = 900,
};

/// Returns the name of the implementation: "CUDA" or "emulation".
const char* implementation();
/// Returns the runtime's version in CUDA's numbering: 13000 for 13.0.
int version();
/// Returns what the kernels are compiled for, in CMake's notation: "80-real,90".
const char* architectures();
/// Returns CUDA's name of a status, such as `cudaErrorMemoryAllocation`; status_text returns its meaning.
const char* status_name(Status s);
const char* status_text(Status s);

Status device_count(int* count);
/// Gets the newest CUDA version that the driver supports, 1000 * major + 10 * minor; 0 where no driver is installed.
Status driver_version(int* version);
Status device_properties(int device, DeviceProperties* to);
Status set_device(int device);
Status device_synchronize();
/// Finds out whether device `a` can read the memory of `b` directly.
Status can_access_peer(int a, int b, bool* yes);
/// Lets the current device use the memory of `peer` that malloc() gives, from now on.
Status enable_peer_access(int peer);

// Memory of the current device, in bytes.
Status malloc(void** p, size_t nbytes);
Status free(void* p);
Status memory_info(size_t* free, size_t* total);
// Page-locked host memory, readable by every device under the same address.
Status host_malloc(void** p, size_t nbytes);
Status host_free(void* p);
/// Returns whether host memory is page-locked, by this or any other library: copies from it are still under way when
/// their call returns.
bool is_page_locked(const void* p);

// Reserved addresses that get memory page by page (the caching allocator's expandable segments).
Status va_granularity(int device, size_t* bytes);
Status va_reserve(void** address, size_t nbytes);
Status va_release(void* address, size_t nbytes);
/// Maps `nbytes` of new memory of `device` at `at`, which lies in a reservation.
Status va_map(int device, void* at, size_t nbytes);
Status va_unmap(void* at, size_t nbytes);
/// Lets `device` use memory that va_map() has mapped, too.
Status va_allow(int device, void* at, size_t nbytes);

enum class Copy : int { host_to_host = 0, host_to_device = 1, device_to_host = 2, device_to_device = 3 };
Status memcpy_async(void* to, const void* from, size_t nbytes, Copy kind, StreamHandle stream);
Status memcpy_peer_async(void* to, int to_device, const void* from, int from_device, size_t nbytes,
                         StreamHandle stream);
Status memset_async(void* to, int value, size_t nbytes, StreamHandle stream);

/// Makes a stream that does not wait for the default stream; a lower `priority` number goes first.
Status stream_create(StreamHandle* stream, int priority);
Status stream_destroy(StreamHandle stream);
Status stream_synchronize(StreamHandle stream);
/// Returns not_ready while work is queued.
Status stream_query(StreamHandle stream);
/// Makes later work of `stream` wait for what `event` recorded; the host does not wait.
Status stream_wait_event(StreamHandle stream, EventHandle event);
Status stream_is_capturing(StreamHandle stream, bool* yes);

Status event_create(EventHandle* event, bool timing);
Status event_destroy(EventHandle event);
Status event_record(EventHandle event, StreamHandle stream);
Status event_query(EventHandle event);
Status event_synchronize(EventHandle event);
/// Measures the milliseconds between two events that were made with timing and are complete.
Status event_elapsed(float* milliseconds, EventHandle begin, EventHandle end);

/// Queues a kernel. `kernel` is the host's handle of a __global__ function; `arguments` point at its arguments. Only
/// launch() in kernels/launch.h calls this.
Status launch(const char* name, const void* kernel, const LaunchShape& shape, void** arguments);

/// The counters of calls to the device since the process started, for tests and the profiler.
struct Counters {
  uint64_t launches = 0, copies = 0, mallocs = 0, synchronizations = 0;
  uint64_t staged_copies = 0;  // between devices by way of the host; only the emulated device knows
};
Counters counters();

}  // namespace rt
}  // namespace vesta::cuda
