// The engine of the CPU: Gloo (libgloo), as a plug-in that libvesta loads when a group of backend "gloo" is made.
//
// What Gloo gives: a connection between each two ranks, an event loop, and ring, tree and pairwise algorithms.
//
// Note [Ending a call of Gloo]
// What it does not give is a way to end a running call from outside. Its only way, a wait that times out, closes all
// connections and signals the buffers that wait; but a buffer whose connection broke in the middle of a write is on no
// list any more and waits forever (seen with 1 of 60 killed ranks). So the buffers are ours: a device of our own makes
// contexts, which make buffers that wrap Gloo's, and `abort` ends all that exist. Everything else is passed on to
// Gloo.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include <vesta/multiprocessing/host_engine.h>
#include <vesta_build_identity.h>

namespace vesta {
namespace {

// Our own deadlines end an operation (process_group_core.h); Gloo's must only be later.
constexpr auto kNever = std::chrono::hours(1000);

/// The buffers of one group, kept so that all waits can be ended.
class Buffers {
 public:
  void add(gloo::transport::UnboundBuffer* b) {
    std::lock_guard lock(mutex_);
    all_.insert(b);
  }
  void remove(gloo::transport::UnboundBuffer* b) {
    std::lock_guard lock(mutex_);
    all_.erase(b);
  }
  void end_waits() {
    ended_ = true;
    std::lock_guard lock(mutex_);
    for (auto* b : all_) b->abortWaitRecv(), b->abortWaitSend();
  }
  void check() const {
    if (ended_) throw gloo::IoException("the group has ended");
  }

 private:
  std::mutex mutex_;
  std::set<gloo::transport::UnboundBuffer*> all_;
  std::atomic<bool> ended_{false};
};

/// A wrapper of a Gloo buffer whose waits can be ended.
class EndableBuffer : public gloo::transport::UnboundBuffer {
 public:
  EndableBuffer(std::shared_ptr<Buffers> buffers, std::unique_ptr<gloo::transport::UnboundBuffer> inner)
      : UnboundBuffer(inner->ptr, inner->size), buffers_(std::move(buffers)), inner_(std::move(inner)) {
    buffers_->add(inner_.get());
  }
  ~EndableBuffer() override { buffers_->remove(inner_.get()); }
  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override {
    buffers_->check();
    const bool done = inner_->waitRecv(rank, timeout);
    if (!done) buffers_->check();
    return done;
  }
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override {
    buffers_->check();
    const bool done = inner_->waitSend(rank, timeout);
    if (!done) buffers_->check();
    return done;
  }
  void abortWaitRecv() override { inner_->abortWaitRecv(); }
  void abortWaitSend() override { inner_->abortWaitSend(); }
  void send(int to, uint64_t slot, size_t offset, size_t bytes) override { inner_->send(to, slot, offset, bytes); }
  void recv(int from, uint64_t slot, size_t offset, size_t bytes) override { inner_->recv(from, slot, offset, bytes); }
  void recv(std::vector<int> from, uint64_t slot, size_t offset, size_t bytes) override {
    inner_->recv(std::move(from), slot, offset, bytes);
  }

 private:
  std::shared_ptr<Buffers> buffers_;
  std::unique_ptr<gloo::transport::UnboundBuffer> inner_;
};

/// A wrapper of a context of Gloo's transport.
class EndableContext : public gloo::transport::Context {
 public:
  EndableContext(std::shared_ptr<Buffers> buffers, std::shared_ptr<gloo::transport::Context> inner)
      : Context(inner->rank, inner->size), buffers_(std::move(buffers)), inner_(std::move(inner)) {}
  std::unique_ptr<gloo::transport::Pair>& getPair(int rank) override { return inner_->getPair(rank); }
  std::unique_ptr<gloo::transport::Pair>& createPair(int rank) override {
    inner_->setTimeout(getTimeout());
    return inner_->createPair(rank);
  }
  std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void* data, size_t bytes) override {
    return std::make_unique<EndableBuffer>(buffers_, inner_->createUnboundBuffer(data, bytes));
  }

