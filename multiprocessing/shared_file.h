// One memory file in one process: its windows, blocks and locks. Nothing here is thread-safe; shared_memory.cpp holds
// the lock. For that file only.
#pragma once
#include <atomic>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include <sys/types.h>

#include <vesta/multiprocessing/descriptor.h>
#include <vesta/multiprocessing/shared_memory.h>

namespace vesta::shared {

inline constexpr uint64_t kHeaderBytes = 4096;
inline constexpr uint64_t kGranule = 64;

/// The first page of the file.
struct Header {
  static constexpr uint64_t kMagic = 0x31616e6572617356;  // "Vsarena1"
  static constexpr uint64_t kHints = 256;
  uint64_t magic;
  std::atomic<uint64_t> hinted;  // hints ever given
  std::atomic<uint64_t> hint[kHints];
};
static_assert(sizeof(Header) <= kHeaderBytes && std::atomic<uint64_t>::is_always_lock_free);

/// The free bytes of the file; neighbouring extents are merged, but not across windows.
class Extents {
 public:
  void add_window(uint64_t offset, uint64_t bytes);
  /// Takes the smallest extent that fits; returns false if none does.
  bool take(uint64_t bytes, uint64_t& offset);
  void give(uint64_t offset, uint64_t bytes);
  uint64_t total() const { return total_; }

 private:
  void insert(uint64_t offset, uint64_t bytes);
  void erase(std::map<uint64_t, uint64_t>::iterator at);
  std::map<uint64_t, uint64_t> by_offset_;
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  // (bytes, offset)
  std::set<uint64_t> starts_;                        // of windows
  uint64_t total_ = 0;
};

struct Window {
  uint64_t bytes = 0;
  char* address = nullptr;
};

/// A block that this process holds.
struct Live {
  uint64_t bytes = 0;
  uint32_t count = 0;   // storages over it
  bool lent = false;    // others may hold it
  bool pinned = false;  // a fork could not be accounted for: never taken back
};

class SharedFile {
 public:
  /// Makes a file that this process owns.
  static SharedFile* create();
  /// Opens the file behind another process's descriptor.
  static SharedFile* open(int fd);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;

  /// Takes a free block of at least `bytes`, growing the file if none is free; counts one use.
  uint64_t allocate(uint64_t bytes);
  /// Starts using the block of a handle, mapping its window if needed.
  void acquire(const Handle& handle);
  /// Ends one use of a block.
  void release(uint64_t offset) noexcept;
  /// Takes back unused blocks, of `all` or of those that hints name. For the owner.
  void reclaim(bool all) noexcept;

  Handle handle_of(uint64_t offset) const;
  char* address_of(uint64_t offset) const;
  /// Locks a block through another description of the file: that of a lease.
  void lock_through(int fd, uint64_t offset);
  bool owner_is_dead() const;
  bool in_use() const;

  /// Opens the description that a forked child will use, with the same locks.
  void before_fork() noexcept;
  void after_fork_in_parent() noexcept;
  /// Makes this process a holder like any other.
  void after_fork_in_child() noexcept;

  Descriptor fd;
  dev_t device = 0;
  ino_t inode = 0;
  bool owner = false;
  uint64_t end = kHeaderBytes;           // the reserved bytes of the file
  int pins = 0;                          // arenas and attachments that need it open
  Header* header = nullptr;
  std::map<uint64_t, Window> windows;    // by offset in the file
  std::map<uint64_t, Live> live;         // by offset
  std::unordered_map<uint64_t, uint64_t> lent;  // owner: dropped here, perhaps held elsewhere: offset, bytes
  uint64_t lent_bytes = 0;
  Extents extents;

 private:
  SharedFile() = default;
  void map_header();
  void map_window(uint64_t offset, uint64_t bytes);
  void grow(uint64_t bytes);
  void check(const Handle& handle) const;
  bool held_elsewhere(uint64_t offset, uint64_t bytes) const;
  void take_back(uint64_t offset, uint64_t bytes) noexcept;
  uint64_t hints_read_ = 0;
  Descriptor for_child_;
};

}  // namespace vesta::shared
