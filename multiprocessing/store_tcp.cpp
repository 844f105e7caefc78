#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include <vesta/multiprocessing/store_server.h>
#include <vesta/multiprocessing/store_values.h>

namespace vesta {
namespace {

constexpr uint32_t kLongestNumber = 64;  // bytes of the answer to an `add`
constexpr char kWorkers[] = "init/";  // PyTorch's name of the key that counts the arrived workers

/// The servers of this process by port, for `multi_tenant`.
std::mutex servers_mutex;
std::map<int, std::weak_ptr<StoreServer>>& servers() {
  static std::map<int, std::weak_ptr<StoreServer>> map;
  return map;
}

std::shared_ptr<StoreServer> serve(const TCPStoreOptions& o) {
  std::lock_guard lock(servers_mutex);
  std::erase_if(servers(), [](const auto& entry) { return entry.second.expired(); });
  if (o.multi_tenant && o.port && o.listen_fd < 0) {
    if (auto at = servers().find(o.port); at != servers().end()) {
      if (auto server = at->second.lock()) return server;
    }
  }
  auto server =
      std::make_shared<StoreServer>(o.listen_fd >= 0 ? wire::Fd::duplicate(o.listen_fd) : wire::listen_on("", o.port));
  servers()[server->port()] = server;
  return server;
}

}  // namespace

TCPStore::TCPStore(std::string host, const TCPStoreOptions& options) : host_(std::move(host)), port_(options.port) {
  VESTA_CHECK(options.port >= 0 && options.port < 65536, value, "TCPStore: expected a port from 0 to 65535, got ",
              options.port, " (port).");
  VESTA_CHECK(options.port || options.is_master, value,
              "TCPStore: expected the server's port, got 0 (port). Only the master may let the system choose.");
  timeout_ = options.timeout;
  if (options.is_master) {
    server_ = serve(options);
    port_ = server_->port();
  }
  wire::Fd first = take_connection(deadline_in(timeout_));
  local_address_ = wire::local_address(first.get());
  if (wire::is_loopback(local_address_) && !wire::is_loopback(host_)) {
    // Many machines resolve their own name to 127.0.1.1, where no other machine reaches them.
    if (std::string outward = wire::outward_address(); !outward.empty()) local_address_ = std::move(outward);
  }
  give_back(std::move(first));
  const int64_t here = greet();
  if (!options.wait_for_workers || options.num_workers <= 0 || !options.is_master) return;
  const auto deadline = deadline_in(timeout_);
  for (int64_t n = here; n < options.num_workers; n = add(kWorkers, 0)) {
    if (Clock::now() >= deadline) {
      distributed_fail(DistributedCause::store, "TCPStore: expected ", options.num_workers, " processes within ",
                       timeout_.count(), " ms, got ", n, " (num_workers).");
    }
    check_interrupt();
    poll(nullptr, 0, 5);
  }
}

TCPStore::~TCPStore() = default;

/// Counts this process as arrived. This is the first request, which shows whether the listener is a store.
int64_t TCPStore::greet() {
  try {
    return add(kWorkers, 1);
  } catch (const DistributedError&) {
    if (server_) throw;
    distributed_fail(
        DistributedCause::network, "TCPStore: who listens at ", host_, ":", port_,
        " does not answer as a store does: it is another program, or hangs. Choose another port, the same ",
        "on all ranks.");
  }
}

std::string TCPStore::local_address() { return local_address_; }

wire::Fd TCPStore::take_connection(Clock::time_point deadline) {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      wire::Fd fd = std::move(idle_.back());
      idle_.pop_back();
      return fd;
    }
  }
  if (!server_) return wire::connect_to(host_, port_, deadline);
  try {  // by the name that others use: they reach the address it resolves to
    return wire::connect_to(host_, port_, std::min(deadline, deadline_in(Milliseconds(500))));
  } catch (const DistributedError&) {  // a name that cannot be resolved here
    return wire::connect_to("localhost", port_, deadline);
  }
}

