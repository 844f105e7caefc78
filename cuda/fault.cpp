#include <vesta/cuda/fault.h>

#include <array>
#include <mutex>
#include <string>

#include <vesta/cuda/device.h>
#include <vesta/cuda/kernels/fault_record.h>

namespace vesta::cuda {
namespace { std::array<Fault*, kMaxDevices> records{}; }

Fault* fault_of(int device) {
  static std::mutex lock;
  std::lock_guard guard(lock);
  Fault*& f = records[size_t(device)];
  if (!f) {
    void* p = nullptr;
    VESTA_CUDA_CHECK(rt::host_malloc(&p, sizeof(Fault)));
    f = new (p) Fault{};
  }
  return f;
}

void raise_fault(int device) {
  Fault* f = records[size_t(device)];
  if (!f || __atomic_load_n(&f->set, __ATOMIC_ACQUIRE) == 0) [[likely]]
    return;
  const Fault found = *f;
  __atomic_store_n(&f->set, 0u, __ATOMIC_RELEASE);
  switch (FaultKind(found.kind)) {
    case FaultKind::index:
    case FaultKind::element_index:
      fail(found.kind == int(FaultKind::index) ? Cause::index : Cause::runtime, found.op, ": index ", found.value,
           " is out of bounds for dimension ", found.dim < 0 ? std::string() : std::to_string(found.dim) + " ",
           "with size ", found.bound, " (found on cuda:", device, "; the op's result is not valid).");
    case FaultKind::class_number:
      fail(Cause::index, found.op, ": Target ", found.value, " is out of bounds: expected 0 to ", found.bound - 1,
           " (found on cuda:", device, "; the op's result is not valid).");
    case FaultKind::zero_divisor: fail(Cause::runtime, found.op, ": ZeroDivisionError (found on cuda:", device, ").");
    case FaultKind::negative_exponent:
      fail(Cause::runtime, found.op, ": Integers to negative integer powers are not allowed (found on cuda:", device,
           ").");
    case FaultKind::probability:
      fail(Cause::runtime, found.op, ": expected probabilities between 0 and 1 (found on cuda:", device, ").");
  }
}

}  // namespace vesta::cuda
