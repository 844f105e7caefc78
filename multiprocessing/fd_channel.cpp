// A message is a head (length, number of descriptors), sent with the descriptors, and then its bytes. Descriptors stick
// to the head's first byte: a read of a stream socket never goes past a byte that has some.
#include <vesta/multiprocessing/fd_channel.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace vesta::shared {
namespace {

constexpr std::chrono::milliseconds kSlice{50};
constexpr std::chrono::milliseconds kRetry{2};  // the kernel has no event for "fewer descriptors on their way"

struct Head {
  uint64_t bytes;
  uint32_t descriptors;
  uint32_t magic;
};
constexpr uint32_t kMagic = 0x56666463;

[[noreturn]] void fail_closed(const char* op) {
  throw ChannelClosed(Cause::runtime, text(op, ": the other side of the channel is gone."));
}

bool is_gone(int code) { return code == EPIPE || code == ECONNRESET || code == ENOTCONN; }

SteadyClock::duration left(const Wait& wait) {
  if (!wait.deadline) return kSlice;
  return std::min<SteadyClock::duration>(kSlice, *wait.deadline - SteadyClock::now());
}

}  // namespace

std::pair<FdChannel, FdChannel> FdChannel::make_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) fail_with_errno("FdChannel", "socketpair", errno);
  Descriptor a(ends[0]), b(ends[1]);
  return {FdChannel(std::move(a)), FdChannel(std::move(b))};
}

FdChannel::FdChannel(Descriptor socket) : socket_(std::move(socket)) {
  int domain = 0, type = 0;
  socklen_t size = sizeof domain;
  const bool ok = getsockopt(fd(), SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX &&
                  getsockopt(fd(), SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
  VESTA_CHECK(ok, value, "FdChannel: expected a Unix stream socket, got descriptor ", fd(), " of another kind.");
}

bool FdChannel::wait_for(short events, const Wait& wait) const {
  VESTA_CHECK(socket_, value, "FdChannel: expected an open channel, got a closed one.");
  while (true) {
    const auto slice = left(wait);
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(slice).count();
    pollfd p{fd(), events, 0};
    const int ready = ::poll(&p, 1, int(std::max<int64_t>(ms, 0)));
    if (ready > 0) return true;  // POLLHUP and POLLERR too: the call that follows says what it is
    if (ready < 0 && errno != EINTR) fail_with_errno("FdChannel", "poll", errno);
    if (wait.check) wait.check();
    if (wait.deadline && SteadyClock::now() >= *wait.deadline) return false;
  }
}

bool FdChannel::poll(const Wait& wait) const { return wait_for(POLLIN, wait); }

bool FdChannel::send(std::span<const char> bytes, std::span<const int> descriptors, const Wait& wait) {
  VESTA_CHECK(descriptors.size() <= kMaxDescriptors, value, "FdChannel: expected at most ", kMaxDescriptors,
              " descriptors, got ", descriptors.size(), ".");
  Head head{bytes.size(), uint32_t(descriptors.size()), kMagic};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  size_t done = 0;
  const size_t total = sizeof head + bytes.size();
  try {
    while (done < total) {
      iovec parts[2];
      int n = 0;
      if (done < sizeof head) parts[n++] = {reinterpret_cast<char*>(&head) + done, sizeof head - done};
      const size_t sent = done < sizeof head ? 0 : done - sizeof head;
      if (bytes.size() > sent) parts[n++] = {const_cast<char*>(bytes.data()) + sent, bytes.size() - sent};
      msghdr message{};
      message.msg_iov = parts, message.msg_iovlen = size_t(n);
      if (done == 0 && !descriptors.empty()) {
        message.msg_control = control, message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
        cmsghdr* c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
        std::memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size() * sizeof(int));
      }
      VESTA_CHECK(socket_, value, "FdChannel: expected an open channel, got a closed one.");
      const ssize_t r = sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (r >= 0) {
        done += size_t(r);
        continue;
      }
      if (errno == EINTR) continue;
      if (is_gone(errno)) fail_closed("send");
      // ETOOMANYREFS: this user has as many descriptors on their way as ulimit -n; they come down as messages are read.
      const bool full = errno == EAGAIN || errno == EWOULDBLOCK, crowded = errno == ETOOMANYREFS;
      if (!full && !crowded) fail_with_errno("send", "sendmsg", errno);
      if (crowded) usleep(useconds_t(std::chrono::microseconds(kRetry).count()));
      if (wait_for(POLLOUT, wait) && !(crowded && wait.deadline && SteadyClock::now() >= *wait.deadline)) {
        if (crowded && wait.check) wait.check();
        continue;
      }
      if (done == 0) return false;
      fail(Cause::runtime, "send: expected the reader to take a message of ", bytes.size(),
           " bytes in time, got a deadline in the middle of it.");
    }
  } catch (...) {
    if (done > 0) close();
    throw;
  }
  return true;
}

size_t FdChannel::read_some(char* to, size_t n, std::vector<Descriptor>* descriptors, const Wait& wait, bool started,
                            Arrival& arrival) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  while (true) {
    VESTA_CHECK(socket_, value, "FdChannel: expected an open channel, got a closed one.");
    iovec part{to, n};
    msghdr message{};
    message.msg_iov = &part, message.msg_iovlen = 1;
    message.msg_control = control, message.msg_controllen = sizeof control;
    const ssize_t r = recvmsg(fd(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (r < 0) {
      if (errno == EINTR) continue;
      if (is_gone(errno)) {
        arrival = Arrival::closed;
        return 0;
      }
      if (errno != EAGAIN && errno != EWOULDBLOCK) fail_with_errno("receive", "recvmsg", errno);
      if (wait_for(POLLIN, wait)) continue;
      if (started) {
        fail(Cause::runtime, "receive: expected the rest of a message in time, got a deadline in the middle of it.");
      }
      arrival = Arrival::timeout;
      return 0;
    }
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
        Descriptor owned(fd);
        if (descriptors) descriptors->push_back(std::move(owned));
      }
    }
    if (r == 0) {
      arrival = Arrival::closed;
      return 0;
    }
    arrival = Arrival::message;
    return size_t(r);
  }
}

