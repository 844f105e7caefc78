#include <vesta/cuda/allocator.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>

#include <vesta/cuda/device_wait.h>
#include <vesta/cuda/lib/channels_last.h>

namespace vesta::cuda {

// ---- the driver ----

void* RuntimeDriver::malloc_(size_t n) {
  DeviceGuard guard(device_);
  void* p = nullptr;
  const rt::Status s = rt::malloc(&p, n);
  if (s == rt::Status::out_of_memory) return nullptr;
  VESTA_CUDA_CHECK(s);
  return p;
}
void RuntimeDriver::free_(void* p) {
  DeviceGuard guard(device_);
  VESTA_CUDA_CHECK(rt::free(p));
}
void* RuntimeDriver::va_reserve(size_t n) {
  DeviceGuard guard(device_);
  void* p = nullptr;
  return rt::va_reserve(&p, n) == rt::Status::success ? p : nullptr;
}
bool RuntimeDriver::va_map(void* base, size_t offset, size_t n) {
  DeviceGuard guard(device_);
  const rt::Status s = rt::va_map(device_, static_cast<char*>(base) + offset, n);
  if (s == rt::Status::out_of_memory) return false;
  VESTA_CUDA_CHECK(s);
  std::lock_guard lock(lock_);
  mapped_[static_cast<char*>(base) + offset] = n;
  for (int peer : peers_) VESTA_CUDA_CHECK(rt::va_allow(peer, static_cast<char*>(base) + offset, n));
  return true;
}
void RuntimeDriver::allow(int peer) {
  DeviceGuard guard(device_);
  std::lock_guard lock(lock_);
  for (auto [at, n] : mapped_) VESTA_CUDA_CHECK(rt::va_allow(peer, at, n));
  peers_.push_back(peer);
}
void RuntimeDriver::va_unmap(void* base, size_t offset, size_t n) {
  DeviceGuard guard(device_);
  {
    std::lock_guard lock(lock_);
    mapped_.erase(static_cast<char*>(base) + offset);
  }
  VESTA_CUDA_CHECK(rt::va_unmap(static_cast<char*>(base) + offset, n));
}
void RuntimeDriver::va_release(void* base, size_t n) {
  DeviceGuard guard(device_);
  VESTA_CUDA_CHECK(rt::va_release(base, n));
}
MemInfo RuntimeDriver::mem_info() {
  DeviceGuard guard(device_);
  MemInfo m{};
  VESTA_CUDA_CHECK(rt::memory_info(&m.free, &m.total));
  return m;
}
int64_t RuntimeDriver::now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
auto RuntimeDriver::event_get() -> Event {
  {
    std::lock_guard guard(lock_);
    if (!free_events_.empty()) {
      Event e = free_events_.back();
      free_events_.pop_back();
      return e;
    }
  }
  DeviceGuard guard(device_);
  Event e = nullptr;
  VESTA_CUDA_CHECK(rt::event_create(&e, false));
  return e;
}
void RuntimeDriver::event_put(Event e) {
  std::lock_guard guard(lock_);
  free_events_.push_back(e);
}
void RuntimeDriver::event_record(Event e, Stream s) {
  DeviceGuard guard(device_);
  VESTA_CUDA_CHECK(rt::event_record(e, s));
}
bool RuntimeDriver::event_query(Event e) {
  const rt::Status s = rt::event_query(e);
  if (s == rt::Status::not_ready) return false;
  VESTA_CUDA_CHECK(s);
  return true;
}
void RuntimeDriver::event_sync(Event e) {
  VESTA_CUDA_CHECK(wait_for_device(device_, [e] { return rt::event_synchronize(e); }));
}
void RuntimeDriver::stream_wait(Stream s, Event e) {
  DeviceGuard guard(device_);
  VESTA_CUDA_CHECK(rt::stream_wait_event(s, e));
}
bool RuntimeDriver::is_capturing(Stream s) {
  bool yes = false;
  VESTA_CUDA_CHECK(rt::stream_is_capturing(s, &yes));
  return yes;
}

void* HostDriver::host_malloc(size_t n) {
  DeviceGuard guard(current_device());  // any context will do: the memory is usable by every device
  void* p = nullptr;
  const rt::Status s = rt::host_malloc(&p, n);
  if (s == rt::Status::out_of_memory) return nullptr;
  VESTA_CUDA_CHECK(s);
  return p;
}
void HostDriver::host_free(void* p) { VESTA_CUDA_CHECK(rt::host_free(p)); }
auto HostDriver::event_get() -> Event {
  std::lock_guard guard(lock_);
  if (free_events_.empty()) return new cuda::Event;
  Event e = free_events_.back();
  free_events_.pop_back();
  return e;
}
void HostDriver::event_put(Event e) {
  std::lock_guard guard(lock_);
  free_events_.push_back(e);
}
void HostDriver::event_record(Event e, Stream s) {
  const cuda::Stream stream = stream_of(s);
  if (e->handle() && e->device() != stream.device()) *e = cuda::Event();  // an event belongs to a device
  e->record(stream);
}
bool HostDriver::event_query(Event e) { return e->query(); }
void HostDriver::event_sync(Event e) {
  VESTA_CUDA_CHECK(wait_for_device(e->device(), [h = e->handle()] { return rt::event_synchronize(h); }));
}
void HostDriver::stream_wait(Stream s, Event e) { e->block(stream_of(s)); }
bool HostDriver::is_capturing(Stream s) {
  bool yes = false;
  DeviceGuard guard(stream_of(s).device());
  VESTA_CUDA_CHECK(rt::stream_is_capturing(stream_of(s).handle(), &yes));
  return yes;
}

// ---- the allocators ----

namespace {

Options options() {
  const char* text = std::getenv("VESTA_CUDA_ALLOC_CONF");
  return text ? parse_options(text) : Options{};
}

/// A device's driver and allocator. Never destroyed: tensors of static lifetime may outlive everything else.
struct Owned {
  RuntimeDriver driver;
  DeviceAllocator allocator;
  explicit Owned(int device) : driver(device), allocator(device, driver, options()) {}
};
std::array<std::atomic<Owned*>, kMaxDevices> all{};

}  // namespace

bool has_allocator(int device) { return all[size_t(device)].load(std::memory_order_acquire) != nullptr; }

DeviceAllocator& allocator(int device) {
  static std::mutex lock;
  VESTA_CHECK(visible_devices() > 0, device, why_no_device());
  VESTA_CHECK(device >= 0 && device < visible_devices(), device, "cuda: expected a device number below ",
              visible_devices(), ", got ", device, ".");
  auto& slot = all[size_t(device)];
  if (Owned* o = slot.load(std::memory_order_acquire)) [[likely]]
    return o->allocator;
  std::lock_guard guard(lock);
  if (!slot.load(std::memory_order_relaxed)) slot.store(new Owned(device), std::memory_order_release);
  return slot.load(std::memory_order_relaxed)->allocator;
}

void allow_peer(int reader, int owner) {
  static std::array<std::array<std::once_flag, kMaxDevices>, kMaxDevices> asked;
  if (reader == owner) return;
  std::call_once(asked[size_t(reader)][size_t(owner)], [&] {
    bool yes = false;
    VESTA_CUDA_CHECK(rt::can_access_peer(reader, owner, &yes));
    if (!yes) return;
    allocator(owner);  // makes the driver
    DeviceGuard guard(reader);
    // Refused on a few machines (a partition of a GPU, a virtual machine, more peers than the hardware has room for):
    // copies pass through the host then. What is wrong besides shows at the next call.
    if (rt::enable_peer_access(owner) != rt::Status::success) return;
    all[size_t(owner)].load(std::memory_order_acquire)->driver.allow(reader);
  });
}

HostAllocator& pinned_allocator() {
  static auto* driver = new HostDriver;
  static auto* all = new HostAllocator(*driver);
  return *all;
}

namespace {

template <size_t device>
void give_back(void* block) {
  auto* b = static_cast<DeviceAllocator::Block*>(block);
  if (b->watched) [[unlikely]] {
    forget_layouts(b);
    b->watched = false;
  }
  allocator(int(device)).free(b);
}
using Deleter = void (*)(void*);
/// A table with a give_back function per device: a Storage's deleter gets only the block.
template <size_t... I>
constexpr std::array<Deleter, sizeof...(I)> list_deleters(std::index_sequence<I...>) {
  return {&give_back<I>...};
}
constexpr auto deleters = list_deleters(std::make_index_sequence<kMaxDevices>{});

}  // namespace

Memory allocate_memory(size_t nbytes, int device) {
  auto* block = allocator(device).allocate(nbytes, current_stream(device).handle());
  if (!block) return {};
  return {block->data, block, deleters[size_t(device)]};
}

Memory allocate_pinned(size_t nbytes) {
  auto* block = pinned_allocator().allocate(nbytes);
  if (!block) return {};
  return {block->data, block, [](void* b) { pinned_allocator().free(static_cast<HostAllocator::Block*>(b)); }};
}

bool is_pinned(const void* p) { return pinned_allocator().find(p) != nullptr; }

void record_pinned_use(const void* p, Stream stream) {
  auto* block = pinned_allocator().find(p);
  if (block) pinned_allocator().record_use(block, HostDriver::number_of(stream));
}

}  // namespace vesta::cuda
