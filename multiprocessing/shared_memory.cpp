#include <vesta/multiprocessing/shared_memory.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <utility>

#include <vesta/core/base/error.h>
#include <vesta/core/backend.h>
#include <vesta/multiprocessing/shared_file.h>

namespace vesta::shared {

/// The state of an Arena: its file, which is null before the first block and in a forked child.
struct ArenaState {
  SharedFile* file = nullptr;
  pid_t process = 0;
};

/// All files of this process, under one lock; never destroyed, because storages may outlive every static.
struct Registry {
  using Key = std::pair<dev_t, ino_t>;
  std::mutex mutex;
  std::map<Key, std::unique_ptr<SharedFile>> files;
  std::map<uintptr_t, SharedFile*> windows;  // by address
  std::set<ArenaState*> arenas;
  std::set<Attachments*> attachments;
  std::set<Lease*> leases;
  ArenaState own;  // the process's own arena

  static Registry& get();
  static void prepare_fork();
  static void continue_parent();
  static void continue_child();

  /// Returns the file that an address lies in and, in `offset`, where; null if it lies in none.
  SharedFile* find(const void* data, uint64_t& offset);
  void note_windows(SharedFile& file);
  void forget(SharedFile* file) noexcept;
  /// Closes a file that nobody uses.
  void settle(SharedFile* file) noexcept;
  void drop_dead() noexcept;
  uint64_t allocate(ArenaState& arena, uint64_t nbytes, SharedFile*& file);
  /// Returns a used block as memory whose deleter ends the use.
  Memory memory_over(SharedFile* file, uint64_t offset);
  void pin(SharedFile* file, Attachments& keep);
  int add(Lease& lease, const Storage& storage, Handle& handle);
  void close(Lease& lease) noexcept;
  Memory attach(int fd, const Handle& handle, Attachments* keep);
};

namespace {

/// What a storage returns when it dies.
struct Use {
  SharedFile* file;
  uint64_t offset;
};

void end_use(void* context) {
  std::unique_ptr<Use> use(static_cast<Use*>(context));
  Registry& r = Registry::get();
  std::lock_guard lock(r.mutex);
  use->file->release(use->offset);
  r.settle(use->file);
}

}  // namespace

Registry& Registry::get() {
  static Registry* registry = [] {
    pthread_atfork(prepare_fork, continue_parent, continue_child);
    return new Registry;
  }();
  return *registry;
}

void Registry::prepare_fork() {
  Registry& r = get();
  r.mutex.lock();
  for (auto& [key, file] : r.files) file->before_fork();
}
void Registry::continue_parent() {
  Registry& r = get();
  for (auto& [key, file] : r.files) file->after_fork_in_parent();
  r.mutex.unlock();
}
void Registry::continue_child() {
  Registry& r = get();
  for (Lease* lease : r.leases) {  // a message of the parent's; its copies here would keep the blocks alive
    for (int& fd : lease->descriptors_) ::close(std::exchange(fd, -1));
  }
  for (Attachments* keep : r.attachments) keep->files_.clear();
  for (ArenaState* arena : r.arenas) arena->file = nullptr;
  r.own = {};
  for (auto at = r.files.begin(); at != r.files.end();) {
    SharedFile& file = *at->second;
    ++at;
    file.pins = 0;
    file.after_fork_in_child();
    r.settle(&file);
  }
  r.mutex.unlock();
}

SharedFile* Registry::find(const void* data, uint64_t& offset) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  auto after = windows.upper_bound(address);
  if (after == windows.begin()) return nullptr;
  const auto [start, file] = *std::prev(after);
  for (const auto& [at, window] : file->windows) {
    if (reinterpret_cast<uintptr_t>(window.address) != start) continue;
    if (address - start >= window.bytes) return nullptr;
    offset = at + (address - start);
    return file->live.count(offset) ? file : nullptr;
  }
  return nullptr;
}

void Registry::note_windows(SharedFile& file) {
  for (const auto& [at, window] : file.windows) windows[reinterpret_cast<uintptr_t>(window.address)] = &file;
}

void Registry::forget(SharedFile* file) noexcept {
  for (const auto& [at, window] : file->windows) windows.erase(reinterpret_cast<uintptr_t>(window.address));
  if (own.file == file) own.file = nullptr;
  files.erase({file->device, file->inode});
}

