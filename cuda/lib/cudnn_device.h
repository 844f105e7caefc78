// cuDNN on a device: a handle, and the plans that have been made.
#pragma once
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <vesta/cuda/device.h>
#include <vesta/cuda/lib/cudnn_graph.h>

namespace vesta::cuda::cudnn {

/// Plans of one kind of graph on one device, by everything that they depend on. Used by one thread at a time, which
/// holds `lock` (queueing is short).
template <class Key>
struct PlansOnDevice {
  static constexpr size_t kMost = 1024;
  std::mutex lock;
  Handle handle = nullptr;
  std::map<Key, std::optional<Plan>> plans;  // nothing: refused

  static PlansOnDevice& get(int device) {
    static auto& all = *new std::array<PlansOnDevice, kMaxDevices>;  // never destroyed: others may compute at exit
    return all[size_t(device)];
  }
  /// Makes the handle if there is none, and sets its stream. Raises Refused.
  void use(void* stream) {
    const Functions& f = Loaded::get().f;
    if (!handle) check(f.create(&handle), "cudnnCreate");
    check(f.set_stream(handle, stream), "cudnnSetStream");
  }
  /// Finds a plan, or makes it by make(target); null if there is none, with the reason the first time.
  template <class Make>
  const Plan* plan(const Key& key, const Make& make, std::string& why) {
    if (auto it = plans.find(key); it != plans.end()) return it->second ? &*it->second : nullptr;
    if (plans.size() >= kMost) plans.clear();
    std::optional<Plan>& made = plans[key];
    try {
      made = make(Target::of_handle(handle));
    } catch (const Refused& e) {
      why = e.what();
      return nullptr;
    }
    return &*made;
  }
};

}  // namespace vesta::cuda::cudnn
