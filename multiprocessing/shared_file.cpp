#include <vesta/multiprocessing/shared_file.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <vesta/core/base/error.h>
#include <vesta/multiprocessing/reservation.h>

namespace vesta::shared {
namespace {

constexpr uint64_t kFirstWindow = uint64_t(1) << 20;
constexpr uint64_t kLargestStep = uint64_t(256) << 20;
constexpr uint64_t kPage = 65536;  // the largest page size in use, so that a window can be mapped everywhere
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_SEAL;

uint64_t round_up(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

/// Runs a lock command on [offset, offset + bytes); returns 0 or errno. The kernel's answer is left in `type`.
int lock_command(int fd, int command, short& type, uint64_t offset, uint64_t bytes) {
  struct flock range{};
  range.l_type = type, range.l_whence = SEEK_SET, range.l_start = off_t(offset), range.l_len = off_t(bytes);
  int result = 0;
  do result = fcntl(fd, command, &range);
  while (result && errno == EINTR);
  type = range.l_type;
  return result ? errno : 0;
}
void lock(int fd, short type, uint64_t offset, uint64_t bytes) {
  if (int code = lock_command(fd, F_OFD_SETLK, type, offset, bytes)) fail_with_errno("shared memory", "lock", code);
}
bool conflicts(int fd, uint64_t offset, uint64_t bytes) {
  short type = F_WRLCK;
  return lock_command(fd, F_OFD_GETLK, type, offset, bytes) != 0 || type != F_UNLCK;
}

char* map(int fd, uint64_t offset, uint64_t bytes) {
  void* p = mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, off_t(offset));
  if (p == MAP_FAILED) {
    const int code = errno;
    fail(Cause::memory, "shared memory: expected room for a mapping of ", bytes, " bytes, got errno ", code,
         code == ENOMEM ? " (out of address space, ulimit -v, or of mappings)." : ".");
  }
  return static_cast<char*>(p);
}

}  // namespace

// ---- Extents ----

void Extents::insert(uint64_t offset, uint64_t bytes) {
  by_offset_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
  total_ += bytes;
}
void Extents::erase(std::map<uint64_t, uint64_t>::iterator at) {
  by_size_.erase({at->second, at->first});
  total_ -= at->second;
  by_offset_.erase(at);
}

void Extents::add_window(uint64_t offset, uint64_t bytes) {
  starts_.insert(offset);
  insert(offset, bytes);
}

bool Extents::take(uint64_t bytes, uint64_t& offset) {
  auto best = by_size_.lower_bound({bytes, 0});
  if (best == by_size_.end()) return false;
  const auto [size, at] = *best;
  erase(by_offset_.find(at));
  if (size > bytes) insert(at + bytes, size - bytes);
  offset = at;
  return true;
}

void Extents::give(uint64_t offset, uint64_t bytes) {
  auto next = by_offset_.find(offset + bytes);
  if (next != by_offset_.end() && !starts_.count(next->first)) {
    bytes += next->second;
    erase(next);
  }
  auto after = by_offset_.lower_bound(offset);
  if (after != by_offset_.begin() && !starts_.count(offset)) {
    auto before = std::prev(after);
    if (before->first + before->second == offset) {
      offset = before->first, bytes += before->second;
      erase(before);
    }
  }
  insert(offset, bytes);
}

// ---- The file ----

SharedFile* SharedFile::create() {
  Descriptor made(memfd_create("vesta", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made) fail_with_errno("shared memory", "memfd_create", errno);
  reserve(made.get(), 0, kHeaderBytes);
  if (fcntl(made.get(), F_ADD_SEALS, kSeals)) fail_with_errno("shared memory", "F_ADD_SEALS", errno);
  struct stat about{};
  if (fstat(made.get(), &about)) fail_with_errno("shared memory", "fstat", errno);
  lock(made.get(), F_WRLCK, 0, 1);  // "the owner lives": visible to all until this description is closed
  std::unique_ptr<SharedFile> file(new SharedFile);
  file->fd = std::move(made);
  file->device = about.st_dev, file->inode = about.st_ino, file->owner = true;
  file->map_header();
  file->header->magic = Header::kMagic;
  return file.release();
}

SharedFile* SharedFile::open(int fd) {
  struct stat about{};
  if (fstat(fd, &about)) fail_with_errno("shared memory", "fstat", errno);
  const int seals = fcntl(fd, F_GET_SEALS);
  VESTA_CHECK(seals >= 0 && (seals & F_SEAL_SHRINK) && uint64_t(about.st_size) >= kHeaderBytes, value,
              "shared memory: expected the descriptor of an arena, got another file.");
  std::unique_ptr<SharedFile> file(new SharedFile);
  file->fd = Descriptor::reopen(fd);
  file->device = about.st_dev, file->inode = about.st_ino;
  file->map_header();
  VESTA_CHECK(file->header->magic == Header::kMagic, value,
              "shared memory: expected the descriptor of an arena, got another memory file.");
  return file.release();
}

SharedFile::~SharedFile() {
  for (auto& [offset, window] : windows) munmap(window.address, size_t(window.bytes));
  if (header) munmap(header, kHeaderBytes);
}

void SharedFile::map_header() { header = reinterpret_cast<Header*>(map(fd.get(), 0, kHeaderBytes)); }

void SharedFile::map_window(uint64_t offset, uint64_t bytes) {
  windows[offset] = {bytes, map(fd.get(), offset, bytes)};
}

void SharedFile::grow(uint64_t bytes) {
  // Doubling keeps the number of windows small; a window that does not fit in memory may fit if it is no larger than
  // the request.
  const uint64_t least = round_up(bytes, kPage);
  const uint64_t wanted = std::max(least, std::clamp(end, kFirstWindow, kLargestStep) / kPage * kPage);
  const uint64_t at = round_up(end, kPage);
  uint64_t size = wanted;
  try {
    reserve(fd.get(), at, size);
  } catch (const Error& e) {
    if (e.cause() != Cause::memory || least == wanted) throw;
    reserve(fd.get(), at, size = least);
  }
  try {
    map_window(at, size);
  } catch (...) {
    give_back(fd.get(), at, size);
    throw;
  }
  end = at + size;
  extents.add_window(at, size);
}

uint64_t SharedFile::allocate(uint64_t bytes) {
  VESTA_CHECK(bytes < uint64_t(1) << 46, memory, "shared memory: tried to allocate ", bytes, " bytes.");
  bytes = round_up(std::max<uint64_t>(bytes, 1), kGranule);
  uint64_t offset = 0;
  reclaim(false);
  if (!extents.take(bytes, offset)) {
    reclaim(true);
    if (!extents.take(bytes, offset)) {
      grow(bytes);
      VESTA_ASSERT(extents.take(bytes, offset));
    }
  }
  live[offset] = {bytes, 1, false, false};
  return offset;
}

Handle SharedFile::handle_of(uint64_t offset) const {
  auto window = std::prev(windows.upper_bound(offset));
  const uint64_t bytes = live.at(offset).bytes;
  return {window->first, window->second.bytes, offset, bytes, bytes};
}
char* SharedFile::address_of(uint64_t offset) const {
  auto window = std::prev(windows.upper_bound(offset));
  return window->second.address + (offset - window->first);
}

void SharedFile::check(const Handle& h) const {
  struct stat about{};
  if (fstat(fd.get(), &about)) fail_with_errno("shared memory", "fstat", errno);
  const uint64_t size = uint64_t(about.st_size);
  const bool fits = h.window >= kHeaderBytes && h.window % kPage == 0 && h.window_bytes <= size &&
                    h.window_bytes % kPage == 0 && h.bytes % kGranule == 0 && h.window <= size - h.window_bytes &&
                    h.offset >= h.window && h.bytes <= h.window_bytes &&
                    h.offset - h.window <= h.window_bytes - h.bytes && h.offset % kGranule == 0 && h.bytes > 0;
  VESTA_CHECK(fits, value, "shared memory: expected a handle into an arena of ", size, " bytes, got window ", h.window,
              " + ", h.window_bytes, ", block ", h.offset, " + ", h.bytes, ".");
}

void SharedFile::acquire(const Handle& h) {
  VESTA_CHECK(h.nbytes <= h.bytes, value, "shared memory: expected at most ", h.bytes, " bytes of a block, got ",
              h.nbytes, ".");
  if (auto known = live.find(h.offset); known != live.end()) {
    VESTA_CHECK(known->second.bytes == h.bytes, value, "shared memory: expected a block of ", known->second.bytes,
                " bytes, got a handle of ", h.bytes, ".");
    ++known->second.count;
    return;
  }
  if (owner) {  // one of its own blocks came back
    auto known = lent.find(h.offset);
    VESTA_CHECK(known != lent.end() && known->second == h.bytes, value,
                "shared memory: expected the handle of a block in use, got one of a block that was given back.");
    lent_bytes -= h.bytes;
    lent.erase(known);
    live[h.offset] = {h.bytes, 1, true, false};
    return;
  }
  check(h);
  VESTA_CHECK(conflicts(fd.get(), h.offset, h.bytes) || owner_is_dead(), value,
              "shared memory: expected a block that somebody holds, got the handle of one that was given back. Send it "
              "through the queues and pipes of vesta.multiprocessing.");
  if (auto window = windows.find(h.window); window == windows.end()) map_window(h.window, h.window_bytes);
  else
    VESTA_CHECK(window->second.bytes == h.window_bytes, value, "shared memory: expected a window of ",
                window->second.bytes, " bytes, got ", h.window_bytes, ".");
  lock(fd.get(), F_RDLCK, h.offset, h.bytes);
  live[h.offset] = {h.bytes, 1, true, false};
}

void SharedFile::lock_through(int other, uint64_t offset) {
  Live& block = live.at(offset);
  lock(other, F_RDLCK, offset, block.bytes);
  block.lent = true;
}

bool SharedFile::held_elsewhere(uint64_t offset, uint64_t bytes) const { return conflicts(fd.get(), offset, bytes); }
bool SharedFile::owner_is_dead() const { return !owner && !conflicts(fd.get(), 0, 1); }
bool SharedFile::in_use() const { return pins > 0 || !live.empty() || !lent.empty(); }

void SharedFile::take_back(uint64_t offset, uint64_t bytes) noexcept { extents.give(offset, bytes); }

void SharedFile::release(uint64_t offset) noexcept {
  auto at = live.find(offset);
  if (at == live.end() || --at->second.count > 0) return;
  const Live block = at->second;
  if (block.pinned) {
    at->second.count = 1;  // forever
    return;
  }
  live.erase(at);
  if (owner) {
    if (!block.lent || !held_elsewhere(offset, block.bytes)) return take_back(offset, block.bytes);
    lent[offset] = block.bytes;
    lent_bytes += block.bytes;
    return;
  }
  short unlock = F_UNLCK;
  lock_command(fd.get(), F_OFD_SETLK, unlock, offset, block.bytes);
  if (owner_is_dead()) {  // nobody will use it again: the last holder's memory is freed at once
    if (!held_elsewhere(offset, block.bytes)) give_back(fd.get(), offset, block.bytes);
    return;
  }
  const uint64_t ticket = header->hinted.fetch_add(1);
  header->hint[ticket % Header::kHints].store(offset);
}

void SharedFile::reclaim(bool all) noexcept {
  if (!owner || lent.empty()) {
    if (owner) hints_read_ = header->hinted.load();
    return;
  }
  auto ask = [&](std::unordered_map<uint64_t, uint64_t>::iterator at) {
    if (held_elsewhere(at->first, at->second)) return std::next(at);
    lent_bytes -= at->second;
    take_back(at->first, at->second);
    return lent.erase(at);
  };
  const uint64_t hinted = header->hinted.load();
  if (all || hinted - hints_read_ > Header::kHints) {
    for (auto at = lent.begin(); at != lent.end();) at = ask(at);
  } else {
    for (uint64_t i = hints_read_; i != hinted; ++i) {
      auto at = lent.find(header->hint[i % Header::kHints].load());
      if (at != lent.end()) ask(at);
    }
  }
  hints_read_ = hinted;
}

// ---- Fork ----

void SharedFile::before_fork() noexcept {
  if (live.empty()) return;
  try {
    for_child_ = Descriptor::reopen(fd.get());
    for (auto at = live.begin(); at != live.end();) {  // neighbours share one lock
      const uint64_t begin = at->first;
      uint64_t stop = begin + at->second.bytes;
      for (++at; at != live.end() && at->first == stop; ++at) stop += at->second.bytes;
      lock(for_child_.get(), F_RDLCK, begin, stop - begin);
    }
  } catch (...) {  // no descriptor left: what is alive now stays forever rather than being used twice
    for_child_.reset();
    for (auto& [offset, block] : live) block.pinned = true;
  }
}

void SharedFile::after_fork_in_parent() noexcept {
  if (for_child_) {
    for (auto& [offset, block] : live) block.lent = true;
  }
  for_child_.reset();
}

void SharedFile::after_fork_in_child() noexcept {
  if (for_child_) fd.swap(for_child_);
  for_child_.reset();
  owner = false;
  lent.clear();
  lent_bytes = 0;
  extents = Extents();
}

}  // namespace vesta::shared
