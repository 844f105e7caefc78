#include <vesta/multiprocessing/mesh.h>

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>

namespace vesta {
namespace {

struct Head {
  uint32_t length;
  Topic topic;
  uint16_t mark;
  uint64_t number;
};
constexpr size_t kReadBytes = 256 << 10;    // how much is read at once
constexpr uint16_t kMark = 0x5645;           // "VE": a peer that sends something else is not one of ours
constexpr uint32_t kLongest = 64 << 20;      // bytes of a message; ours are shorter

std::string read_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Returns a string that is equal for two processes if each can find the other in /proc.
std::string process_space() {
  char link[64] = {};
  [[maybe_unused]] ssize_t n = readlink("/proc/self/ns/pid", link, sizeof link - 1);
  return read_line("/proc/sys/kernel/random/boot_id") + link;
}

std::string random_token() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) distributed_fail(DistributedCause::general, "no randomness");
  std::string s;
  for (unsigned char b : bytes) s += "0123456789abcdef"[b >> 4], s += "0123456789abcdef"[b & 15];
  return s;
}

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

/// Returns the address of a network interface; empty if it has none.
std::string address_of_interface(const std::string& interface) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list)) return {};
  std::string found;
  for (int family : {AF_INET, AF_INET6}) {
    for (ifaddrs* a = list; a && found.empty(); a = a->ifa_next) {
      if (!a->ifa_addr || a->ifa_addr->sa_family != family || interface != a->ifa_name) continue;
      char text[NI_MAXHOST];
      const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      if (!getnameinfo(a->ifa_addr, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST)) found = text;
    }
  }
  freeifaddrs(list);
  return found;
}

/// Chooses the address at which the other ranks reach this one: the one the user gives, else the one that leads to the
/// store, else this machine's own.
std::string choose_address(Store& store) {
  for (const char* variable : {"VESTA_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"}) {
    const char* name = std::getenv(variable);
    if (!name || !*name) continue;
    std::string address = address_of_interface(name);
    VESTA_CHECK(!address.empty(), value, "process group: expected a network interface with an address, got '", name,
                "' (", variable, ").");
    return address;
  }
  std::string address = store.local_address();
  return address.empty() ? "127.0.0.1" : address;
}

/// The connections of this process, kept so that a forked child can close its copies: otherwise a worker that outlives
/// its parent would hide the parent's death from the other ranks.
struct Connections {
  std::mutex mutex;
  std::vector<int> all;
};
Connections& connections() {
  static Connections* const kept = [] {
    auto* c = new Connections;
    pthread_atfork([] { connections().mutex.lock(); }, [] { connections().mutex.unlock(); },
                   [] {
                     for (int fd : connections().all) close(fd);
                     connections().all.clear();
                     connections().mutex.unlock();
                   });
    return c;
  }();
  return *kept;
}
void remember(int fd) {
  std::lock_guard lock(connections().mutex);
  connections().all.push_back(fd);
}
void forget(int fd) {
  std::lock_guard lock(connections().mutex);
  std::erase(connections().all, fd);
}

/// Returns how a process of this machine ended, if the system still knows it: the exit code is in /proc until the
/// parent has read it.
std::string how_it_ended(const Peer& p) {
  if (!p.same_machine || p.pid == getpid()) return {};
  int code = 0;
  for (int tries = 0;; ++tries) {  // its descriptors close shortly before it is a zombie
    const std::string stat = read_line(("/proc/" + std::to_string(p.pid) + "/stat").c_str());
    const size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos || stat.size() < name_end + 3) return {};
    code = std::atoi(stat.c_str() + stat.rfind(' '));  // the last field, in wait()'s form
    const char state = stat[name_end + 2];
    if (code || state == 'Z' || state == 'X') break;
    if (tries == 75) return {};
    poll(nullptr, 0, 2);
  }
  if (const int signal = code & 0x7f) {
    const char* name = sigabbrev_np(signal);
    return text("killed by signal ", signal, name ? text(" (SIG", name, ")") : "");
  }
  return text("ended with exit code ", code >> 8);
}

}  // namespace

