// HostEngine: moves the bytes of large collectives between the ranks of one group, from host memory to host memory.
// Gloo's is a plug-in (gloo/engine.cpp).
//
// Calls block and come one at a time from the group's thread, with the same arguments on all ranks: the caller chooses
// `tag` so that ranks that do not agree never exchange data. A call that fails throws; `abort` makes a running call
// throw.
#pragma once
#include <memory>
#include <span>
#include <string>

#include <vesta/multiprocessing/engine.h>
#include <vesta/multiprocessing/process_group.h>

namespace vesta {

/// An elementwise combination of two arrays of `n` elements: to[i] = a[i] op b[i]; `to` may be either.
struct Reduction {
  void (*combine)(void* to, const void* a, const void* b, size_t n) = nullptr;
  size_t element_size = 0;
};

/// One message to or from a rank: its address and its number of bytes.
struct Part {
  void* data = nullptr;
  size_t bytes = 0;
};

/// An engine for values in host memory.
class HostEngine : public Engine {
 public:
  virtual void all_reduce(void* data, size_t count, const Reduction& r, uint32_t tag) = 0;
  virtual void broadcast(void* data, size_t bytes, int root, uint32_t tag) = 0;
  /// Reduces to the root. `data` is the input and, at the root, the output; on other ranks its contents are undefined
  /// afterwards.
  virtual void reduce(void* data, size_t count, const Reduction& r, int root, uint32_t tag) = 0;
  virtual void all_gather(const void* in, void* out, size_t bytes_each, uint32_t tag) = 0;
  virtual void gather(const void* in, void* out, size_t bytes_each, int root, uint32_t tag) = 0;
  virtual void scatter(const void* in, void* out, size_t bytes_each, int root, uint32_t tag) = 0;
  /// Sends to_send[i] to rank i and receives to_receive[i] from it, all at once; parts without bytes are skipped, and
  /// so is this rank itself. `slots[i]` is the tag of the pair, the same on both sides.
  virtual void exchange(std::span<const Part> to_send, std::span<const Part> to_receive,
                        std::span<const uint64_t> slots) = 0;
  /// A message to or from a rank that was started and can be waited for. It is independent of collectives, and other
  /// threads may use it as well.
  class Transfer {
   public:
    virtual ~Transfer() = default;
    virtual void wait() = 0;
  };
  virtual std::unique_ptr<Transfer> send(void* data, size_t bytes, int to, uint64_t slot) = 0;
  virtual std::unique_ptr<Transfer> receive(void* data, size_t bytes, int from, uint64_t slot) = 0;
};

/// A function that makes the engine of a group whose ranks meet.
using HostEngineFactory = std::unique_ptr<HostEngine> (*)(const Meeting& meeting);

/// Makes a group over an engine, for tensors in host memory (tensors on devices are copied through host memory).
VESTA_API ProcessGroupPtr new_host_group(const std::string& backend, HostEngineFactory engine,
                                         std::shared_ptr<Store> store, int rank, int size, const GroupOptions& options);

}  // namespace vesta
