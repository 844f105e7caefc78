#include <vesta/cuda/constants.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <vesta/core/backend.h>
#include <vesta/cuda/allocator.h>
#include <vesta/cuda/stream.h>

namespace vesta::cuda {
namespace {

constexpr size_t kMostBytes = size_t(64) << 20;  // kept on a device
constexpr size_t kMostEach = kMostBytes / 4;

/// A table on the device, and its bytes on the host.
struct Constant {
  std::vector<char> bytes;
  StoragePtr memory;
  int stream;
  uint64_t hash;
  bool captured = false;
};
using Constants = std::list<Constant>;

uint64_t hash_of(const void* bytes, size_t nbytes, int stream) {
  uint64_t h = (nbytes ^ uint64_t(stream) << 48) * 0x9e3779b97f4a7c15u;
  const char* at = static_cast<const char*>(bytes);
  for (size_t i = 0; i < nbytes; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, at + i, std::min<size_t>(8, nbytes - i));
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
  }
  return h;
}

/// The tables of a device, the most recently used first. What is dropped is destroyed without the lock.
class ConstantShelf {
 public:
  /// Returns the memory of a table; null if it is not kept.
  StoragePtr find(const void* bytes, size_t nbytes, Stream stream, uint64_t hash, bool captured) {
    std::lock_guard guard(lock_);
    const auto [first, last] = places_.equal_range(hash);
    for (auto at = first; at != last; ++at) {
      Constant& c = *at->second;
      if (c.stream != stream.number() || c.bytes.size() != nbytes || std::memcmp(c.bytes.data(), bytes, nbytes) != 0)
        continue;
      if (captured && !std::exchange(c.captured, true)) bytes_ -= c.bytes.size();  // it stays, and makes no room
      order_.splice(order_.begin(), order_, at->second);
      return c.memory;
    }
    return {};
  }
  void add(Constant constant, int device) {
    Constants gone;
    std::lock_guard guard(lock_);
    bytes_ += constant.bytes.size();
    order_.push_front(std::move(constant));
    places_.emplace(order_.front().hash, order_.begin());
    drop(kMostBytes, gone);
    if (std::exchange(helps_, true)) return;
    allocator(device).add_oom_callback([device] { forget_constants(device); });
  }
  void clear() {
    Constants gone;
    std::lock_guard guard(lock_);
    drop(0, gone);
  }

 private:
  /// Moves tables to `gone`, the oldest first, until at most so many bytes are left.
  void drop(size_t most, Constants& gone) {
    for (auto at = order_.end(); bytes_ > most && at != order_.begin();) {
      --at;
      if (at->captured) continue;
      const auto [first, last] = places_.equal_range(at->hash);
      places_.erase(std::find_if(first, last, [&](const auto& place) { return place.second == at; }));
      bytes_ -= at->bytes.size();
      gone.splice(gone.begin(), order_, at++);
    }
  }

  std::mutex lock_;
  Constants order_;
  std::unordered_multimap<uint64_t, Constants::iterator> places_;
  size_t bytes_ = 0;
  bool helps_ = false;  // its allocator asks for memory
};

ConstantShelf& shelf_of(int device) {
  // never destroyed: other threads may compute as the process ends
  static auto& all = *new std::array<ConstantShelf, kMaxDevices>;
  return all[size_t(device)];
}

}  // namespace

StoragePtr constant_memory(const void* bytes, size_t nbytes, int device) {
  const Stream stream = current_stream(device);
  const bool captured = stream.is_captured();
  const uint64_t hash = hash_of(bytes, nbytes, stream.number());
  if (StoragePtr found = shelf_of(device).find(bytes, nbytes, stream, hash, captured)) return found;
  VESTA_CHECK(
      !captured || nbytes == 0, runtime,
      "constant_memory: expected a table that is kept while a graph is captured, got a new one. Run the step once "
      "on this stream before.");
  const Device place(DeviceType::cuda, int8_t(device));
  StoragePtr memory = Storage::allocate(nbytes, place);
  backend(DeviceType::cuda).transfer(memory->data(), place, bytes, Device(), nbytes, false);
  if (nbytes == 0 || nbytes > kMostEach) return memory;
  const char* first = static_cast<const char*>(bytes);
  shelf_of(device).add({{first, first + nbytes}, memory, stream.number(), hash}, device);
  return memory;
}

void forget_constants(int device) { shelf_of(device).clear(); }

}  // namespace vesta::cuda
