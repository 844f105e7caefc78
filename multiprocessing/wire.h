// Sockets with deadlines, and messages made of numbers and strings. Internal to multiprocessing.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vesta/multiprocessing/descriptor.h>
#include <vesta/multiprocessing/distributed_error.h>
#include <vesta/multiprocessing/deadline.h>

namespace vesta::wire {

using Fd = shared::Descriptor;

/// Opens a listening socket, reachable by IPv4 and IPv6 if `host` is empty. Port 0: the system chooses.
Fd listen_on(const std::string& host, int port);
/// Connects, trying again until the deadline while there is no listener. DistributedError(network) tells why it failed.
Fd connect_to(const std::string& host, int port, Clock::time_point deadline);
/// Tries to connect once; returns an empty Fd if there is no answer.
Fd try_connect_to(const std::string& host, int port, Clock::time_point deadline);
/// Accepts one connection; returns an empty Fd if none came before the deadline.
Fd accept_from(int listener, Clock::time_point deadline);
/// Returns the port or the numeric address of this end of a socket.
int local_port(int fd);
std::string local_address(int fd);
/// Returns whether a name or numeric address means this machine only.
bool is_loopback(std::string_view host);
/// Returns the address from which this machine reaches others; empty if it reaches none. Nothing is sent.
std::string outward_address();
/// Sets a socket's options: small messages are sent at once, exec closes it, and keep-alive detects a dead machine.
void set_up(int fd);

/// Waits until a descriptor can be read (or written), in slices with the interrupt check. Returns false at the
/// deadline.
bool wait_for(int fd, short events, Clock::time_point deadline);
/// Sends everything. Returns false if the other side is gone or the deadline is over.
bool send_all(int fd, const void* data, size_t size, Clock::time_point deadline);
/// Receives exactly `size` bytes. Returns false if the other side is gone or the deadline is over.
bool receive_all(int fd, void* data, size_t size, Clock::time_point deadline);

/// A writer of a message: numbers in the machine's byte order, strings with their length.
class Writer {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  Writer& put(const T& v) {
    bytes_.append(reinterpret_cast<const char*>(&v), sizeof v);
    return *this;
  }
  Writer& put(std::string_view s) {
    put(uint32_t(s.size()));
    bytes_.append(s);
    return *this;
  }
  /// Appends bytes as they are.
  Writer& raw(std::string_view s) {
    bytes_.append(s);
    return *this;
  }
  void reserve(size_t n) { bytes_.reserve(n); }
  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// A reader of such a message; DistributedError(network) if it is too short.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  template <class T>
    requires std::is_trivially_copyable_v<T>
  T get() {
    T v;
    std::memcpy(&v, raw(sizeof v).data(), sizeof v);
    return v;
  }
  std::string_view text() { return raw(get<uint32_t>()); }
  std::string_view raw(size_t n) {
    if (n > left_.size()) distributed_fail(DistributedCause::network, "wire: a message is cut short.");
    std::string_view r = left_.substr(0, n);
    left_.remove_prefix(n);
    return r;
  }
  std::string_view rest() const { return left_; }

 private:
  std::string_view left_;
};

}  // namespace vesta::wire
