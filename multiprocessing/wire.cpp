#include <vesta/multiprocessing/wire.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

namespace vesta::wire {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve(const std::string& host, int port, bool passive, std::string& error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int status = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (status) error = gai_strerror(status);
  return {status ? nullptr : found, freeaddrinfo};
}

std::string numeric(const sockaddr_storage& a, socklen_t length) {
  char text[NI_MAXHOST];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&a), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST)) {
    return {};
  }
  std::string_view address = text;
  if (address.substr(0, 7) == "::ffff:") address.remove_prefix(7);  // IPv4 behind an IPv6 socket
  return std::string(address);
}

/// Tries one address; returns an empty Fd with errno set if it fails.
Fd try_connect(const addrinfo& a, Clock::time_point deadline) {
  Fd fd(socket(a.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fd;
  if (connect(fd.get(), a.ai_addr, a.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return Fd();
    if (!wait_for(fd.get(), POLLOUT, std::min(deadline, Clock::now() + std::chrono::seconds(10)))) {
      errno = ETIMEDOUT;
      return Fd();
    }
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) {
      errno = error;
      return Fd();
    }
  }
  // On one machine a socket can connect to itself, if nobody listens at a port that the system assigns.
  sockaddr_storage self{}, other{};
  socklen_t n = sizeof self, m = sizeof other;
  if (!getsockname(fd.get(), reinterpret_cast<sockaddr*>(&self), &n) &&
      !getpeername(fd.get(), reinterpret_cast<sockaddr*>(&other), &m) && n == m && !std::memcmp(&self, &other, n)) {
    errno = ECONNREFUSED;
    return Fd();
  }
  return fd;
}

}  // namespace

void set_up(int fd) {
  const int on = 1, idle = 20, interval = 5, count = 4;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
}

Fd listen_on(const std::string& host, int port) {
  std::string error;
  Addresses list = resolve(host, port, true, error);
  for (int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* a = list.get(); a; a = a->ai_next) {
      if (a->ai_family != family) continue;
      Fd fd(socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      const int on = 1, off = 0;
      if (!fd) continue;
      setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      if (family == AF_INET6) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
      if (!bind(fd.get(), a->ai_addr, a->ai_addrlen) && !listen(fd.get(), 1024)) return fd;
      error = std::strerror(errno);
    }
  }
  distributed_fail(DistributedCause::network, "listen: cannot listen at ", host.empty() ? "*" : host, ":", port, " (",
                   error, "). Choose another port, or 0 for any that is free.");
}

Fd connect_to(const std::string& host, int port, Clock::time_point deadline) {
  std::string error = "no address";
  const auto start = Clock::now();
  for (auto pause = Milliseconds(2);; pause = std::min(pause * 2, Milliseconds(500))) {
    Addresses list = resolve(host, port, false, error);
    for (const addrinfo* a = list.get(); a; a = a->ai_next) {
      if (Fd fd = try_connect(*a, deadline)) {
        set_up(fd.get());
        return fd;
      }
      error = std::strerror(errno);
    }
    check_interrupt();
    if (Clock::now() + pause >= deadline) break;
    poll(nullptr, 0, int(pause.count()));
  }
  const auto waited = std::chrono::duration_cast<Milliseconds>(Clock::now() - start).count();
  distributed_fail(DistributedCause::network, "connect: nobody answers at ", host, ":", port, " after ", waited,
                   " ms (", error, "). Check that rank 0 runs, and that address and port are the same on all ranks.");
}

Fd try_connect_to(const std::string& host, int port, Clock::time_point deadline) {
  std::string error;
  Addresses list = resolve(host, port, false, error);
  for (const addrinfo* a = list.get(); a; a = a->ai_next) {
    if (Fd fd = try_connect(*a, deadline)) {
      set_up(fd.get());
      return fd;
    }
  }
  return Fd();
}

Fd accept_from(int listener, Clock::time_point deadline) {
  while (wait_for(listener, POLLIN, deadline)) {
    Fd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) continue;
    set_up(fd.get());
    return fd;
  }
  return Fd();
}

int local_port(int fd) {
  sockaddr_storage a{};
  socklen_t length = sizeof a;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&a), &length)) return 0;
  return ntohs(a.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(a).sin6_port
                                       : reinterpret_cast<sockaddr_in&>(a).sin_port);
}

std::string local_address(int fd) {
  sockaddr_storage a{};
  socklen_t length = sizeof a;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&a), &length) ? "" : numeric(a, length);
}

bool is_loopback(std::string_view host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

std::string outward_address() {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(9);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(9);
  inet_pton(AF_INET, "203.0.113.1", &v4.sin_addr);  // an address for documentation: any distant host
  inet_pton(AF_INET6, "2001:db8::1", &v6.sin6_addr);
  const std::pair<const sockaddr*, socklen_t> far[] = {{reinterpret_cast<const sockaddr*>(&v4), sizeof v4},
                                                       {reinterpret_cast<const sockaddr*>(&v6), sizeof v6}};
  for (const auto& [address, size] : far) {
    const Fd probe(socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!probe || connect(probe.get(), address, size)) continue;
    const std::string found = local_address(probe.get());
    if (!found.empty() && !is_loopback(found)) return found;
  }
  return {};
}

bool wait_for(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<Milliseconds>(deadline - Clock::now());
    if (left.count() < 0) return false;
    pollfd p{fd, events, 0};
    const int n = poll(&p, 1, int(std::min(left, kSlice).count()));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
    check_interrupt();
    if (left.count() == 0) return false;
  }
}

bool send_all(int fd, const void* data, size_t size, Clock::time_point deadline) {
  const char* at = static_cast<const char*>(data);
  while (size) {
    const ssize_t n = send(fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) at += n, size -= size_t(n);
    else if (n < 0 && errno == EINTR) continue;
    else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK) || !wait_for(fd, POLLOUT, deadline)) return false;
  }
  return true;
}

bool receive_all(int fd, void* data, size_t size, Clock::time_point deadline) {
  char* at = static_cast<char*>(data);
  while (size) {
    const ssize_t n = recv(fd, at, size, MSG_DONTWAIT);
    if (n > 0) at += n, size -= size_t(n);
    else if (n < 0 && errno == EINTR) continue;
    else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK) || !wait_for(fd, POLLIN, deadline)) return false;
  }
  return true;
}

}  // namespace vesta::wire
