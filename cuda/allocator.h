// Memory of the devices: one caching allocator each (memory/), page-locked host memory, and the driver below them.
#pragma once
#include <map>

#include <vesta/core/backend.h>
#include <vesta/cuda/memory/caching_allocator.h>
#include <vesta/cuda/memory/pinned_allocator.h>
#include <vesta/cuda/stream.h>

namespace vesta::cuda {

/// The runtime in the form the allocators use (memory/mem_driver.h).
class RuntimeDriver {
 public:
  using Stream = StreamHandle;
  using Event = EventHandle;
  explicit RuntimeDriver(int device) : device_(device) {}

  void* malloc_(size_t n);
  void free_(void* p);
  void* va_reserve(size_t n);
  bool va_map(void* base, size_t offset, size_t n);
  void va_unmap(void* base, size_t offset, size_t n);
  /// Lets another device use all mapped memory, present and future.
  void allow(int peer);
  void va_release(void* base, size_t n);
  MemInfo mem_info();
  int64_t now();

  Event event_get();
  void event_put(Event e);
  void event_record(Event e, Stream s);
  bool event_query(Event e);
  void event_sync(Event e);
  void stream_wait(Stream s, Event e);
  bool is_capturing(Stream s);

 private:
  int device_;
  std::mutex lock_;
  std::vector<Event> free_events_;
  std::map<void*, size_t> mapped_;  // what va_map has mapped, in bytes
  std::vector<int> peers_;          // that may use it
};

/// Page-locked host memory and the streams of all devices that use it. A stream is a number here, made from its device
/// and its index on the device: the default streams of all devices have the same handle.
class HostDriver {
 public:
  using Stream = uint32_t;
  using Event = cuda::Event*;

  static Stream number_of(cuda::Stream s) { return uint32_t(s.device()) << 16 | uint32_t(s.number()); }
  static cuda::Stream stream_of(Stream s) { return cuda::Stream(int(s >> 16), int(s & 0xffff)); }

  void* host_malloc(size_t n);
  void host_free(void* p);
  Event event_get();
  void event_put(Event e);
  void event_record(Event e, Stream s);
  bool event_query(Event e);
  void event_sync(Event e);
  void stream_wait(Stream s, Event e);
  bool is_capturing(Stream s);

 private:
  std::mutex lock_;
  std::vector<Event> free_events_;
};

using DeviceAllocator = CachingAllocator<RuntimeDriver>;
using HostAllocator = PinnedAllocator<HostDriver>;

/// Returns a device's allocator, created on first use with the settings of VESTA_CUDA_ALLOC_CONF.
VESTA_API DeviceAllocator& allocator(int device);
/// Lets device `reader` use the memory of `owner` directly where the hardware can, so that copies between them do not
/// pass through the host; does nothing where the driver refuses. Asks the driver once for each pair.
void allow_peer(int reader, int owner);
/// Returns whether a device's allocator was made.
bool has_allocator(int device);
/// Returns the cache of page-locked host memory.
VESTA_API HostAllocator& pinned_allocator();
/// Allocates for the current stream of `device`.
Memory allocate_memory(size_t nbytes, int device);
/// Allocates page-locked host memory.
VESTA_API Memory allocate_pinned(size_t nbytes);
/// Records that a device uses page-locked memory: it is reused only after what is queued on `stream` now.
void record_pinned_use(const void* p, Stream stream);
/// Returns whether an address lies in page-locked memory of pinned_allocator().
VESTA_API bool is_pinned(const void* p);

}  // namespace vesta::cuda
