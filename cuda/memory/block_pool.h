// The free memory of one kind: for small or large requests, of the common pool or of one private pool.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <vesta/cuda/memory/allocator_snapshot.h>
#include <vesta/cuda/memory/bins.h>
#include <vesta/cuda/memory/block.h>

namespace vesta::cuda {

template <MemDriver D>
struct PoolPair;

/// Segments and their free and pending blocks.
template <MemDriver D>
struct BlockPool {
  bool small = false;
  bool no_va = false;  // the driver refused an address range: plain segments from now on
  PoolPair<D>* owner = nullptr;
  std::vector<std::unique_ptr<Bins<D>>> bins;  // by stream index
  BlockList<D> pending;
  BlockList<D> deferred;
  Segment<D>* segments = nullptr;
  Segment<D>* expandable = nullptr;

  /// Returns the free blocks of a stream; makes its bins on first use.
  VESTA_INLINE Bins<D>& bins_of(uint32_t stream) {
    if (stream < bins.size() && bins[stream]) [[likely]]
      return *bins[stream];
    return make_bins(stream);
  }
  [[gnu::noinline]] Bins<D>& make_bins(uint32_t stream) {
    if (stream >= bins.size()) bins.resize(stream + 1);
    bins[stream] = std::make_unique<Bins<D>>();
    return *bins[stream];
  }
  void link(Segment<D>* s) noexcept {
    s->pool = this;
    s->prev = nullptr;
    s->next = segments;
    if (segments) segments->prev = s;
    segments = s;
  }
  void unlink(Segment<D>* s) noexcept {
    (s->prev ? s->prev->next : segments) = s->next;
    if (s->next) s->next->prev = s->prev;
    if (expandable == s) expandable = nullptr;
  }
};

/// The purpose of a private pool. Memory of a capture stays in place while its graph may be replayed, and nothing is
/// queried or waited for during the capture; a user's pool is only kept apart.
enum class PoolKind : uint8_t { capture, user };

/// The common pool ({0, 0}) or a private one.
template <MemDriver D>
struct PoolPair {
  PoolId id;
  PoolKind kind = PoolKind::user;
  int references = 1;  // begin_pool and retain_pool less end_pool
  int scopes = 0;      // live use_pool objects
  BlockPool<D> small, large;

  PoolPair() {
    small.small = true;
    small.owner = large.owner = this;
  }
  /// Returns whether allocation here has ended: memory is returned when its blocks are freed.
  bool dead() const { return references == 0; }
  /// Returns whether cached memory may be returned to the driver.
  bool releasable() const { return dead() || kind == PoolKind::user; }
};

/// A link in a thread's stack of use_pool scopes.
struct PoolScopeLink {
  const void* allocator = nullptr;
  void* pools = nullptr;
  PoolScopeLink* outer = nullptr;
};

/// The calling thread's innermost scope. Libraries with hidden visibility have one each: open scopes in the library
/// that allocates.
inline constinit thread_local PoolScopeLink* innermost_pool_scope = nullptr;

}  // namespace vesta::cuda
