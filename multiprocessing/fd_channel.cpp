#include <vesta/multiprocessing/fd_channel.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <vesta/multiprocessing/shared_memory.h>

namespace vesta::shared {
namespace {

constexpr Milliseconds kRetry{2};  // the kernel has no event for "fewer descriptors in flight"

/// The head of a packet. The bytes follow, or lie in shared memory, to which the last descriptor leads.
struct Head {
  uint64_t bytes = 0;
  uint32_t descriptors = 0;
  uint32_t magic = kMagic;
  Handle block;  // bytes == 0: none

  static constexpr uint32_t kMagic = 0x56666464;
};

[[noreturn]] void fail_closed(const char* op) {
  throw ChannelClosed(Cause::runtime, text(op, ": the other side of the channel is gone."));
}

bool is_gone(int code) { return code == EPIPE || code == ECONNRESET || code == ENOTCONN; }

}  // namespace

std::pair<FdChannel, FdChannel> FdChannel::make_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) fail_with_errno("FdChannel", "socketpair", errno);
  Descriptor a(ends[0]), b(ends[1]);
  return {FdChannel(std::move(a)), FdChannel(std::move(b))};
}

FdChannel::FdChannel(Descriptor socket) : socket_(std::move(socket)) {
  int domain = 0, type = 0;
  socklen_t size = sizeof domain;
  const bool ok = getsockopt(fd(), SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX &&
                  getsockopt(fd(), SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
  VESTA_CHECK(ok, value, "FdChannel: expected a Unix socket of packets, got descriptor ", fd(), " of another kind.");
}

bool FdChannel::wait_for(short events, Clock::time_point deadline) const {
  VESTA_CHECK(socket_, value, "FdChannel: expected an open channel, got a closed one.");
  while (true) {
    const auto slice = std::min<Clock::duration>(kSlice, deadline - Clock::now());
    const auto ms = std::chrono::ceil<Milliseconds>(slice).count();
    pollfd p{fd(), events, 0};
    const int ready = ::poll(&p, 1, int(std::max<int64_t>(ms, 0)));
    if (ready > 0) return true;  // POLLHUP and POLLERR too: the next call reports what happened
    if (ready < 0 && errno != EINTR) fail_with_errno("FdChannel", "poll", errno);
    check_interrupt();
    if (Clock::now() >= deadline) return false;
  }
}

bool FdChannel::poll(Clock::time_point deadline) const { return wait_for(POLLIN, deadline); }

bool FdChannel::send(std::span<const char> bytes, std::span<const int> descriptors, Clock::time_point deadline) {
  Head head;
  head.bytes = bytes.size(), head.descriptors = uint32_t(descriptors.size());
  const std::span<const char> written(reinterpret_cast<const char*>(&head), sizeof head);
  VESTA_CHECK(descriptors.size() < kMaxDescriptors, value, "FdChannel: expected less than ", kMaxDescriptors,
              " descriptors, got ", descriptors.size(), ".");
  if (bytes.size() <= kMaxPacket) return send_packet(written, bytes, descriptors, deadline);
  const StoragePtr block = allocate_shared(bytes.size());
  std::memcpy(block->data(), bytes.data(), bytes.size());
  Lease lease;
  lease.add(*block, head.block);
  std::vector<int> all(descriptors.begin(), descriptors.end());
  all.push_back(lease.descriptors()[0]);
  return send_packet(written, {}, all, deadline);
}

bool FdChannel::send_packet(std::span<const char> head, std::span<const char> body, std::span<const int> descriptors,
                            Clock::time_point deadline) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  iovec parts[2] = {{const_cast<char*>(head.data()), head.size()}, {const_cast<char*>(body.data()), body.size()}};
  msghdr packet{};
  packet.msg_iov = parts, packet.msg_iovlen = 2;
  if (!descriptors.empty()) {
    packet.msg_control = control, packet.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* c = CMSG_FIRSTHDR(&packet);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size() * sizeof(int));
  }
  while (true) {
    VESTA_CHECK(socket_, value, "FdChannel: expected an open channel, got a closed one.");
    if (sendmsg(fd(), &packet, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return true;
    if (errno == EINTR) continue;
    if (is_gone(errno)) fail_closed("send");
    // ETOOMANYREFS: this user has as many descriptors in flight as ulimit -n allows; their number falls as messages
    // are read.
    const bool full = errno == EAGAIN || errno == EWOULDBLOCK, crowded = errno == ETOOMANYREFS;
    if (!full && !crowded) fail_with_errno("send", "sendmsg", errno);
    if (crowded) {
      usleep(useconds_t(std::chrono::microseconds(kRetry).count()));
      check_interrupt();
      if (Clock::now() >= deadline) return false;
    } else if (!wait_for(POLLOUT, deadline)) {
      return false;
    }
  }
}

namespace {

/// Takes the descriptors out of a received packet.
void take_descriptors(msghdr& packet, std::vector<Descriptor>& to) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&packet); c; c = CMSG_NXTHDR(&packet, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      Descriptor owned(fd);
      to.push_back(std::move(owned));
    }
  }
}

/// Fills in a message from a packet; the message has its descriptors already.
void unpack(const char* data, size_t size, Message& message) {
  Head head;
  if (size >= sizeof head) std::memcpy(&head, data, sizeof head);
  const bool in_block = head.block.bytes > 0;
  const bool fits = size >= sizeof head && head.magic == Head::kMagic &&
                    (in_block ? head.block.nbytes >= head.bytes : size - sizeof head == head.bytes);
  VESTA_CHECK(fits, runtime, "receive: expected a message of a channel, got a packet of ", size, " other bytes.");
  if (const size_t expected = head.descriptors + in_block; message.descriptors.size() != expected) {
    const size_t arrived = message.descriptors.size();
    message.descriptors.clear();
    fail(Cause::runtime, "receive: expected ", expected, " descriptors with the message, got ", arrived,
         ": this process has too few left. Raise the limit with ulimit -n.");
  }
  if (!in_block) {
    message.bytes.assign(data + sizeof head, head.bytes);
    return;
  }
  const StoragePtr block = attach(message.descriptors.back().get(), head.block);
  message.descriptors.pop_back();
  try {
    message.bytes.assign(static_cast<const char*>(block->data()), head.bytes);
  } catch (const std::exception&) {
    fail(Cause::memory, "receive: expected room for a message of ", head.bytes, " bytes, got none.");
  }
}

}  // namespace

Arrival FdChannel::receive(Message& message, Clock::time_point deadline) {
  message.bytes.clear();
  message.descriptors.clear();
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  char data[sizeof(Head) + kMaxPacket];
  while (true) {
    VESTA_CHECK(socket_, value, "FdChannel: expected an open channel, got a closed one.");
    iovec part{data, sizeof data};
    msghdr packet{};
    packet.msg_iov = &part, packet.msg_iovlen = 1;
    packet.msg_control = control, packet.msg_controllen = sizeof control;
    const ssize_t size = recvmsg(fd(), &packet, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size > 0) {
      take_descriptors(packet, message.descriptors);
      unpack(data, size_t(size), message);
      return Arrival::message;
    }
    if (size == 0 || is_gone(errno)) return Arrival::closed;
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) fail_with_errno("receive", "recvmsg", errno);
    if (!wait_for(POLLIN, deadline)) return Arrival::timeout;
  }
}

}  // namespace vesta::shared