void Registry::settle(SharedFile* file) noexcept {
  if (file->pins > 0 || !file->live.empty()) return;
  // The owner of blocks that others still hold keeps the file for later, so that sending one tensor at a time does not
  // make an arena each time.
  if (file->owner && own.file == file && !file->lent.empty()) return;
  forget(file);
}

void Registry::drop_dead() noexcept {
  for (Attachments* keep : attachments) {
    std::erase_if(keep->files_, [](SharedFile* file) {
      const bool dead = file->live.empty() && file->owner_is_dead();
      if (dead) --file->pins;
      return dead;
    });
  }
  for (auto at = files.begin(); at != files.end();) {
    SharedFile* file = at->second.get();
    ++at;
    settle(file);
  }
}

Memory Registry::memory_over(SharedFile* file, uint64_t offset) {
  try {
    return {file->address_of(offset), new Use{file, offset}, end_use};
  } catch (...) {
    file->release(offset);
    throw;
  }
}

uint64_t Registry::allocate(ArenaState& arena, uint64_t nbytes, SharedFile*& file) {
  VESTA_CHECK(!arena.process || arena.process == getpid(), runtime, "Arena: expected the process that made it (pid ",
              int64_t(arena.process), "), got its forked child (pid ", int64_t(getpid()), "). Make one here.");
  if (!arena.file) {
    std::unique_ptr<SharedFile> made(SharedFile::create());
    arena.file = made.get();
    if (&arena != &own) ++made->pins;
    files[{made->device, made->inode}] = std::move(made);
  }
  file = arena.file;
  try {
    const size_t before = file->windows.size();
    const uint64_t offset = file->allocate(nbytes);
    if (file->windows.size() != before) note_windows(*file);
    return offset;
  } catch (...) {
    settle(file);
    throw;
  }
}

void Registry::pin(SharedFile* file, Attachments& keep) {
  if (std::find(keep.files_.begin(), keep.files_.end(), file) != keep.files_.end()) return;
  keep.files_.push_back(file);
  ++file->pins;
}

int Registry::add(Lease& lease, const Storage& storage, Handle& handle) {
  uint64_t offset = 0;
  SharedFile* file = find(storage.data(), offset);
  VESTA_CHECK(file, value, "Lease: expected a storage in shared memory, got another. Share it first (share_memory_).");
  size_t index = size_t(std::find(lease.files_.begin(), lease.files_.end(), file) - lease.files_.begin());
  if (index == lease.files_.size()) {
    Descriptor opened = Descriptor::reopen(file->fd.get());
    lease.files_.push_back(file);
    lease.descriptors_.push_back(opened.get());
    opened.release();
  }
  file->lock_through(lease.descriptors_[index], offset);
  handle = file->handle_of(offset);
  handle.nbytes = storage.nbytes();
  return int(index);
}

void Registry::close(Lease& lease) noexcept {
  for (int fd : lease.descriptors_) {
    if (fd >= 0) ::close(fd);
  }
  lease.descriptors_.clear();
  lease.files_.clear();
}

Memory Registry::attach(int fd, const Handle& handle, Attachments* keep) {
  struct stat about{};
  if (fstat(fd, &about)) fail_with_errno("shared memory", "fstat", errno);
  auto known = files.find({about.st_dev, about.st_ino});
  if (known == files.end()) {
    drop_dead();
    std::unique_ptr<SharedFile> opened(SharedFile::open(fd));
    known = files.emplace(Key{opened->device, opened->inode}, std::move(opened)).first;
  }
  SharedFile* file = known->second.get();
  try {
    const size_t before = file->windows.size();
    file->acquire(handle);
    if (file->windows.size() != before) note_windows(*file);
    Memory memory = memory_over(file, handle.offset);
    if (keep && !file->owner) pin(file, *keep);
    return memory;
  } catch (...) {
    settle(file);
    throw;
  }
}

namespace {

/// Makes a storage that owns `memory`. Call it without the lock: if the header cannot be allocated, freeing takes the
/// lock.
StoragePtr storage_over(const Memory& memory, uint64_t nbytes) {
  try {
    return Storage::wrap(memory.data, size_t(nbytes), Device(), memory.context, memory.deleter);
  } catch (...) {
    memory.deleter(memory.context);
    throw;
  }
}

StoragePtr allocate_in(ArenaState& arena, uint64_t nbytes) {
  Registry& r = Registry::get();
  Memory memory;
  {
    std::lock_guard lock(r.mutex);
    SharedFile* file = nullptr;
    const uint64_t offset = r.allocate(arena, nbytes, file);
    memory = r.memory_over(file, offset);
  }
  return storage_over(memory, nbytes);
}

}  // namespace

