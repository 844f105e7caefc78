// Streams: queues of work on a device. Every op runs on the current stream of its tensors' device.
#pragma once
#include <vesta/cuda/device.h>

namespace vesta::cuda {

inline constexpr int kPoolStreams = 32;  // of each priority, per device; given out in turn
inline constexpr int kOwnStreams = 256;  // per device, each with one owner

/// A stream, as a value as cheap as an int. Number 0 is a device's default stream, which all threads share at first;
/// the rest come from pools of 32 of normal and 32 of high priority, created on first use, and from those that have
/// one owner.
class VESTA_API Stream {
 public:
  Stream() = default;
  Stream(int device, int number) : device_(int8_t(device)), number_(int16_t(number)) {}
  int device() const { return device_; }
  int number() const { return number_; }
  /// Returns CUDA's handle; null for the default stream.
  StreamHandle handle() const;
  /// Returns whether all work queued so far is done.
  bool query() const;
  /// Returns whether a graph is being captured from it.
  bool is_captured() const;
  /// Waits until all work queued so far is done. Raises what a kernel reported.
  void synchronize() const;
  /// Makes later work of this stream run after what is queued on `other` now. The host does not wait.
  void wait(Stream other) const;
  int priority() const { return number_ > kPoolStreams && number_ <= 2 * kPoolStreams ? -1 : 0; }
  friend bool operator==(Stream, Stream) = default;

 private:
  int8_t device_ = 0;
  int16_t number_ = 0;
};

/// Returns the stream of this number; Error(value) for a device or a number that does not exist.
Stream checked_stream(int device, uint32_t number);
/// Takes the next stream of a device's pool.
VESTA_API Stream stream_from_pool(int device, bool high_priority = false);
/// Takes a stream for one owner only; Error(runtime) if all kOwnStreams are taken.
VESTA_API Stream take_own_stream(int device);
/// Gives such a stream back, for the next owner.
VESTA_API void return_own_stream(Stream stream);
/// Returns the calling thread's current stream of a device.
VESTA_API Stream current_stream(int device);
/// Makes a stream current for this thread on its device. Costs no CUDA call.
VESTA_API void set_current_stream(Stream stream);

/// A guard that makes a stream and its device current while it lives.
class StreamGuard {
 public:
  explicit StreamGuard(Stream s) : device_(s.device()), before_(current_stream(s.device())) { set_current_stream(s); }
  ~StreamGuard() { set_current_stream(before_); }
  StreamGuard(const StreamGuard&) = delete;

 private:
  DeviceGuard device_;
  Stream before_;
};

/// A mark in a stream: what was queued before `record` is done when the event is. Move-only; the CUDA event is created
/// at the first `record`.
class VESTA_API Event {
 public:
  explicit Event(bool timing = false) : timing_(timing) {}
  ~Event();
  Event(Event&& e) noexcept : handle_(e.handle_), device_(e.device_), timing_(e.timing_) { e.handle_ = nullptr; }
  Event& operator=(Event&& e) noexcept {
    std::swap(handle_, e.handle_), std::swap(device_, e.device_), std::swap(timing_, e.timing_);
    return *this;
  }
  void record(Stream stream);
  /// Makes later work of `stream` run after the recorded mark. An event that was never recorded delays nothing.
  void block(Stream stream) const;
  bool query() const;
  void synchronize() const;
  /// Returns the milliseconds from this event to `end`. Error(runtime): made without timing, or not yet complete.
  double elapsed(const Event& end) const;
  EventHandle handle() const { return handle_; }
  int device() const { return device_; }

 private:
  EventHandle handle_ = nullptr;
  int device_ = -1;
  bool timing_;
};

/// The response to an op that makes the host wait for the device: nothing, a warning, or Error(runtime).
enum class SyncDebug : int { off, warn, error };
SyncDebug sync_debug();
void set_sync_debug(SyncDebug mode);
/// Warns or raises, as set, before an op waits. Functions whose purpose is to wait (synchronize()) do not call this.
void before_hidden_wait();

/// Waits for everything queued on a device, and raises what a kernel reported.
VESTA_API void synchronize_device(int device);

}  // namespace vesta::cuda
