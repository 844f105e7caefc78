// The interface of a device for the allocators: memory, address ranges and events. The CUDA runtime implements it, and
// so does the simulated device of the tests, which can stall its streams and fail any call.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace vesta::cuda {

/// A device's memory, in bytes.
struct MemInfo {
  size_t free = 0;
  size_t total = 0;
};

/// A handle of a stream or an event: a pointer or a number that can be copied and compared.
template <class H>
concept DeviceHandle = std::is_trivially_copyable_v<H> && std::equality_comparable<H> && sizeof(H) <= 8 &&
                       (std::is_pointer_v<H> || std::is_integral_v<H>);

/// A driver that orders host and streams. A call throws Error if the device refuses.
///
/// `event_get` takes an event from the driver's pool and `event_put` returns it, at any time: a wait that is already
/// queued keeps what it waits for. `event_record(e, s)` marks the work queued on s so far, `event_query(e)` tells
/// whether that work is done, `event_sync(e)` blocks the host until it is, `stream_wait(s, e)` makes work queued on s
/// from now on run after it. `is_capturing(s)` tells whether s records a graph instead of running.
template <class D>
concept EventDriver = DeviceHandle<typename D::Stream> && DeviceHandle<typename D::Event> &&
                      requires(D d, typename D::Stream s, typename D::Event e) {
                        { d.event_get() } -> std::same_as<typename D::Event>;
                        d.event_put(e);
                        d.event_record(e, s);
                        { d.event_query(e) } -> std::same_as<bool>;
                        d.event_sync(e);
                        d.stream_wait(s, e);
                        { d.is_capturing(s) } -> std::same_as<bool>;
                      };

/// A driver that allocates device memory. Lack of memory is a result (nullptr, false); any other failure is an Error.
///
/// `malloc_` returns at least 512-byte aligned memory. `va_reserve(n)` reserves addresses without memory (nullptr if
/// the device cannot); `va_map(base, offset, n)` maps memory to a part of them and `va_unmap` unmaps it, for exactly a
/// part that was mapped; `va_release(base, n)` frees the addresses. None of the calls that free memory needs to wait
/// for the device: the allocator has waited. `now` counts microseconds and never fails.
template <class D>
concept MemDriver = EventDriver<D> && requires(D d, void* p, size_t n) {
  { d.malloc_(n) } -> std::same_as<void*>;
  d.free_(p);
  { d.va_reserve(n) } -> std::same_as<void*>;
  { d.va_map(p, n, n) } -> std::same_as<bool>;
  d.va_unmap(p, n, n);
  d.va_release(p, n);
  { d.mem_info() } -> std::same_as<MemInfo>;
  { d.now() } -> std::same_as<int64_t>;
};

/// A driver that allocates page-locked host memory (nullptr if there is none) and orders its uses.
template <class D>
concept HostMemDriver = EventDriver<D> && requires(D d, void* p, size_t n) {
  { d.host_malloc(n) } -> std::same_as<void*>;
  d.host_free(p);
};

/// Returns a handle as a number, for tables and reports.
template <DeviceHandle H>
uint64_t handle_number(H h) {
  if constexpr (std::is_pointer_v<H>) return reinterpret_cast<uintptr_t>(h);
  else return uint64_t(h);
}

}  // namespace vesta::cuda
