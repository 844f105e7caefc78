#include <vesta/multiprocessing/store_server.h>

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include <vesta/multiprocessing/store_values.h>

namespace vesta {
namespace {

constexpr size_t kLongest = size_t(1) << 30;  // bytes of a request; a longer one is not one of ours

void watch(int epoll, int fd, uint32_t events, int how) {
  epoll_event e{};
  e.events = events;
  e.data.fd = fd;
  epoll_ctl(epoll, how, fd, &e);
}

}  // namespace

StoreServer::StoreServer(wire::Fd listener)
    : listener_(std::move(listener)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      port_(wire::local_port(listener_.get())) {
  watch(epoll_.get(), listener_.get(), EPOLLIN, EPOLL_CTL_ADD);
  watch(epoll_.get(), stop_.get(), EPOLLIN, EPOLL_CTL_ADD);
  thread_ = std::thread([this] { run(); });
}

StoreServer::~StoreServer() {
  const uint64_t one = 1;
  [[maybe_unused]] ssize_t n = write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void StoreServer::run() {
  for (;;) {
    epoll_event events[64];
    const int n = epoll_wait(epoll_.get(), events, 64, -1);
    if (n < 0 && errno != EINTR) return;
    for (int i = 0; i < n; ++i) {
      const int fd = events[i].data.fd;
      if (fd == stop_.get()) return;
      if (fd == listener_.get()) {
        accept_client();
        continue;
      }
      auto at = clients_.find(fd);
      if (at == clients_.end()) continue;
      try {
        if (events[i].events & EPOLLOUT) flush(at->second);
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) read_from(at->second);
      } catch (const std::exception&) {  // gone, or not a client of ours
        drop(fd);
      }
    }
  }
}

void StoreServer::accept_client() {
  wire::Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) return;
  wire::set_up(fd.get());
  const int number = fd.get();
  watch(epoll_.get(), number, EPOLLIN, EPOLL_CTL_ADD);
  clients_[number].fd = std::move(fd);
}

void StoreServer::drop(int fd) {
  Client& c = clients_[fd];
  if (!c.pending.empty()) {
    for (auto at = waiting_.begin(); at != waiting_.end();) {
      at->second.erase(fd);
      at = at->second.empty() ? waiting_.erase(at) : std::next(at);
    }
  }
  clients_.erase(fd);
}

void StoreServer::read_from(Client& c) {
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = recv(c.fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (n <= 0) distributed_fail(DistributedCause::network, "closed");
    c.in.append(buffer, size_t(n));
    if (size_t(n) < sizeof buffer) break;
  }
  size_t at = 0;
  while (c.in.size() - at >= 4) {
    const uint32_t length = wire::Reader(std::string_view(c.in).substr(at)).get<uint32_t>();
    if (length > kLongest) distributed_fail(DistributedCause::network, "no request");
    if (c.in.size() - at - 4 < length) break;
    handle(c, c.in.substr(at + 4, length));
    at += 4 + length;
  }
  c.in.erase(0, at);
}

bool StoreServer::has_all(const Arguments& keys) const {
  for (const std::string& key : keys) {
    if (!values_.count(key)) return false;
  }
  return true;
}

void StoreServer::wait_for_keys(Client& c, const Arguments& keys, const std::string& request) {
  c.pending = request;
  c.missing = 0;
  for (const std::string& key : keys) {
    if (!values_.count(key) && waiting_[key].insert(c.fd.get()).second) ++c.missing;
  }
}

void StoreServer::changed(const std::string& key) {
  auto at = waiting_.find(key);
  if (at == waiting_.end()) return;
  const std::set<int> who = std::move(at->second);
  waiting_.erase(at);
  for (int fd : who) {
    Client& c = clients_.at(fd);
    if (--c.missing == 0) handle(c, std::exchange(c.pending, {}));
  }
}

void StoreServer::handle(Client& c, const std::string& request) {
  wire::Reader r(request);
  const char what = r.get<char>();
  Arguments a;
  while (!r.rest().empty()) a.emplace_back(r.text());
  auto argument = [&](size_t i) -> const std::string& {
    if (i >= a.size()) distributed_fail(DistributedCause::network, "no request");
    return a[i];
  };
  switch (what) {
    case 'G':
    case 'W':
    case 'M': {
      if (!has_all(a)) return wait_for_keys(c, a, request);
      Arguments values;
      if (what != 'W') {
        for (const std::string& key : a) values.push_back(values_[key]);
      }
      return reply(c, values);
    }
    case 'S': values_[argument(0)] = argument(1); break;
    case 'm':
      for (size_t i = 0; i + 1 < a.size(); i += 2) values_[a[i]] = a[i + 1];
      reply(c, {});
      for (size_t i = 0; i + 1 < a.size(); i += 2) changed(a[i]);
      return;
    case 'P': values_[argument(0)] += argument(1); break;
    case 'A': {
      auto at = values_.find(argument(0));
      int64_t sum = 0;
      try {
        sum =
            detail::stored_number("", argument(1)) + (at == values_.end() ? 0 : detail::stored_number("", at->second));
      } catch (const DistributedError&) {
        return reply(c, {"", "no number"});
      }
      values_[a[0]] = std::to_string(sum);
      reply(c, {values_[a[0]]});
      return changed(a[0]);
    }
    case 'X': {
      auto at = values_.find(argument(0));
      const bool there = at != values_.end();
      const bool same = there ? at->second == argument(1) : argument(1).empty();
      if (!same) return reply(c, {there ? at->second : a[1]});
      values_[a[0]] = argument(2);
      reply(c, {a[2]});
      return changed(a[0]);
    }
    case 'C': return reply(c, {has_all(a) ? "1" : "0"});
    case 'D': return reply(c, {values_.erase(argument(0)) ? "1" : "0"});
    case 'N': return reply(c, {std::to_string(values_.size())});
    case 'K': {
      Arguments found;
      const std::string& prefix = argument(0);
      for (auto at = values_.lower_bound(prefix); at != values_.end() && at->first.starts_with(prefix); ++at) {
        found.push_back(at->first);
      }
      return reply(c, found);
    }
    default: distributed_fail(DistributedCause::network, "no request");
  }
  reply(c, {});
  changed(a[0]);
}

void StoreServer::reply(Client& c, const Arguments& values) {
  wire::Writer w;
  for (const std::string& value : values) w.put(std::string_view(value));
  const uint32_t length = uint32_t(w.bytes().size());
  c.out.append(reinterpret_cast<const char*>(&length), sizeof length);
  c.out += w.bytes();
  flush(c);
}

void StoreServer::flush(Client& c) {
  size_t sent = 0;
  while (sent < c.out.size()) {
    const ssize_t n = send(c.fd.get(), c.out.data() + sent, c.out.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;  // full, or gone: then reading shows it
    sent += size_t(n);
  }
  const bool was_waiting = c.out.empty();
  c.out.erase(0, sent);
  if (!c.out.empty() || !was_waiting) {
    watch(epoll_.get(), c.fd.get(), c.out.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
  }
}

}  // namespace vesta
