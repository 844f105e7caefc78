// The description of a collective that a rank calls, which other ranks compare with theirs.
//
// Note [The check that rides along]
// Ranks that call different things must always detect it, and report both call sites. PyTorch's check (its DETAIL mode)
// runs a collective of its own before each collective and costs 70% of a small one. Here nothing is sent before:
//   - A message of up to kEagerBytes is exchanged by our own sockets (mesh.h), and the fingerprint, about 150 bytes,
//     precedes the values in the same write. Every rank compares with every other.
//   - A larger one is moved by the engine (Gloo). Its messages are tagged with 32 bits of the fingerprint's hash and
//     the operation's number: ranks that call different things never receive each other's bytes (Gloo ends the process
//     where a message is longer than its buffer, and leaves garbage where it is shorter). The fingerprint itself goes
//     to the next rank of the ring while the engine works, and is compared when it is done; a monitor thread compares
//     it meanwhile if the engine is not done after 100 ms. If all neighbours agree, all agree.
// A rank that finds a difference tells all others (Mesh::abort), which takes one message. Weighed: headers inside
// Gloo's own messages (its collectives have no room for them, and a scratch copy of the first piece costs 1% of 1 MiB
// by itself); a header exchange over Gloo's buffers (three messages of its protocol instead of one of ours, through a
// thread of its own); comparing through the store (a round trip to rank 0 for each call). benchmarks/distributed.py
// --check measures what it costs.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <vesta/multiprocessing/process_group.h>

namespace vesta {

/// The description of one call of a collective. What must be the same on all ranks is compared; the call site is for
/// messages.
struct VESTA_API Fingerprint {
  Collective what = Collective::barrier;
  ReduceOp::Kind op = ReduceOp::sum;
  bool reduces = false;  // whether `op` means something
  int32_t root = -1;  // -1: none
  DType dtype = DType::float32;
  bool has_tensor = false;
  uint32_t tensors = 0;  // how many the call works on
  int64_t numel = 0;  // elements of all of them
  std::vector<int64_t> shape;  // of the first
  uint64_t shapes = 0;  // a hash of all shapes and dtypes
  std::string site;

  /// Describes a call on some tensors, one that reduces them or not; the caller sets `what`.
  static Fingerprint of(const std::vector<Tensor>& tensors, int root = -1);
  static Fingerprint of(const std::vector<Tensor>& tensors, ReduceOp op, int root = -1);
  /// Adds a tensor to the description.
  void add(IntSpan sizes, DType d);
  /// Returns the call as a user would write it: `all_reduce(SUM, float32 [3]) at train.py:10`.
  std::string describe() const;
  /// Returns whether two ranks call the same thing.
  bool same(const Fingerprint& o) const;
  /// Returns a 32-bit hash of what is compared and the number of the call.
  uint32_t tag(uint64_t sequence) const;
  /// Returns it as it is sent: a length, what is compared, the call site.
  std::string encode() const;
  /// Returns whether the received bytes begin with a fingerprint equal to this one's `encoded` bytes, except for the
  /// call site, and leaves what follows it in `rest`. Nothing is unpacked: that is the usual case.
  static bool same_bytes(std::string_view encoded, std::string_view came, std::string_view& rest);
  /// Reads a fingerprint and leaves what follows it in `rest`.
  static Fingerprint decode(std::string_view bytes, std::string_view& rest);
};

}  // namespace vesta