void TCPStore::give_back(wire::Fd connection) {
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(connection));
}

std::vector<std::string> TCPStore::ask(char what, const std::vector<std::string>& arguments, Milliseconds timeout,
                                       const std::string& subject) {
  wire::Writer w;
  w.put(uint32_t(0)).put(what);
  for (const std::string& a : arguments) w.put(std::string_view(a));
  std::string request = w.take();
  const uint32_t length = uint32_t(request.size() - 4);
  std::memcpy(request.data(), &length, sizeof length);

  const auto deadline = deadline_in(timeout);
  wire::Fd fd = take_connection(deadline);
  uint32_t size = 0;
  std::string answer;
  const bool sent = wire::send_all(fd.get(), request.data(), request.size(), deadline);
  bool done = sent && wire::receive_all(fd.get(), &size, sizeof size, deadline);
  if (done && what == 'A') done = size <= kLongestNumber;  // else the answer is not a store's
  if (done) {
    answer.resize(size);
    done = wire::receive_all(fd.get(), answer.data(), size, deadline_in(timeout));
  }
  if (!done) {  // the connection is closed: with it the server drops the request
    if (Clock::now() >= deadline) {
      const bool waits = what == 'G' || what == 'W' || what == 'M';
      Keys missing;
      if (waits) {
        for (const std::string& key : arguments) {
          if (arguments.size() == 1 || !check({key})) missing.push_back(key);
        }
      }
      detail::wait_timed_out(waits ? missing : Keys{subject}, timeout);
    }
    distributed_fail(DistributedCause::network, "store: the server at ", host_, ":", port_, " is gone (key ", subject,
                     "). The process that started it, usually rank 0, has ended.");
  }
  give_back(std::move(fd));
  std::vector<std::string> values;
  for (wire::Reader r(answer); !r.rest().empty();) values.emplace_back(r.text());
  return values;
}

void TCPStore::set(const std::string& key, const std::string& value) { ask('S', {key, value}, timeout(), key); }
std::string TCPStore::get(const std::string& key) { return ask('G', {key}, timeout(), key).at(0); }

int64_t TCPStore::add(const std::string& key, int64_t amount) {
  auto answer = ask('A', {key, std::to_string(amount)}, timeout(), key);
  if (answer.size() > 1) distributed_fail(DistributedCause::store, "add: the value of key ", key, " is no number.");
  return detail::stored_number(key, answer.at(0));
}

void TCPStore::wait(const Keys& keys, Milliseconds timeout) {
  if (!keys.empty()) ask('W', keys, timeout, keys[0]);
}

bool TCPStore::check(const Keys& keys) { return ask('C', keys, timeout(), keys.empty() ? "" : keys[0]).at(0) == "1"; }

std::string TCPStore::compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
  return ask('X', {key, expected, desired}, timeout(), key).at(0);
}

bool TCPStore::delete_key(const std::string& key) { return ask('D', {key}, timeout(), key).at(0) == "1"; }
int64_t TCPStore::num_keys() { return detail::stored_number("", ask('N', {}, timeout(), "").at(0)); }
void TCPStore::append(const std::string& key, const std::string& value) { ask('P', {key, value}, timeout(), key); }
Keys TCPStore::keys(const std::string& prefix) { return ask('K', {prefix}, timeout(), prefix); }

std::vector<std::string> TCPStore::multi_get(const Keys& keys) {
  return keys.empty() ? std::vector<std::string>{} : ask('M', keys, timeout(), keys[0]);
}

void TCPStore::multi_set(const Keys& keys, const std::vector<std::string>& values) {
  VESTA_CHECK(keys.size() == values.size(), value, "multi_set: expected a value for each of ", keys.size(),
              " keys, got ", values.size(), " (values).");
  std::vector<std::string> both;
  for (size_t i = 0; i < keys.size(); ++i) both.push_back(keys[i]), both.push_back(values[i]);
  if (!keys.empty()) ask('m', both, timeout(), keys[0]);
}

}  // namespace vesta
