// Messages with file descriptors between processes, over a Unix socket. Every wait ends: at a deadline, at the death
// of the other side (seen at once), or by the interrupt check.
//
// Note [Whole messages]
// A message is one packet: it is sent whole or not at all, and one of the readers gets all of it. So a process that is
// killed while it sends or receives leaves nothing half done, and neither readers nor writers need a lock that a
// process could hold when it dies. What does not fit in a packet lies in shared memory, and the packet says where.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vesta/core/base/error.h>
#include <vesta/multiprocessing/deadline.h>
#include <vesta/multiprocessing/descriptor.h>

namespace vesta::shared {

/// A message: bytes, and the descriptors that belong to it.
struct Message {
  std::string bytes;
  std::vector<Descriptor> descriptors;
};

/// The outcome of a wait.
enum class Arrival : uint8_t { message, timeout, closed };

/// The error that the other side is gone.
class VESTA_API ChannelClosed : public Error {
 public:
  using Error::Error;
};

/// One end of a connection. Any number of threads and processes may send and receive.
class VESTA_API FdChannel {
 public:
  /// The most descriptors that one message can carry (the kernel's SCM_MAX_FD).
  static constexpr size_t kMaxDescriptors = 253;
  /// The longest message that is a packet by itself.
  static constexpr size_t kMaxPacket = 32 << 10;

  /// Makes two ends that are connected to each other; exec closes them.
  static std::pair<FdChannel, FdChannel> make_pair();
  /// Takes over a connected Unix socket of packets (SOCK_SEQPACKET). Error(value) for anything else.
  explicit FdChannel(Descriptor socket);

  int fd() const { return socket_.get(); }
  bool closed() const { return !socket_; }
  /// Closes this end; the other end sees it when it has read everything sent.
  void close() noexcept { socket_.reset(); }
  /// Returns the socket and leaves the channel closed.
  Descriptor detach() { return std::move(socket_); }

  /// Sends a message; the descriptors are duplicated into it and stay with the caller. Returns false at the deadline.
  /// ChannelClosed if the other side is gone, Error(memory) if there is no room for a long message.
  bool send(std::span<const char> bytes, std::span<const int> descriptors, Clock::time_point deadline);
  /// Receives the next message. Error(runtime) if this process has no descriptor left for it; the message is lost
  /// then.
  Arrival receive(Message& message, Clock::time_point deadline);
  /// Waits until there is something to receive, or the other side has closed; returns false at the deadline.
  bool poll(Clock::time_point deadline) const;

 private:
  bool wait_for(short events, Clock::time_point deadline) const;
  bool send_packet(std::span<const char> head, std::span<const char> body, std::span<const int> descriptors,
                   Clock::time_point deadline);
  Descriptor socket_;
};

}  // namespace vesta::shared