// ---- What everybody calls ----

Arena::Arena() : state_(new ArenaState{nullptr, getpid()}) {
  Registry& r = Registry::get();
  std::lock_guard lock(r.mutex);
  r.arenas.insert(state_);
}
Arena::Arena(Arena&& o) noexcept : state_(std::exchange(o.state_, nullptr)) {}
Arena& Arena::operator=(Arena&& o) noexcept {
  std::swap(state_, o.state_);
  return *this;
}
Arena::~Arena() {
  if (!state_) return;
  Registry& r = Registry::get();
  std::lock_guard lock(r.mutex);
  r.arenas.erase(state_);
  if (SharedFile* file = state_->file) {
    --file->pins;
    r.settle(file);
  }
  delete state_;
}
StoragePtr Arena::allocate(uint64_t nbytes) { return allocate_in(*state_, nbytes); }
StoragePtr allocate_shared(uint64_t nbytes) { return allocate_in(Registry::get().own, nbytes); }

bool is_shared(const Storage& storage) {
  if (storage.device().type() != DeviceType::cpu || storage.resizable()) return false;  // blocks are lent to a storage
  Registry& r = Registry::get();
  std::lock_guard lock(r.mutex);
  uint64_t offset = 0;
  return r.find(storage.data(), offset) != nullptr;
}

void share(Storage& storage, Memory* old) {
  if (old) *old = {};
  VESTA_CHECK(storage.device().type() == DeviceType::cpu, device,
              "share_memory_: expected memory of the CPU, got one on ", storage.device(), ".");
  if (is_shared(storage)) return;
  Registry& r = Registry::get();
  Memory memory;
  {
    std::lock_guard lock(r.mutex);
    SharedFile* file = nullptr;
    const uint64_t offset = r.allocate(r.own, storage.nbytes(), file);
    memory = r.memory_over(file, offset);
  }
  const Memory left = storage.move_to(memory);
  if (old) *old = left;
  else if (left.deleter) left.deleter(left.context);
}

Lease::Lease() {
  Registry& r = Registry::get();
  std::lock_guard lock(r.mutex);
  r.leases.insert(this);
}
Lease::~Lease() {
  Registry& r = Registry::get();
  std::lock_guard lock(r.mutex);
  r.close(*this);
  r.leases.erase(this);
}
int Lease::add(const Storage& storage, Handle& handle) {
  Registry& r = Registry::get();
  std::lock_guard lock(r.mutex);
  return r.add(*this, storage, handle);
}
void Lease::close() noexcept {
  Registry& r = Registry::get();
  std::lock_guard lock(r.mutex);
  r.close(*this);
}

Attachments::Attachments() {
  Registry& r = Registry::get();
  std::lock_guard lock(r.mutex);
  r.attachments.insert(this);
}
Attachments::~Attachments() {
  Registry& r = Registry::get();
  std::lock_guard lock(r.mutex);
  r.attachments.erase(this);
  for (SharedFile* file : files_) {
    --file->pins;
    r.settle(file);
  }
}
size_t Attachments::size() const {
  Registry& r = Registry::get();
  std::lock_guard lock(r.mutex);
  return files_.size();
}

StoragePtr attach(int fd, const Handle& handle, Attachments* keep) {
  Registry& r = Registry::get();
  Memory memory;
  {
    std::lock_guard lock(r.mutex);
    memory = r.attach(fd, handle, keep);
  }
  return storage_over(memory, handle.nbytes);
}

void collect() {
  Registry& r = Registry::get();
  std::lock_guard lock(r.mutex);
  for (auto& [key, file] : r.files) file->reclaim(true);
  r.drop_dead();
}

std::vector<ArenaStats> stats() {
  Registry& r = Registry::get();
  std::lock_guard lock(r.mutex);
  std::vector<ArenaStats> all;
  for (const auto& [key, file] : r.files) {
    ArenaStats s{uint64_t(file->inode), file->owner, file->end, file->extents.total(), 0, 0, file->lent_bytes};
    for (const auto& [offset, block] : file->live) s.live += block.bytes, ++s.blocks;
    all.push_back(s);
  }
  return all;
}

}  // namespace vesta::shared
