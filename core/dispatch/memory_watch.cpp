#include <vesta/core/dispatch/memory_watch.h>

#include <atomic>
#include <mutex>

#include <vesta/core/backend.h>

namespace vesta::profiler {
namespace {

/// A block that is watched: what frees it, and what it is called.
struct Watch {
  void* context;
  Storage::Deleter deleter;
  uint64_t generation;
  int64_t bytes;
  uint32_t number;
};

std::atomic<uint64_t> watching{0};  // the generation; 0: nobody watches
std::atomic<uint32_t> last_number{0};
std::mutex changing;  // of the watches of storages that exist

void freed(void* context) noexcept {
  auto* watch = static_cast<Watch*>(context);
  if (watching.load(std::memory_order_relaxed) == watch->generation)
    note_memory(watch->generation, watch->number, -watch->bytes);
  if (watch->deleter) watch->deleter(watch->context);
  delete watch;
}

uint32_t next_number() { return last_number.fetch_add(1, std::memory_order_relaxed) + 1; }

/// The CPU's Backend, whose allocations are noted.
class WatchedBackend final : public Backend {
 public:
  Backend* inner = nullptr;
  const char* name() const override { return inner->name(); }
  int device_count() const override { return inner->device_count(); }
  Memory allocate(size_t nbytes, Device device) override {
    Memory memory = inner->allocate(nbytes, device);
    const uint64_t generation = watching.load(std::memory_order_relaxed);
    if (generation == 0) return memory;
    auto* watch = new (std::nothrow) Watch{memory.context, memory.deleter, generation, int64_t(nbytes), next_number()};
    if (!watch) return memory;
    note_memory(generation, watch->number, int64_t(nbytes));
    memory.context = watch, memory.deleter = &freed;
    return memory;
  }
  void copy_bytes(void* to, const void* from, size_t nbytes, Device device) override {
    inner->copy_bytes(to, from, nbytes, device);
  }
  void run(const PointwisePlan& plan) override { inner->run(plan); }
  void synchronize(Device device) override { inner->synchronize(device); }
  void raise_later(const bool* flag, const char* message, Device device) override {
    inner->raise_later(flag, message, device);
  }
};
constinit WatchedBackend* watched = nullptr;  // made once; lives on, a thread may be in it

}  // namespace

bool watches_memory() noexcept { return watching.load(std::memory_order_relaxed) != 0; }

void watch_memory(bool on, uint64_t generation) {
  if (on && !watched) watched = new WatchedBackend;
  if (on == watches_memory()) return;
  if (on) {
    watched->inner = &backend(DeviceType::cpu);
    watching.store(generation, std::memory_order_relaxed);
    set_backend(DeviceType::cpu, watched);
  } else {
    watching.store(0, std::memory_order_relaxed);
    set_backend(DeviceType::cpu, watched->inner);
  }
}

Block block_of(const Storage& storage) {
  const uint64_t generation = watching.load(std::memory_order_relaxed);
  if (generation == 0 || storage.device().type() != DeviceType::cpu || !storage.resizable()) return {};
  std::lock_guard lock(changing);  // another thread may see it first at the same time
  if (storage.deleter() == &freed) {
    auto* watch = static_cast<Watch*>(storage.context());
    if (watch->generation == generation) return {watch->number, false};
    watch->generation = generation, watch->number = next_number();
    return {watch->number, true};
  }
  auto* watch = new Watch{storage.context(), storage.deleter(), generation, int64_t(storage.nbytes()), next_number()};
  const_cast<Storage&>(storage).free_by(&freed, watch);
  return {watch->number, true};
}

}  // namespace vesta::profiler