Mesh::Mesh(Store& store, int rank, int size, const std::string& group, Milliseconds timeout)
    : rank_(rank), peers_(size_t(size)), read_buffer_(kReadBytes), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  address_ = choose_address(store);
  meet(store, group, deadline_in(timeout));
}

Mesh::~Mesh() {
  for (Peer& p : peers_) close_connection(p);
}

void Mesh::close_connection(Peer& p) {
  if (!p.fd) return;
  forget(p.fd.get());
  p.fd.reset();
}

// Each rank listens, and stores its address and a token under its key. The higher rank of a pair connects, sends the
// token and its own identity, and gets an answer. A key may be left from an earlier group: then nobody listens there,
// or the listener knows another token, and the key is read again until its rank has written a new one.
void Mesh::meet(Store& store, const std::string& group, Clock::time_point deadline) {
  const std::string token = random_token(), space = process_space(), host = host_name();
  wire::Fd listener = wire::listen_on(address_, 0);
  auto introduce = [&](wire::Writer& w) {
    return w.put(int32_t(rank_)).put(std::string_view(host)).put(int32_t(getpid())).put(std::string_view(space)).take();
  };
  wire::Writer entry;
  entry.put(std::string_view(address_)).put(int32_t(wire::local_port(listener.get()))).put(std::string_view(token));
  store.set("mesh/" + std::to_string(rank_), introduce(entry));
  for (int r = 0; r < rank_; ++r) {
    while (!connect(store, r, introduce, space, deadline)) {
      check_interrupt();
      if (Clock::now() >= deadline) did_not_come(group, {r});
      poll(nullptr, 0, 10);
    }
  }
  accept_peers(listener.get(), token, space, deadline);
  std::vector<int> missing;
  for (int r = rank_ + 1; r < size(); ++r) {
    if (!peers_[size_t(r)].fd) missing.push_back(r);
  }
  if (!missing.empty()) did_not_come(group, missing);
}

void Mesh::did_not_come(const std::string& group, const std::vector<int>& ranks) const {
  std::string list;
  for (int r : ranks) list += (list.empty() ? "" : ", ") + std::to_string(r);
  distributed_fail(DistributedCause::network, "process group '", group, "': expected ", size(), " ranks, rank ", list,
                   " did not come in time. Check that it was started, and that all ranks make the same groups in the ",
                   "same order.");
}

bool Mesh::connect(Store& store, int rank, const std::function<std::string(wire::Writer&)>& introduce,
                   const std::string& space, Clock::time_point deadline) {
  const std::string key = "mesh/" + std::to_string(rank);
  const auto left = std::chrono::duration_cast<Milliseconds>(deadline - Clock::now());
  try {
    store.wait({key}, std::max(left, Milliseconds(1)));
  } catch (const DistributedError& e) {
    if (e.what_failed() != DistributedCause::store) throw;
    return false;
  }
  const std::string entry = store.get(key);
  wire::Reader reader(entry);
  const std::string address(reader.text());
  const int port = reader.get<int32_t>();
  const std::string token(reader.text());
  wire::Fd fd = wire::try_connect_to(address, port, std::min(deadline, deadline_in(std::chrono::seconds(10))));
  if (!fd) return false;
  wire::Writer hello;
  const std::string self = introduce(hello);
  const std::string whole = wire::Writer().put(std::string_view(token)).put(std::string_view(self)).take();
  const uint32_t length = uint32_t(whole.size());
  char answer = 0;
  if (!wire::send_all(fd.get(), &length, sizeof length, deadline) ||
      !wire::send_all(fd.get(), whole.data(), whole.size(), deadline) ||
      !wire::receive_all(fd.get(), &answer, 1, deadline)) {
    return false;
  }
  meet_peer(std::move(fd), reader, space);
  return true;
}