void FdChannel::read_all(char* to, size_t n, const Wait& wait) {
  for (size_t done = 0; done < n;) {
    Arrival arrival{};
    done += read_some(to + done, n - done, nullptr, wait, true, arrival);
    if (arrival == Arrival::closed) {
      throw ChannelClosed(Cause::runtime, "receive: the other side is gone in the middle of a message.");
    }
  }
}

Arrival FdChannel::receive(Message& message, const Wait& wait) {
  message.bytes.clear();
  message.descriptors.clear();
  Head head{};
  Arrival arrival{};
  size_t got = read_some(reinterpret_cast<char*>(&head), sizeof head, &message.descriptors, wait, false, arrival);
  if (got == 0) return arrival;
  try {
    if (got < sizeof head) read_all(reinterpret_cast<char*>(&head) + got, sizeof head - got, wait);
    VESTA_CHECK(head.magic == kMagic, runtime, "receive: expected the head of a message, got other bytes.");
    try {
      message.bytes.resize(head.bytes);
    } catch (const std::exception&) {
      fail(Cause::memory, "receive: expected room for a message of ", head.bytes, " bytes, got none.");
    }
    read_all(message.bytes.data(), message.bytes.size(), wait);
  } catch (...) {
    close();  // what follows could not be read
    throw;
  }
  if (message.descriptors.size() != head.descriptors) {  // the stream itself is in order: the channel goes on
    const size_t arrived = message.descriptors.size();
    message.descriptors.clear();
    fail(Cause::runtime, "receive: expected ", head.descriptors, " descriptors with the message, got ", arrived,
         ": this process has too few left. Raise the limit with ulimit -n.");
  }
  return Arrival::message;
}

}  // namespace vesta::shared
