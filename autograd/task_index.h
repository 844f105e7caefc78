// The table in which a backward run finds what it knows about a node.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vesta::autograd {

class Node;

/// The map from nodes to their tasks: open addressing over pointers. It is emptied by a new generation stamp, so that
/// a small run after a large one does not pay for the large one's table.
class TaskIndex {
 public:
  struct Entry {
    Node* node = nullptr;
    uint32_t task = 0;
    uint32_t stamp = 0;
  };
  /// Returns n's entry, or the free place where it belongs.
  Entry& at(Node* n) {
    size_t mask = entries_.size() - 1;
    size_t i = (reinterpret_cast<uintptr_t>(n) >> 6) * 0x9e3779b97f4a7c15ull >> 20 & mask;
    while (taken(entries_[i]) && entries_[i].node != n) i = (i + 1) & mask;
    return entries_[i];
  }
  bool taken(const Entry& e) const { return e.stamp == stamp_; }
  uint32_t find(Node* n) { return at(n).task; }
  /// Fills a free place; keeps the table at most half full.
  void add(Entry& e, Node* n, uint32_t task) {
    e = {n, task, stamp_};
    if (++used_ * 2 <= entries_.size()) return;
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& o : old) {
      if (taken(o)) at(o.node) = o;
    }
  }
  void clear() {
    used_ = 0;
    if (++stamp_ == 0 || entries_.size() > kKept) {
      entries_ = std::vector<Entry>(kSmall);
      stamp_ = 1;
    }
  }

 private:
  static constexpr size_t kSmall = 64, kKept = 1 << 16;
  std::vector<Entry> entries_ = std::vector<Entry>(kSmall);
  size_t used_ = 0;
  uint32_t stamp_ = 1;
};

}  // namespace vesta::autograd
