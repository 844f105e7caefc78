// HostEngine: moves the bytes of large collectives between the ranks of one group, from host memory to host memory.
// Gloo's is a plug-in (gloo/engine.cpp).
//
// Calls block and come one at a time from the group's thread, with the same arguments on all ranks: who calls has
// chosen `tag` such that ranks that do not agree never meet. What fails throws; `abort` makes a running call throw.
#pragma once
#include <memory>
#include <span>
#include <string>

#include <vesta/multiprocessing/engine.h>
#include <vesta/multiprocessing/process_group.h>

namespace vesta {

/// A function that combines two arrays of `n` elements: to[i] = a[i] op b[i]; `to` may be either.
struct Reduction {
  void (*combine)(void* to, const void* a, const void* b, size_t n) = nullptr;
  size_t element_size = 0;
};

/// One message to or from each rank: where it lies and how many bytes.
struct Part {
  void* data = nullptr;
  size_t bytes = 0;
};

/// An engine for values in host memory.
class HostEngine : public Engine {
 public:
  virtual void all_reduce(void* data, size_t count, const Reduction& r, uint32_t tag) = 0;
  virtual void broadcast(void* data, size_t bytes, int root, uint32_t tag) = 0;
  /// `data` is the input and, at the root, the output; elsewhere it is scratch afterwards.
  virtual void reduce(void* data, size_t count, const Reduction& r, int root, uint32_t tag) = 0;
  virtual void all_gather(const void* in, void* out, size_t bytes_each, uint32_t tag) = 0;
  virtual void gather(const void* in, void* out, size_t bytes_each, int root, uint32_t tag) = 0;
  virtual void scatter(const void* in, void* out, size_t bytes_each, int root, uint32_t tag) = 0;
  /// Sends to_send[i] to rank i and receives to_receive[i] from it, all at once; parts without bytes are left out, as
  /// is this rank itself. `slots[i]` is the tag of the pair, the same on both sides.
  virtual void exchange(std::span<const Part> to_send, std::span<const Part> to_receive,
                        std::span<const uint64_t> slots) = 0;
  /// Starts a message to a rank, and waits for one; apart from collectives, by other threads as well.
  class Transfer {
   public:
    virtual ~Transfer() = default;
    virtual void wait() = 0;
  };
  virtual std::unique_ptr<Transfer> send(void* data, size_t bytes, int to, uint64_t slot) = 0;
  virtual std::unique_ptr<Transfer> receive(void* data, size_t bytes, int from, uint64_t slot) = 0;
};

/// Makes the engine of a group that meets.
using HostEngineFactory = std::unique_ptr<HostEngine> (*)(const Meeting& meeting);

/// Makes a group for tensors in host memory (tensors of devices are copied through it) over an engine.
VESTA_API ProcessGroupPtr new_host_group(const std::string& backend, HostEngineFactory engine,
                                         std::shared_ptr<Store> store, int rank, int size, const GroupOptions& options);

}  // namespace vesta