 private:
  std::shared_ptr<Buffers> buffers_;
  std::shared_ptr<gloo::transport::Context> inner_;
};

/// A wrapper of a Gloo device, for one group.
class EndableDevice : public gloo::transport::Device {
 public:
  EndableDevice(std::shared_ptr<Buffers> buffers, std::shared_ptr<gloo::transport::Device> inner)
      : buffers_(std::move(buffers)), inner_(std::move(inner)) {}
  std::string str() const override { return inner_->str(); }
  const std::string& getPCIBusID() const override { return inner_->getPCIBusID(); }
  int getInterfaceSpeed() const override { return inner_->getInterfaceSpeed(); }
  std::shared_ptr<gloo::transport::Context> createContext(int rank, int size) override {
    return std::make_shared<EndableContext>(buffers_, inner_->createContext(rank, size));
  }

 private:
  std::shared_ptr<Buffers> buffers_;
  std::shared_ptr<gloo::transport::Device> inner_;
};

/// Returns the event loop for an address, shared by the groups of this process.
std::shared_ptr<gloo::transport::Device> device_for(const std::string& address) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, int>, std::weak_ptr<gloo::transport::Device>> devices;
  std::lock_guard lock(mutex);
  std::weak_ptr<gloo::transport::Device>& known = devices[{address, int(getpid())}];  // a forked child has no loop
  auto device = known.lock();
  if (!device) {
    gloo::transport::tcp::attr where;
    where.hostname = address;
    known = device = gloo::transport::tcp::CreateDevice(where);
  }
  return device;
}

/// A store that sends Gloo's rendezvous through the group's own connections. Its keys end in the number of the rank
/// that sets them ("rank_3", a host name, and "3", addresses); each rank sets the same ones in the same order.
class MeetingStore : public gloo::rendezvous::Store {
 public:
  explicit MeetingStore(const Meeting& m) : meeting_(m) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    const std::string value(data.begin(), data.end());
    known_[key] = value;
    meeting_.publish(key + '\n' + value);
  }
  std::vector<char> get(const std::string& key) override {
    const int rank = std::stoi(key.substr(key.find_last_not_of("0123456789") + 1));
    while (!known_.count(key)) {
      const std::string came = meeting_.read(rank);
      const size_t end = came.find('\n');
      known_[came.substr(0, end)] = came.substr(end + 1);
    }
    const std::string& value = known_[key];
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>&) override {}
  void wait(const std::vector<std::string>&, const std::chrono::milliseconds&) override {}

 private:
  const Meeting& meeting_;
  std::map<std::string, std::string> known_;
};

struct alignas(8) Sixteen {
  uint64_t parts[2];
};

/// Calls `f.template operator()<T>()` with a type of the given size: Gloo's options take types for sizes.
template <class F>
void with_size(size_t bytes, F f) {
  switch (bytes) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    case 8: return f.template operator()<uint64_t>();
    default: return f.template operator()<Sixteen>();
  }
}

class GlooTransfer : public HostEngine::Transfer {
 public:
  GlooTransfer(std::unique_ptr<gloo::transport::UnboundBuffer> buffer, bool sends)
      : buffer_(std::move(buffer)), sends_(sends) {}
  void wait() override { sends_ ? buffer_->waitSend(kNever) : buffer_->waitRecv(kNever); }

 private:
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
  bool sends_;
};

class GlooEngine : public HostEngine {
 public:
  explicit GlooEngine(const Meeting& m) : context_(std::make_shared<gloo::rendezvous::Context>(m.rank, m.size)) {
    // Gloo waits five times its timeout for a connection.
    context_->setTimeout(std::max<Milliseconds>(m.timeout / 5, Milliseconds(200)));
    MeetingStore store(m);
    std::shared_ptr<gloo::transport::Device> device = std::make_shared<EndableDevice>(buffers_, device_for(m.address));
    context_->connectFullMesh(store, device);
  }
  ~GlooEngine() override { context_->closeConnections(); }

