// The objects of the allocator: a segment is memory from the driver, cut into blocks; a use is another stream's claim
// on a block.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <vesta/cuda/memory/allocator_options.h>
#include <vesta/cuda/memory/mem_driver.h>

namespace vesta::cuda {

template <MemDriver D>
struct BlockPool;
template <MemDriver D>
struct Segment;
template <MemDriver D>
class Bins;

/// The state of a block.
///
/// free: in a bin of its stream. allocated: the caller's. pending: freed, but other streams used it and their events
/// are recorded. deferred: freed, but those events are still to be recorded (a graph is being captured, or the driver
/// refused). unmapped: addresses of an expandable segment without memory.
enum class BlockState : uint8_t { free, allocated, pending, deferred, unmapped };

/// One stream's claim on a block of another stream.
template <MemDriver D>
struct Use {
  typename D::Event event{};
  Use* next = nullptr;
  uint32_t stream = 0;  // index in the StreamTable
  bool recorded = false;
};

/// A range of device memory. Callers read the first four members and own `watched`; the rest belongs to the allocator.
template <MemDriver D>
struct Block {
  void* data = nullptr;
  size_t size = 0;  // its size: a multiple of 512 bytes
  size_t requested = 0;  // the size requested
  typename D::Stream stream{};

  Block* prev = nullptr;  // neighbours in the segment, by address
  Block* next = nullptr;
  Block* list_prev = nullptr;  // neighbours in a bin or a BlockList
  Block* list_next = nullptr;
  Segment<D>* segment = nullptr;
  Bins<D>* bins = nullptr;  // of its stream in its pool
  Use<D>* uses = nullptr;
  const char* op = nullptr;
  uint64_t freed_at = 0;  // its stream's count of frees after this one; 0: never used
  uint32_t stream_index = 0;  // in the StreamTable
  uint16_t bin = 0;
  BlockState state = BlockState::free;
  bool watched = false;  // set if its free must be reported

  uint8_t* begin() const { return static_cast<uint8_t*>(data); }
  uint8_t* end() const { return begin() + size; }
  /// Returns whether it is only a part of its segment.
  bool split() const { return prev || next; }
};

/// Memory that the driver gave in one piece, or an address range whose parts are mapped as needed.
template <MemDriver D>
struct Segment {
  uint8_t* base = nullptr;
  size_t size = 0;  // of the address range
  size_t mapped = 0;  // bytes that have memory
  size_t chunk = 0;  // bytes mapped at once; 0: not expandable
  BlockPool<D>* pool = nullptr;
  Block<D>* first = nullptr;
  typename D::Stream stream{};  // the stream it was made for
  Segment* prev = nullptr;
  Segment* next = nullptr;

  bool expandable() const { return chunk != 0; }
};

/// A pool of objects of one type, allocated in chunks; T has a member `next`.
template <class T>
class Slab {
 public:
  T* take() {
    if (!spare_) [[unlikely]]
      refill();
    T* t = spare_;
    spare_ = t->next;
    --count_;
    *t = T{};
    return t;
  }
  void give(T* t) noexcept {
    t->next = spare_;
    spare_ = t;
    ++count_;
  }
  /// Makes sure that the next `n` calls of take() need no memory, n <= 256.
  void reserve(size_t n) {
    if (count_ < n) [[unlikely]]
      refill();
  }

 private:
  static constexpr size_t kChunk = 256;
  void refill() {
    chunks_.push_back(std::make_unique<T[]>(kChunk));
    for (size_t i = kChunk; i-- > 0;) give(&chunks_.back()[i]);
  }
  std::vector<std::unique_ptr<T[]>> chunks_;
  T* spare_ = nullptr;
  size_t count_ = 0;
};

/// A list of blocks in the order they came.
template <MemDriver D>
struct BlockList {
  Block<D>* head = nullptr;
  Block<D>* tail = nullptr;

  void push_back(Block<D>* b) noexcept {
    b->list_prev = tail;
    b->list_next = nullptr;
    (tail ? tail->list_next : head) = b;
    tail = b;
  }
  void remove(Block<D>* b) noexcept {
    (b->list_prev ? b->list_prev->list_next : head) = b->list_next;
    (b->list_next ? b->list_next->list_prev : tail) = b->list_prev;
    b->list_prev = b->list_next = nullptr;
  }
};

}  // namespace vesta::cuda
