#include <vesta/cuda/fault.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include <vesta/cuda/device.h>
#include <vesta/cuda/kernels/fault_record.h>

namespace vesta::cuda {
namespace {
std::array<Fault*, kMaxDevices> records{};

/// A failure that the host found and that has not been raised yet.
struct Failure {
  int device;
  const void* who;
  std::exception_ptr error;
};
std::atomic<int> failures_there{0};
std::mutex failures_lock;
std::vector<Failure>& failures() {
  static auto* list = new std::vector<Failure>;  // kept: threads may end after static objects
  return *list;
}

/// Takes the first failure that `fits` out of the list; null if there is none.
template <class F>
std::exception_ptr take_failure(F fits) {
  if (!failures_there.load(std::memory_order_acquire)) [[likely]]
    return nullptr;
  std::lock_guard guard(failures_lock);
  auto& list = failures();
  const auto at = std::find_if(list.begin(), list.end(), fits);
  if (at == list.end()) return nullptr;
  std::exception_ptr error = std::move(at->error);
  list.erase(at);
  --failures_there;
  return error;
}
}  // namespace

void post_failure(int device, const void* who, std::exception_ptr error) {
  std::lock_guard guard(failures_lock);
  failures().push_back({device, who, std::move(error)});
  ++failures_there;
}

void retract_failure(const void* who) {
  while (take_failure([&](const Failure& f) { return f.who == who; })) {}
}

Fault* fault_of(int device) {
  Fault*& f = records[size_t(device)];
  if (Fault* made = __atomic_load_n(&f, __ATOMIC_ACQUIRE))
    return made;  // nearly always, at every launch that may report
  static std::mutex lock;
  std::lock_guard guard(lock);
  if (!f) {
    void* p = nullptr;
    VESTA_CUDA_CHECK(rt::host_malloc(&p, sizeof(Fault)));
    __atomic_store_n(&f, new (p) Fault{}, __ATOMIC_RELEASE);
  }
  return f;
}

void raise_fault(int device) {
  if (auto error = take_failure([&](const Failure& f) { return f.device == device; })) std::rethrow_exception(error);
  Fault* f = __atomic_load_n(&records[size_t(device)], __ATOMIC_ACQUIRE);
  if (!f || __atomic_load_n(&f->set, __ATOMIC_ACQUIRE) != 2) [[likely]]
    return;
  const Fault found = *f;
  unsigned there = 2;  // of several waiting threads, one raises
  if (!__atomic_compare_exchange_n(&f->set, &there, 0u, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
  switch (FaultKind(found.kind)) {
    case FaultKind::index:
    case FaultKind::element_index:
      fail(found.kind == int(FaultKind::index) ? Cause::index : Cause::runtime, found.op, ": index ", found.value,
           " is out of bounds for dimension ", found.dim < 0 ? std::string() : std::to_string(found.dim) + " ",
           "with size ", found.bound, " (found on cuda:", device, "; the op's result is not valid).");
    case FaultKind::class_number:
      fail(Cause::index, found.op, ": Target ", found.value, " is out of bounds: expected 0 to ", found.bound - 1,
           " (found on cuda:", device, "; the op's result is not valid).");
    case FaultKind::condition: fail(Cause::runtime, found.op, " (Found on cuda:", device, ".)");
    case FaultKind::negative_exponent:
      fail(Cause::runtime, found.op, ": Integers to negative integer powers are not allowed (found on cuda:", device,
           ").");
    case FaultKind::probability:
      fail(Cause::runtime, found.op, ": expected probabilities between 0 and 1 (found on cuda:", device, ").");
  }
}

}  // namespace vesta::cuda