/// Registers a peer that has introduced itself: rank, host, pid and process space follow in `r`.
void Mesh::meet_peer(wire::Fd fd, wire::Reader& r, const std::string& space) {
  Peer& p = peers_[size_t(r.get<int32_t>())];
  p.host = r.text();
  p.pid = r.get<int32_t>();
  p.same_machine = r.text() == space;
  p.heard = Clock::now();
  p.fd = std::move(fd);
  remember(p.fd.get());
}

void Mesh::accept_peers(int listener, const std::string& token, const std::string& space, Clock::time_point deadline) {
  Peer& self = peers_[size_t(rank_)];
  self.host = host_name();
  self.pid = getpid();
  for (int missing = size() - 1 - rank_; missing > 0;) {
    wire::Fd fd = wire::accept_from(listener, deadline);
    if (!fd) return;
    const auto soon = std::min(deadline, deadline_in(std::chrono::seconds(5)));
    uint32_t length = 0;
    if (!wire::receive_all(fd.get(), &length, sizeof length, soon) || length > 4096) continue;
    std::string hello(length, '\0');
    if (!wire::receive_all(fd.get(), hello.data(), length, soon)) continue;
    try {
      wire::Reader outer(hello);
      if (outer.text() != token) continue;  // not of this group
      wire::Reader r(outer.text());
      const int from = wire::Reader(r.rest()).get<int32_t>();
      if (from <= rank_ || from >= size() || peers_[size_t(from)].fd) continue;
      const char yes = 1;
      if (!wire::send_all(fd.get(), &yes, 1, soon)) continue;
      meet_peer(std::move(fd), r, space);
      --missing;
    } catch (const DistributedError&) {  // garbage
    }
  }
}

// ---- Sending ----

void Mesh::send(int to, Topic topic, uint64_t number, std::string_view head, std::string_view tail) {
  std::lock_guard lock(mutex_);
  Peer& p = peers_[size_t(to)];
  if (!p.fd || p.state == Peer::lost) return;
  const Head h{uint32_t(head.size() + tail.size()), topic, kMark, number};
  size_t sent = 0;
  if (p.out.empty()) {
    iovec parts[3] = {{const_cast<Head*>(&h), sizeof h},
                      {const_cast<char*>(head.data()), head.size()},
                      {const_cast<char*>(tail.data()), tail.size()}};
    msghdr m{};
    m.msg_iov = parts;
    m.msg_iovlen = 3;
    const ssize_t n = sendmsg(p.fd.get(), &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) sent = size_t(n);
    if (sent == sizeof h + head.size() + tail.size()) return;
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return;  // reading will show it
  }
  std::string whole(reinterpret_cast<const char*>(&h), sizeof h);
  whole.append(head).append(tail);
  p.out.append(whole, sent);
}

void Mesh::send_to_all(Topic topic, uint64_t number, std::string_view body) {
  for (int r = 0; r < size(); ++r) {
    if (r != rank_) send(r, topic, number, body);
  }
}

void Mesh::flush(Peer& p) {
  while (p.out_sent < p.out.size()) {
    const ssize_t n =
        ::send(p.fd.get(), p.out.data() + p.out_sent, p.out.size() - p.out_sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) p.out_sent = p.out.size();  // gone: reading will show it
    if (n <= 0) break;
    p.out_sent += size_t(n);
  }
  if (p.out_sent == p.out.size()) p.out.clear(), p.out_sent = 0;
}

// ---- Reading ----

bool Mesh::wait(Clock::time_point deadline, const std::function<bool()>& ready) {
  std::unique_lock lock(mutex_);
  while (!ready()) {
    const auto now = Clock::now();
    if (now >= deadline) return false;
    const auto slice = std::min(deadline - now, Clock::duration(std::chrono::seconds(1)));
    if (reading_) {
      changed_.wait_for(lock, slice);
      continue;
    }
    reading_ = true;
    lock.unlock();
    read_once(int(std::chrono::ceil<Milliseconds>(slice).count()));
    lock.lock();
    reading_ = false;
    changed_.notify_all();
  }
  return true;
}

