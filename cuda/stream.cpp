#include <vesta/cuda/stream.h>

#include <array>
#include <atomic>
#include <bitset>
#include <mutex>

#include <vesta/core/base/waiting.h>
#include <vesta/core/base/warning.h>
#include <vesta/cuda/device_wait.h>
#include <vesta/cuda/fault.h>

namespace vesta::cuda {
namespace {

constexpr int kFirstOwn = 1 + 2 * kPoolStreams;
constexpr int kStreams = kFirstOwn + kOwnStreams;

/// A device's streams: created on first use and kept forever.
struct Pool {
  std::mutex lock;
  std::array<std::atomic<StreamHandle>, kStreams> handles{};
  std::array<std::atomic<unsigned>, 2> next{};
  std::bitset<kOwnStreams> taken;  // under the lock
};
Pool& pool(int device) {
  static std::array<Pool, kMaxDevices>* pools = new std::array<Pool, kMaxDevices>;  // never destroyed: see Machine
  return (*pools)[size_t(device)];
}

thread_local std::array<int16_t, kMaxDevices> current_numbers{};

}  // namespace

StreamHandle Stream::handle() const {
  if (number_ == 0) return nullptr;
  Pool& p = pool(device_);
  auto& slot = p.handles[size_t(number_)];
  if (StreamHandle h = slot.load(std::memory_order_acquire)) return h;
  std::lock_guard guard(p.lock);
  if (StreamHandle h = slot.load(std::memory_order_relaxed)) return h;
  DeviceGuard device(device_);
  StreamHandle h = nullptr;
  VESTA_CUDA_CHECK(rt::stream_create(&h, priority()));
  slot.store(h, std::memory_order_release);
  return h;
}

bool Stream::is_captured() const {
  DeviceGuard guard(device_);
  bool yes = false;
  VESTA_CUDA_CHECK(rt::stream_is_capturing(handle(), &yes));
  return yes;
}

bool Stream::query() const {
  DeviceGuard guard(device_);
  rt::Status s = rt::stream_query(handle());
  if (s == rt::Status::not_ready) return false;
  VESTA_CUDA_CHECK(s);
  return true;
}

void Stream::synchronize() const {
  DeviceGuard guard(device_);
  {
    Waiting open;
    VESTA_CUDA_CHECK(wait_for_device(device_, [h = handle()] { return rt::stream_synchronize(h); }));
  }
  raise_fault(device_);
}

void Stream::wait(Stream other) const {
  if (*this == other) return;
  Event e;
  e.record(other);
  e.block(*this);
}

Stream checked_stream(int device, uint32_t number) {
  VESTA_CHECK(device >= 0 && device < visible_devices(), device, "Stream: expected a device number from 0 to ",
              visible_devices() - 1, ", got ", device, ".");
  VESTA_CHECK(number < kStreams, value, "Stream: expected a stream number from 0 to ", kStreams - 1, ", got ",
              uint64_t(number), ".");
  return Stream(device, int(number));
}

Stream stream_from_pool(int device, bool high_priority) {
  VESTA_CHECK(device >= 0 && device < visible_devices(), device, "Stream: expected a device number from 0 to ",
              visible_devices() - 1, ", got ", device, ".");
  const unsigned turn = pool(device).next[high_priority]++ % kPoolStreams;
  return Stream(device, 1 + int(turn) + (high_priority ? kPoolStreams : 0));
}

Stream take_own_stream(int device) {
  Pool& p = pool(device);
  std::lock_guard guard(p.lock);
  for (size_t i = 0; i < size_t(kOwnStreams); ++i) {
    if (p.taken[i]) continue;
    p.taken.set(i);
    return Stream(device, kFirstOwn + int(i));
  }
  fail(Cause::runtime, "Stream: cuda:", device, " has given all ", kOwnStreams,
       " streams of one owner away. Destroy process groups that are not used.");
}

void return_own_stream(Stream s) {
  Pool& p = pool(s.device());
  std::lock_guard guard(p.lock);
  p.taken.reset(size_t(s.number() - kFirstOwn));
}

Stream current_stream(int device) { return Stream(device, current_numbers[size_t(device)]); }
void set_current_stream(Stream s) { current_numbers[size_t(s.device())] = int16_t(s.number()); }

Event::~Event() {
  if (handle_) VESTA_CUDA_IGNORE(rt::event_destroy(handle_));
}

void Event::record(Stream stream) {
  DeviceGuard guard(stream.device());
  VESTA_CHECK(!handle_ || device_ == stream.device(), runtime, "Event.record: expected a stream of cuda:", device_,
              ", where the event was first recorded, got one of cuda:", stream.device(), ".");
  if (!handle_) VESTA_CUDA_CHECK(rt::event_create(&handle_, timing_));
  device_ = stream.device();
  VESTA_CUDA_CHECK(rt::event_record(handle_, stream.handle()));
}

void Event::block(Stream stream) const {
  if (!handle_) return;
  DeviceGuard guard(stream.device());
  VESTA_CUDA_CHECK(rt::stream_wait_event(stream.handle(), handle_));
}

bool Event::query() const {
  if (!handle_) return true;
  rt::Status s = rt::event_query(handle_);
  if (s == rt::Status::not_ready) return false;
  VESTA_CUDA_CHECK(s);
  return true;
}

void Event::synchronize() const {
  if (!handle_) return;
  {
    Waiting open;
    VESTA_CUDA_CHECK(wait_for_device(device_, [h = handle_] { return rt::event_synchronize(h); }));
  }
  raise_fault(device_);
}

double Event::elapsed(const Event& end) const {
  VESTA_CHECK(timing_ && end.timing_, runtime, "Event.elapsed_time: expected events made with enable_timing=True.");
  VESTA_CHECK(handle_ && end.handle_, runtime, "Event.elapsed_time: expected two recorded events.");
  float ms = 0;
  rt::Status s = rt::event_elapsed(&ms, handle_, end.handle_);
  VESTA_CHECK(s != rt::Status::not_ready, runtime,
              "Event.elapsed_time: expected completed events. Call synchronize() on the later one first.");
  VESTA_CUDA_CHECK(s);
  return double(ms);
}

namespace { std::atomic<SyncDebug> sync_debug_mode{SyncDebug::off}; }

SyncDebug sync_debug() { return sync_debug_mode; }
void set_sync_debug(SyncDebug mode) { sync_debug_mode = mode; }

void before_hidden_wait() {
  const SyncDebug mode = sync_debug_mode.load(std::memory_order_relaxed);
  if (mode == SyncDebug::off) [[likely]]
    return;
  static constexpr const char* kText = "called a synchronizing CUDA operation";
  VESTA_CHECK(mode != SyncDebug::error, runtime, kText);
  warn(kText);
}

void synchronize_device(int device) {
  DeviceGuard guard(device);
  {
    Waiting open;
    VESTA_CUDA_CHECK(wait_for_device(device, [] { return rt::device_synchronize(); }));
  }
  raise_fault(device);
}

}  // namespace vesta::cuda
