// The server of TCPStore: one thread, one map, any number of clients. Internal to multiprocessing.
#pragma once
#include <set>
#include <thread>
#include <unordered_map>

#include <vesta/multiprocessing/store.h>
#include <vesta/multiprocessing/wire.h>

namespace vesta {

/// A server of a store at a port, until it is destroyed.
///
/// A request is a length, a letter, and strings; the answer is a length and strings. A request that waits is answered
/// later. A client that stops waiting closes its connection. Letters: S set, G get (waits), A add, W wait, C check, X
/// compare and set, D delete, N number of keys, P append, K keys, M get several (waits), m set several.
class StoreServer {
 public:
  /// Starts the server on a listening socket.
  explicit StoreServer(wire::Fd listener);
  ~StoreServer();
  int port() const { return port_; }

 private:
  struct Client {
    wire::Fd fd;
    std::string in, out;
    std::string pending;   // the waiting request
    size_t missing = 0;    // the keys it waits for
  };
  using Arguments = std::vector<std::string>;

  void run();
  void accept_client();
  void read_from(Client& c);
  void handle(Client& c, const std::string& request);
  bool has_all(const Arguments& keys) const;
  void wait_for_keys(Client& c, const Arguments& keys, const std::string& request);
  void changed(const std::string& key);
  void reply(Client& c, const Arguments& values);
  void flush(Client& c);
  void drop(int fd);

  wire::Fd listener_, stop_, epoll_;
  int port_;
  std::map<std::string, std::string> values_;
  std::unordered_map<int, Client> clients_;
  std::unordered_map<std::string, std::set<int>> waiting_;
  std::thread thread_;
};

}  // namespace vesta