void Mesh::read_now() {
  std::unique_lock lock(mutex_);
  if (reading_) return;
  reading_ = true;
  lock.unlock();
  read_once(0);
  lock.lock();
  reading_ = false;
  changed_.notify_all();
}

void Mesh::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] ssize_t n = write(wake_.get(), &one, sizeof one);
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

void Mesh::read_once(int timeout_ms) {
  pollfd polled[1 + 64];
  std::vector<pollfd> many;
  pollfd* p = polled;
  if (size() > 64) {
    many.resize(size_t(size()) + 1);
    p = many.data();
  }
  nfds_t n = 0;
  p[n++] = {wake_.get(), POLLIN, 0};
  std::vector<int> ranks;
  {
    std::lock_guard lock(mutex_);
    for (int r = 0; r < size(); ++r) {
      Peer& peer = peers_[size_t(r)];
      if (!peer.fd || (peer.silent && peer.out.empty())) continue;
      p[n++] = {peer.fd.get(), short((peer.silent ? 0 : POLLIN) | (peer.out.empty() ? 0 : POLLOUT)), 0};
      ranks.push_back(r);
    }
  }
  if (poll(p, n, timeout_ms) <= 0) return;
  if (p[0].revents) {
    uint64_t ignored;
    [[maybe_unused]] ssize_t got = read(wake_.get(), &ignored, sizeof ignored);
  }
  for (nfds_t i = 1; i < n; ++i) {
    if (!p[i].revents) continue;
    const int r = ranks[i - 1];
    std::vector<MeshMessage> came;
    bool open = true;
    if (p[i].revents & (POLLIN | POLLHUP | POLLERR)) open = !(p[i].events & POLLIN) || read_from(r, came);
    std::lock_guard lock(mutex_);
    Peer& peer = peers_[size_t(r)];
    if (p[i].revents & (POLLOUT | POLLERR)) flush(peer);
    if (!came.empty()) take_in(r, came);
    if (!open) ended(peer);
  }
}

bool Mesh::read_from(int rank, std::vector<MeshMessage>& came) {
  Peer& p = peers_[size_t(rank)];
  bool open = true;
  for (;;) {
    const ssize_t n = recv(p.fd.get(), read_buffer_.data(), read_buffer_.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) open = false;
    if (n <= 0) break;
    p.in.append(read_buffer_.data(), size_t(n));
    if (size_t(n) < read_buffer_.size()) break;
  }
  size_t at = 0;
  while (p.in.size() - at >= sizeof(Head)) {
    Head h;
    std::memcpy(&h, p.in.data() + at, sizeof h);
    if (h.mark != kMark || h.length > kLongest) return false;
    if (p.in.size() - at - sizeof h < h.length) break;
    came.push_back({h.topic, h.number, p.in.substr(at + sizeof h, h.length)});
    at += sizeof h + h.length;
  }
  p.in.erase(0, at);
  return open;
}

void Mesh::take_in(int rank, std::vector<MeshMessage>& came) {
  Peer& p = peers_[size_t(rank)];
  p.heard = Clock::now();
  for (MeshMessage& m : came) {
    switch (m.topic) {
      case Topic::collective:
        p.calls = std::max(p.calls, m.number);
        p.collectives.push_back(std::move(m));
        break;
      case Topic::message:
      case Topic::received: p.messages.push_back(std::move(m)); break;
      case Topic::address: p.addresses.push_back(std::move(m)); break;
      case Topic::alive:
        p.calls = std::max(p.calls, m.number);
        try {
          wire::Reader r(m.body);
          p.last_call = r.text();
          p.stand = r.rest();
        } catch (const DistributedError&) {  // garbage
        }
        break;
      case Topic::abort:
        if (aborted_.empty()) aborted_ = std::move(m.body);
        is_aborted_ = true;
        if (p.state == Peer::here) p.state = Peer::left, p.left_after = 0, p.gave_up = true;
        break;
      case Topic::bye:
        if (p.state == Peer::here) p.state = Peer::left;
        p.left_after = m.number;
        break;
      case Topic::bye_seen: p.saw_bye = true; break;
      case Topic::ready: p.ready = true; break;
    }
  }
}

