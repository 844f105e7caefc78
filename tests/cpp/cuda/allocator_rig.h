// The allocator on a simulated device, with what programs do: allocate, queue kernels, free.
#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <vesta/cuda/memory/caching_allocator.h>

#include "sim_driver.h"

namespace sim {

using Cache = vesta::cuda::CachingAllocator<Device>;
using Block = Cache::Block;
using vesta::cuda::kGiB;
using vesta::cuda::kKiB;
using vesta::cuda::kMiB;
using vesta::cuda::Options;
using vesta::cuda::PoolType;
using vesta::cuda::StatType;

/// A block and the device's record of its owner.
struct Held {
  Block* block = nullptr;
  Owner owner;
};

/// An allocator on a device, which is told the owner of each block.
struct Rig {
  explicit Rig(const DeviceOptions& device_options = {}, const Options& options = {})
      : device(device_options), cache(0, device, options) {}

  Held get(size_t n, Device::Stream s = 0, int pool = 0) {
    Block* b = cache.allocate(n, s);
    return {b, device.own(b->data, b->size, pool)};
  }
  void put(Held& h) {
    if (!h.block) return;
    device.disown(h.owner);
    cache.free(h.block);
    h = {};
  }
  /// Queues a kernel that touches a block, on any stream; another stream is ordered after the block's own first, as
  /// any program that shares memory between streams must.
  void use(const Held& h, Device::Stream s, int64_t duration = 5) {
    if (s != h.block->stream) {
      device.order(h.block->stream, s);
      cache.record_stream(h.block, s);
    }
    device.kernel(s, {h.owner}, duration);
  }
  int64_t now(StatType type) const { return cache.stats().get(type).current; }
  int64_t peak(StatType type) const { return cache.stats().get(type).peak; }
  /// Returns the first complaint of the device, or "".
  std::string trouble() const { return device.violations().empty() ? "" : device.violations().front(); }

  Device device;
  Cache cache;
};

}  // namespace sim
