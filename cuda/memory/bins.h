// Free blocks of one stream, sorted into bins of similar sizes: eight bins per power of two, with a bit for each
// nonempty bin. Finding a block reads one bin and, if that has none, jumps to the next bit.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <vesta/cuda/memory/block.h>

namespace vesta::cuda {

template <MemDriver D>
class Bins {
 public:
  /// Returns the bin that holds blocks of `size`, a multiple of 512.
  static constexpr uint16_t bin_of(size_t size) {
    const int shift = 60 - __builtin_clzl(size);  // leaves the four leading bits, 8 to 15; 512 is bin 0
    return uint16_t(shift * 8 + int(size >> shift) - 56);
  }

  VESTA_INLINE void insert(Block<D>* b) noexcept {
    const uint16_t bin = b->bin = bin_of(b->size);
    Block<D>*& head = heads_[bin];
    b->list_prev = nullptr;
    b->list_next = head;
    if (head) head->list_prev = b;
    else words_[bin >> 6] |= uint64_t(1) << (bin & 63);
    head = b;
  }

  VESTA_INLINE void remove(Block<D>* b) noexcept {
    const uint16_t bin = b->bin;
    if (b->list_prev) b->list_prev->list_next = b->list_next;
    else if (!(heads_[bin] = b->list_next)) words_[bin >> 6] &= ~(uint64_t(1) << (bin & 63));
    if (b->list_next) b->list_next->list_prev = b->list_prev;
  }

  /// Returns a small block of at least `size`, nearly the smallest, or nullptr.
  VESTA_INLINE Block<D>* find(size_t size) const noexcept {
    const unsigned bin = bin_of(size);
    if (Block<D>* b = heads_[bin]; b && b->size == size) return b;  // the usual case in steps of fixed shapes
    if (Block<D>* b = best(heads_[bin], size, kScan)) return b;
    if (const int above = next_bin(bin + 1); above >= 0) return best(heads_[size_t(above)], size, kScan);
    return best(heads_[bin], size, ~0u);  // no larger bin: the rest of this bin is worth the time
  }

  /// Visits every block.
  template <class F>
  void visit(F&& f) const {
    for (const Block<D>* head : heads_)
      for (const Block<D>* b = head; b; b = b->list_next) f(b);
  }

 private:
  static constexpr unsigned kScan = 16;  // benchmarks/cpp/allocator.cpp, "random lifetimes"
  static constexpr size_t kBins = 320;   // to 2^49 bytes

  static Block<D>* best(Block<D>* b, size_t size, unsigned scan) noexcept {
    Block<D>* found = nullptr;
    for (; b && scan; b = b->list_next, --scan) {
      if (b->size < size || (found && b->size >= found->size)) continue;
      found = b;
      if (b->size == size) break;
    }
    return found;
  }

  int next_bin(unsigned from) const noexcept {
    if (from >= kBins) return -1;
    size_t word = from >> 6;
    uint64_t bits = words_[word] & (~uint64_t(0) << (from & 63));
    while (!bits) {
      if (++word == words_.size()) return -1;
      bits = words_[word];
    }
    return int(word << 6) + std::countr_zero(bits);
  }

  std::array<uint64_t, kBins / 64> words_{};
  std::array<Block<D>*, kBins> heads_{};
};

}  // namespace vesta::cuda
