// Memory that several processes use at once, without names. A tour:
//
// An *arena* is one memory file (memfd): it has no name, so nothing can fill up /dev/shm and nothing is left behind.
// The process that made it, its owner, allocates *blocks* of it as storages. The file grows in a few large *windows*,
// each reserved before it is used and mapped once per process, so that one descriptor per arena and process is enough
// for any number of blocks. Other processes get a descriptor of the file and a Handle, and attach.
//
// Note [Who holds a block]
// The owner may reuse a block when no other process holds it and no message on its way refers to it. Counts in shared
// memory would be wrong after every kill -9, so the kernel does the counting: a process that holds a block has a read
// lock on its bytes of the file, through its own open file description (F_OFD_SETLK), and a message carries a
// description that holds such locks, a Lease. Locks and leases vanish with the process or the socket that had them,
// however it died; the owner asks the kernel (F_OFD_GETLK) before it takes a block back. What a process holds is
// counted in that process, so a lock is taken and dropped once per block and process. Weighed: one file per tensor (a
// descriptor for each), counts per process in a shared table (a message that is lost leaks, a late one reads foreign
// data). A process that drops a block writes its offset into a ring of hints in the file's first page: the owner then
// asks about these and not about all. Hints may be lost or wrong; the kernel's answer cannot.
//
// Note [Fork]
// A forked child shares open file descriptions with its parent, locks included. Before the fork the parent opens
// another description with locks on all that it holds; the child uses that one, as a holder like any other. An arena
// still belongs to the parent: the child makes its own.
#pragma once
#include <cstdint>
#include <vector>

#include <vesta/core/backend.h>
#include <vesta/core/storage.h>

namespace vesta::shared {

/// The position of a block in the file of its arena, in bytes. With a descriptor of the file it is all that another
/// process needs.
struct Handle {
  uint64_t window = 0, window_bytes = 0;  // the part of the file that is mapped in one piece
  uint64_t offset = 0, bytes = 0;  // the block, inside of the window
  uint64_t nbytes = 0;  // what its storage uses of it
};

struct ArenaState;
class SharedFile;

/// An allocator of blocks in its own memory file. Safe to use from several threads; in a forked child allocate()
/// refuses.
class VESTA_API Arena {
 public:
  /// Makes an empty arena; the file appears with the first block.
  Arena();
  ~Arena();
  Arena(Arena&&) noexcept;
  Arena& operator=(Arena&&) noexcept;

  /// Returns a storage of `nbytes` in shared memory, not initialised, 64-byte aligned. Error(memory), with what is
  /// missing, if there is no room.
  StoragePtr allocate(uint64_t nbytes);

 private:
  ArenaState* state_;
};

/// Returns a storage in the process's own arena.
VESTA_API StoragePtr allocate_shared(uint64_t nbytes);
/// Moves a storage of the CPU to shared memory; every tensor over it goes with it. Does nothing if it is there
/// already. The old memory is freed, or passed to the caller in `old`, who frees it (deleter null: there is nothing to
/// free).
VESTA_API void share(Storage& storage, Memory* old = nullptr);
/// Returns whether a storage is a block of shared memory.
VESTA_API bool is_shared(const Storage& storage);

/// A lease that keeps blocks alive while a message about them is on its way. Its descriptors go with the message
/// (SCM_RIGHTS, or inherited by a new process), and the blocks stay as long as any process has these descriptors open.
class VESTA_API Lease {
 public:
  Lease();
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  /// Adds a block: fills its `handle`, and returns the index of its arena in descriptors(). Error(value) if the storage
  /// is not in shared memory.
  int add(const Storage& storage, Handle& handle);
  /// Returns the descriptors so far, one per arena; they belong to the lease.
  const std::vector<int>& descriptors() const { return descriptors_; }
  /// Closes the descriptors on this side; for after the message was sent.
  void close() noexcept;

 private:
  friend struct Registry;
  std::vector<SharedFile*> files_;  // of descriptors_, to find that of an arena
  std::vector<int> descriptors_;
};

/// A set of other processes' arenas that stay mapped between messages, so that the next message costs no mapping.
/// Blocks live without it.
class VESTA_API Attachments {
 public:
  Attachments();
  ~Attachments();
  Attachments(const Attachments&) = delete;
  Attachments& operator=(const Attachments&) = delete;
  /// Returns the number of arenas kept.
  size_t size() const;

 private:
  friend struct Registry;
  std::vector<SharedFile*> files_;
};

/// Returns a storage over a block of another process (or one of this process that came back). `fd` is a lease's
/// descriptor, received and still open; the caller closes it afterwards. Error(value) if descriptor and handle do not
/// fit or the lease is gone.
VESTA_API StoragePtr attach(int fd, const Handle& handle, Attachments* keep = nullptr);

/// Takes back blocks that others have dropped, and closes unused arenas of dead processes.
VESTA_API void collect();

/// The statistics of one arena.
struct ArenaStats {
  uint64_t id = 0;  // the file's number, the same in every process
  bool owner = false;  // made here
  uint64_t reserved = 0;  // bytes of the file
  uint64_t free = 0;  // bytes that the owner could allocate at once
  uint64_t live = 0;  // bytes of blocks that this process holds
  uint64_t blocks = 0;  // their number
  uint64_t lent = 0;  // bytes that the owner dropped and others may hold
};
/// Returns what this process has open, the oldest first.
VESTA_API std::vector<ArenaStats> stats();

}  // namespace vesta::shared