  void all_reduce(void* data, size_t count, const Reduction& r, uint32_t tag) override {
    with_size(r.element_size, [&]<class T>() {
      gloo::AllreduceOptions o(context_);
      o.setOutput(static_cast<T*>(data), count);
      o.setReduceFunction(r.combine);
      prepare(o, tag);
      gloo::allreduce(o);
    });
  }
  void broadcast(void* data, size_t bytes, int root, uint32_t tag) override {
    gloo::BroadcastOptions o(context_);
    o.setOutput(static_cast<uint8_t*>(data), bytes);
    o.setRoot(root);
    prepare(o, tag);
    gloo::broadcast(o);
  }
  void reduce(void* data, size_t count, const Reduction& r, int root, uint32_t tag) override {
    with_size(r.element_size, [&]<class T>() {
      gloo::ReduceOptions o(context_);
      o.setOutput(static_cast<T*>(data), count);
      o.setReduceFunction(r.combine);
      o.setRoot(root);
      prepare(o, tag);
      gloo::reduce(o);
    });
  }
  void all_gather(const void* in, void* out, size_t bytes, uint32_t tag) override {
    gloo::AllgatherOptions o(context_);
    o.setInput(static_cast<uint8_t*>(const_cast<void*>(in)), bytes);
    o.setOutput(static_cast<uint8_t*>(out), bytes * size_t(context_->size));
    prepare(o, tag);
    gloo::allgather(o);
  }
  void gather(const void* in, void* out, size_t bytes, int root, uint32_t tag) override {
    gloo::GatherOptions o(context_);
    o.setInput(static_cast<uint8_t*>(const_cast<void*>(in)), bytes);
    if (context_->rank == root) o.setOutput(static_cast<uint8_t*>(out), bytes * size_t(context_->size));
    o.setRoot(root);
    prepare(o, tag);
    gloo::gather(o);
  }
  void scatter(const void* in, void* out, size_t bytes, int root, uint32_t tag) override {
    gloo::ScatterOptions o(context_);
    if (context_->rank == root) {
      std::vector<uint8_t*> parts;
      uint8_t* at = static_cast<uint8_t*>(const_cast<void*>(in));
      for (int i = 0; i < context_->size; ++i, at += bytes) parts.push_back(at);
      o.setInputs(parts, bytes);
    }
    o.setOutput(static_cast<uint8_t*>(out), bytes);
    o.setRoot(root);
    prepare(o, tag);
    gloo::scatter(o);
  }
  void exchange(std::span<const Part> to_send, std::span<const Part> to_receive,
                std::span<const uint64_t> slots) override {
    constexpr uint64_t kPrefix = uint64_t(0xA2) << 56;
    std::vector<std::unique_ptr<Transfer>> started;
    auto slot = [&](size_t r) { return kPrefix | slots[r]; };
    for (size_t i = 1; i < to_receive.size(); ++i) {
      const size_t r = (size_t(context_->rank) + to_receive.size() - i) % to_receive.size();
      if (to_receive[r].bytes) started.push_back(receive(to_receive[r].data, to_receive[r].bytes, int(r), slot(r)));
    }
    for (size_t i = 1; i < to_send.size(); ++i) {
      const size_t r = (size_t(context_->rank) + i) % to_send.size();
      if (to_send[r].bytes) started.push_back(send(to_send[r].data, to_send[r].bytes, int(r), slot(r)));
    }
    for (auto& transfer : started) transfer->wait();
  }
  std::unique_ptr<Transfer> send(void* data, size_t bytes, int to, uint64_t slot) override {
    auto buffer = context_->createUnboundBuffer(data, bytes);
    buffer->send(to, slot);
    return std::make_unique<GlooTransfer>(std::move(buffer), true);
  }
  std::unique_ptr<Transfer> receive(void* data, size_t bytes, int from, uint64_t slot) override {
    auto buffer = context_->createUnboundBuffer(data, bytes);
    buffer->recv(from, slot);
    return std::make_unique<GlooTransfer>(std::move(buffer), false);
  }
  void abort() noexcept override { buffers_->end_waits(); }

 private:
  template <class Options>
  static void prepare(Options& o, uint32_t tag) {
    o.setTag(tag);
    o.setTimeout(kNever);
  }
  std::shared_ptr<Buffers> buffers_ = std::make_shared<Buffers>();
  std::shared_ptr<gloo::rendezvous::Context> context_;
};

std::unique_ptr<HostEngine> make_engine(const Meeting& m) {
  try {
    return std::make_unique<GlooEngine>(m);
  } catch (const gloo::Exception& e) {
    distributed_fail(DistributedCause::network, "process group: Gloo cannot connect rank ", m.rank, " at ", m.address,
                     " (", e.what(), ").");
  }
}

ProcessGroupPtr make_group(std::shared_ptr<Store> store, int rank, int size, const GroupOptions& options) {
  return new_host_group("gloo", make_engine, std::move(store), rank, size, options);
}

}  // namespace
}  // namespace vesta

/// The build of this library (core/plug_in.h).
extern "C" __attribute__((visibility("default"))) const char vesta_plug_in_build[];
const char vesta_plug_in_build[] = VESTA_BUILD_IDENTITY;

/// Registers the backend; libvesta calls it when it has loaded this library.
extern "C" __attribute__((visibility("default"))) void vesta_plug_in() {
  vesta::register_backend("gloo", vesta::make_group);
}
