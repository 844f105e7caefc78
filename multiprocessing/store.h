// Store: keys and values that processes share to find each other. Keys are text, values are bytes.
//
// Every operation has the store's timeout and is ended by Ctrl-C. `get` waits for its key.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <vesta/multiprocessing/descriptor.h>
#include <vesta/multiprocessing/distributed_error.h>
#include <vesta/multiprocessing/deadline.h>

namespace vesta {

using Keys = std::vector<std::string>;

/// A shared map. Safe to use from several threads.
class VESTA_API Store {
 public:
  virtual ~Store() = default;
  /// Sets a value, replacing an old one.
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Returns a value, waiting until there is one. DistributedError(store) after the timeout.
  virtual std::string get(const std::string& key) = 0;
  /// Adds to a number (stored as text, 0 for a new key) and returns the sum.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
  /// Waits until all keys are there; DistributedError(store) names the missing ones.
  virtual void wait(const Keys& keys, Milliseconds timeout) = 0;
  void wait(const Keys& keys) { wait(keys, timeout()); }
  /// Returns whether all keys are there.
  virtual bool check(const Keys& keys) = 0;
  /// Sets `desired` if the value is `expected`, or if there is none and `expected` is empty. Returns the value after
  /// that; `expected` if there is none.
  virtual std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) = 0;
  /// Removes a key; returns whether it existed.
  virtual bool delete_key(const std::string& key) = 0;
  /// Returns the number of keys.
  virtual int64_t num_keys() = 0;
  /// Appends to a value; sets it if there is none.
  virtual void append(const std::string& key, const std::string& value) = 0;
  /// Returns the keys that begin with `prefix`, sorted.
  virtual Keys keys(const std::string& prefix = "") = 0;
  /// Returns several values, waiting for each.
  virtual std::vector<std::string> multi_get(const Keys& keys);
  virtual void multi_set(const Keys& keys, const std::vector<std::string>& values);
  /// Returns the address (numeric) at which others that use this store reach this machine; empty if it knows none.
  virtual std::string local_address() { return {}; }

  virtual Milliseconds timeout() const { return timeout_; }
  virtual void set_timeout(Milliseconds timeout) { timeout_ = timeout; }

 protected:
  Milliseconds timeout_ = std::chrono::seconds(300);
};

using StorePtr = std::shared_ptr<Store>;

/// A view of another store that puts a prefix and "/" before every key.
class VESTA_API PrefixStore : public Store {
 public:
  PrefixStore(std::string prefix, StorePtr store) : prefix_(std::move(prefix)), store_(std::move(store)) {}
  void set(const std::string& key, const std::string& value) override { store_->set(full(key), value); }
  std::string get(const std::string& key) override { return store_->get(full(key)); }
  int64_t add(const std::string& key, int64_t amount) override { return store_->add(full(key), amount); }
  using Store::wait;
  void wait(const Keys& keys, Milliseconds timeout) override { store_->wait(full(keys), timeout); }
  bool check(const Keys& keys) override { return store_->check(full(keys)); }
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) override {
    return store_->compare_set(full(key), expected, desired);
  }
  bool delete_key(const std::string& key) override { return store_->delete_key(full(key)); }
  /// Returns the number of keys in the underlying store, other prefixes included, as in PyTorch.
  int64_t num_keys() override { return store_->num_keys(); }
  void append(const std::string& key, const std::string& value) override { store_->append(full(key), value); }
  Keys keys(const std::string& prefix = "") override;
  std::vector<std::string> multi_get(const Keys& keys) override { return store_->multi_get(full(keys)); }
  void multi_set(const Keys& keys, const std::vector<std::string>& values) override {
    store_->multi_set(full(keys), values);
  }
  std::string local_address() override { return store_->local_address(); }
  Milliseconds timeout() const override { return store_->timeout(); }
  void set_timeout(Milliseconds timeout) override { store_->set_timeout(timeout); }
  const StorePtr& underlying_store() const { return store_; }
  const std::string& prefix() const { return prefix_; }

 private:
  std::string full(const std::string& key) const { return prefix_ + "/" + key; }
  Keys full(const Keys& keys) const;
  std::string prefix_;
  StorePtr store_;
};

/// A store in one process, for its threads.
class VESTA_API HashStore : public Store {
 public:
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  using Store::wait;
  void wait(const Keys& keys, Milliseconds timeout) override;
  bool check(const Keys& keys) override;
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) override;
  bool delete_key(const std::string& key) override;
  int64_t num_keys() override;
  void append(const std::string& key, const std::string& value) override;
  Keys keys(const std::string& prefix = "") override;
  std::string local_address() override { return "127.0.0.1"; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

/// A store in a file that the processes share: a log of changes, locked for each operation. When `world_size`
/// processes have opened it and the last of them closes it, the file is removed.
class VESTA_API FileStore : public Store {
 public:
  /// Opens or creates the file. With a `world_size` of -1 it is never removed.
  explicit FileStore(std::string path, int world_size = -1);
  ~FileStore() override;
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  using Store::wait;
  void wait(const Keys& keys, Milliseconds timeout) override;
  bool check(const Keys& keys) override;
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) override;
  bool delete_key(const std::string& key) override;
  int64_t num_keys() override;
  void append(const std::string& key, const std::string& value) override;
  Keys keys(const std::string& prefix = "") override;
  const std::string& path() const { return path_; }

 private:
  class Locked;
  void write(Locked& file, char kind, const std::string& key, const std::string& value);
  void read(Locked& file);
  std::string path_;
  int world_size_;
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
  int64_t read_to_ = 0;
  uint64_t inode_ = 0;
};

/// The options of a TCPStore.
struct TCPStoreOptions {
  int port = 29500;  // 0: the system chooses (master only)
  bool is_master = false;  // runs the server
  int num_workers = -1;  // -1: unknown; the store does not wait
  bool wait_for_workers = true;  // the constructor returns when num_workers have connected
  Milliseconds timeout = std::chrono::seconds(300);
  bool multi_tenant = false;  // a master that finds a server of this process at the port uses it
  int listen_fd = -1;  // a socket that listens already, for the master
};

class StoreServer;

/// A client of a server over TCP, which the master runs on a thread. Each operation takes a connection from a small
/// pool, so that a waiting thread does not block others.
class VESTA_API TCPStore : public Store {
 public:
  TCPStore(std::string host, const TCPStoreOptions& options);
  ~TCPStore() override;
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  using Store::wait;
  void wait(const Keys& keys, Milliseconds timeout) override;
  bool check(const Keys& keys) override;
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) override;
  bool delete_key(const std::string& key) override;
  int64_t num_keys() override;
  void append(const std::string& key, const std::string& value) override;
  Keys keys(const std::string& prefix = "") override;
  std::vector<std::string> multi_get(const Keys& keys) override;
  void multi_set(const Keys& keys, const std::vector<std::string>& values) override;
  std::string local_address() override;
  const std::string& host() const { return host_; }
  int port() const { return port_; }

 private:
  std::vector<std::string> ask(char what, const std::vector<std::string>& arguments, Milliseconds timeout,
                               const std::string& subject);
  int64_t greet();
  shared::Descriptor take_connection(Clock::time_point deadline);
  void give_back(shared::Descriptor connection);
  std::string host_;
  int port_;
  std::shared_ptr<StoreServer> server_;
  std::mutex mutex_;
  std::vector<shared::Descriptor> idle_;
  std::string local_address_;
};

}  // namespace vesta