void Mesh::ended(Peer& p) {
  p.silent = true;
  if (p.state == Peer::here) {
    p.end = how_it_ended(p);
    p.state = Peer::lost;
  }
  // A rank that said goodbye still listens until it is told that its goodbye was received.
  if (p.state == Peer::lost || p.saw_bye || !aborted_.empty()) close_connection(p);
}

// ---- Ends ----

void Mesh::abort(const std::string& reason) {
  {
    std::lock_guard lock(mutex_);
    if (aborted_.empty()) aborted_ = reason;
    is_aborted_ = true;
  }
  send_to_all(Topic::abort, 0, reason);
  std::lock_guard lock(mutex_);
  for (Peer& p : peers_) {
    if (p.fd && p.out.empty()) shutdown(p.fd.get(), SHUT_WR);  // wakes the other side's monitor
  }
}

std::string Mesh::aborted() {
  std::lock_guard lock(mutex_);
  return aborted_;
}

void Mesh::await_ready(Milliseconds patience) {
  wait(deadline_in(patience), [&] {
    for (int r = 0; r < size(); ++r) {
      const Peer& p = peers_[size_t(r)];
      if (r != rank_ && p.state == Peer::here && !p.ready) return false;
    }
    return true;
  });
}

void Mesh::leave(uint64_t number, Milliseconds patience) {
  send_to_all(Topic::bye, number, {});
  {
    std::lock_guard lock(mutex_);
    for (Peer& p : peers_) {
      if (p.fd && p.out.empty()) shutdown(p.fd.get(), SHUT_WR);
    }
  }
  wait(deadline_in(patience), [&] {
    for (int r = 0; r < size(); ++r) {
      Peer& p = peers_[size_t(r)];
      if (r != rank_ && p.fd && p.state == Peer::here && !p.saw_bye) return false;
    }
    return true;
  });
}

void Mesh::answer_goodbyes(uint64_t number) {
  for (int r = 0; r < size(); ++r) {
    bool answer = false;
    {
      std::lock_guard lock(mutex_);
      Peer& p = peers_[size_t(r)];
      answer = p.fd && p.state == Peer::left && !p.saw_bye && p.left_after <= number;
      if (answer) p.saw_bye = true;
    }
    if (!answer) continue;
    send(r, Topic::bye_seen, number, {});
    std::lock_guard lock(mutex_);
    Peer& p = peers_[size_t(r)];
    if (p.silent && p.out.empty()) close_connection(p);
  }
}

std::string Mesh::who(int rank) const {
  const Peer& p = peers_[size_t(rank)];
  return text("rank ", rank, " (host ", p.host, ", pid ", p.pid, ")");
}

std::string Mesh::gone(int rank, uint64_t number) const {
  const Peer& p = peers_[size_t(rank)];
  if (p.state == Peer::lost) {
    return text(who(rank), " died", p.end.empty() ? "" : ": ", p.end);
  }
  if (p.gave_up) return text(who(rank), " has left the group, which has failed: ", aborted_);
  if (p.state == Peer::left && p.left_after < number) {
    return text(who(rank), " has left the group after its operation #", p.left_after);
  }
  return {};
}

std::string Mesh::unreachable(int with, bool promised) {
  std::lock_guard lock(mutex_);
  std::string died, left;
  bool all = !promised;
  for (int r = 0; r < size(); ++r) {
    if (r == rank_ || (with != -1 && with != r)) continue;
    const Peer::State state = peers_[size_t(r)].state;
    if (state == Peer::here) all = false;
    else (state == Peer::lost ? died : left) = gone(r, UINT64_MAX);
  }
  return !died.empty() ? died : all ? left : "";
}

}  // namespace vesta
