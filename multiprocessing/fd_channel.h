// Messages with file descriptors between processes, over a Unix socket. Every wait has an end: a deadline, the death of
// the other side (seen at once), or the interrupt check.
#pragma once
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vesta/core/base/error.h>
#include <vesta/multiprocessing/descriptor.h>

namespace vesta::shared {

using SteadyClock = std::chrono::steady_clock;

/// Says how long to wait, and what to ask meanwhile.
struct Wait {
  std::optional<SteadyClock::time_point> deadline;  // none: as long as the other side lives
  void (*check)() = nullptr;  // throws to end the wait; called every 50 ms and after signals
};

/// Is a message: bytes, and descriptors that belong to it.
struct Message {
  std::string bytes;
  std::vector<Descriptor> descriptors;
};

/// Tells how a wait ended.
enum class Arrival : uint8_t { message, timeout, closed };

/// Is thrown where the other side is gone.
class VESTA_API ChannelClosed : public Error {
 public:
  using Error::Error;
};

/// Is one end of a connection. One thread at a time may send and one receive.
class VESTA_API FdChannel {
 public:
  /// Is the most descriptors that one message can carry (the kernel's SCM_MAX_FD).
  static constexpr size_t kMaxDescriptors = 253;

  /// Makes two ends that are connected to each other; exec closes them.
  static std::pair<FdChannel, FdChannel> make_pair();
  /// Takes over a connected Unix stream socket. Error(value) for anything else.
  explicit FdChannel(Descriptor socket);

  int fd() const { return socket_.get(); }
  bool closed() const { return !socket_; }
  /// Closes this end; the other one sees it when it has read what was sent.
  void close() noexcept { socket_.reset(); }
  /// Gives the socket away and leaves the channel closed.
  Descriptor detach() { return std::move(socket_); }

  /// Sends a message; the descriptors are duplicated into it and stay with the caller. False where the deadline came
  /// before the first byte was sent. ChannelClosed where the other side is gone. After another error, or a deadline in
  /// the middle of a message (Error(runtime)), the channel is closed: what follows could not be read.
  bool send(std::span<const char> bytes, std::span<const int> descriptors, const Wait& wait);
  /// Receives the next message. A message that was cut off by its sender's death is ChannelClosed.
  Arrival receive(Message& message, const Wait& wait);
  /// Waits until there is something to receive, the end included; false at the deadline.
  bool poll(const Wait& wait) const;

 private:
  bool wait_for(short events, const Wait& wait) const;
  size_t read_some(char* to, size_t n, std::vector<Descriptor>* descriptors, const Wait& wait, bool started,
                   Arrival& arrival);
  void read_all(char* to, size_t n, const Wait& wait);
  Descriptor socket_;
};

}  // namespace vesta::shared
