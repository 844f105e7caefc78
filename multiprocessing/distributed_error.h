// The errors of stores and process groups, with their causes: Python raises a class per cause.
#pragma once
#include <vesta/core/base/error.h>

namespace vesta {

/// The cause of a failure: a collective (backend), a connection (network), a store, or an empty queue.
enum class DistributedCause : uint8_t { general, backend, network, store, queue_empty };

/// An error after which processes that work together cannot continue: Python's `vesta.distributed.DistributedError`
/// and its subclasses.
class VESTA_API DistributedError : public Error {
 public:
  DistributedError(DistributedCause what, std::string message)
      : Error(Cause::runtime, std::move(message)), what_failed_(what) {}
  DistributedCause what_failed() const noexcept { return what_failed_; }

 private:
  DistributedCause what_failed_;
};

/// Throws DistributedError with the concatenated parts as its message.
template <class... Parts>
[[noreturn]] [[gnu::cold]] void distributed_fail(DistributedCause what, const Parts&... parts) {
  throw DistributedError(what, text(parts...));
}

}  // namespace vesta
