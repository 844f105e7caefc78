// FileStore: a file of records (kind, key, value), written under a lock on the file. Every process reads what is new.
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <vesta/multiprocessing/store_values.h>
#include <vesta/multiprocessing/wire.h>

namespace vesta {
namespace {

constexpr char kUsers[] = "\x01users";    // those that have not closed it
constexpr char kArrived[] = "\x01arrived";  // all that ever opened it
bool ours(const std::string& key) { return key[0] == '\x01'; }

}  // namespace

/// The open file, locked while this object lives.
class FileStore::Locked {
 public:
  explicit Locked(const std::string& path) {
    for (;;) {  // until the locked file is the one at the path: the last user removes it
      fd_ = wire::Fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
      if (!fd_) fail(path);
      while (flock(fd_.get(), LOCK_EX) != 0) {
        if (errno != EINTR) fail(path);
        check_interrupt();
      }
      struct stat mine{}, named{};
      if (fstat(fd_.get(), &mine)) fail(path);
      if (!stat(path.c_str(), &named) && named.st_ino == mine.st_ino && named.st_dev == mine.st_dev) {
        inode = mine.st_ino;
        size = mine.st_size;
        return;
      }
    }
  }
  int fd() const { return fd_.get(); }
  uint64_t inode = 0;
  int64_t size = 0;

 private:
  [[noreturn]] static void fail(const std::string& path) {
    distributed_fail(DistributedCause::store, "FileStore: cannot open ", path, " (", std::strerror(errno), ").");
  }
  wire::Fd fd_;
};

FileStore::FileStore(std::string path, int world_size) : path_(std::move(path)), world_size_(world_size) {
  add(kArrived, 1);
  add(kUsers, 1);
}

FileStore::~FileStore() {
  try {
    const int64_t users = add(kUsers, -1);
    if (world_size_ > 0 && users == 0 && add(kArrived, 0) >= world_size_) unlink(path_.c_str());
  } catch (const std::exception&) {  // the file is gone, or cannot be written any more
  }
}

void FileStore::read(Locked& file) {
  if (file.inode != inode_) {  // a new file under the old name
    values_.clear();
    read_to_ = 0;
    inode_ = file.inode;
  }
  std::string bytes(size_t(std::max<int64_t>(0, file.size - read_to_)), '\0');
  size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t n = pread(file.fd(), bytes.data() + got, bytes.size() - got, read_to_ + int64_t(got));
    if (n <= 0) distributed_fail(DistributedCause::store, "FileStore: cannot read ", path_, ".");
    got += size_t(n);
  }
  wire::Reader r(bytes);
  while (!r.rest().empty()) {
    char kind = 0;
    std::string key, value;
    try {
      kind = r.get<char>();
      key = r.text(), value = r.text();
    } catch (const DistributedError&) {  // a record that goes past the end
      kind = 0;
    }
    if (kind == 'S') values_[key] = value;
    else if (kind == 'P') values_[key] += value;
    else if (kind == 'D') values_.erase(key);
    else distributed_fail(DistributedCause::store, "FileStore: ", path_, " is no file of a FileStore. Remove it.");
  }
  read_to_ = file.size;
}

void FileStore::write(Locked& file, char kind, const std::string& key, const std::string& value) {
  const std::string record = wire::Writer().put(kind).put(std::string_view(key)).put(std::string_view(value)).take();
  const ssize_t n = pwrite(file.fd(), record.data(), record.size(), file.size);
  if (n != ssize_t(record.size())) {
    [[maybe_unused]] int ignored = ftruncate(file.fd(), file.size);
    distributed_fail(DistributedCause::store, "FileStore: cannot write ", path_, " (", std::strerror(errno), ").");
  }
  file.size += n;
  read(file);
}

void FileStore::set(const std::string& key, const std::string& value) {
  std::lock_guard lock(mutex_);
  Locked file(path_);
  read(file);
  write(file, 'S', key, value);
}

void FileStore::append(const std::string& key, const std::string& value) {
  std::lock_guard lock(mutex_);
  Locked file(path_);
  read(file);
  write(file, 'P', key, value);
}

std::string FileStore::get(const std::string& key) {
  wait({key}, timeout());
  std::lock_guard lock(mutex_);
  return values_[key];
}

int64_t FileStore::add(const std::string& key, int64_t amount) {
  std::lock_guard lock(mutex_);
  Locked file(path_);
  read(file);
  auto at = values_.find(key);
  const int64_t sum = amount + (at == values_.end() ? 0 : detail::stored_number(key, at->second));
  if (amount || at == values_.end()) write(file, 'S', key, std::to_string(sum));
  return sum;
}

void FileStore::wait(const Keys& keys, Milliseconds timeout) {
  const auto deadline = deadline_in(timeout);
  for (int pause = 1;; pause = std::min(pause * 2, 50)) {
    Keys missing;
    {
      std::lock_guard lock(mutex_);
      Locked file(path_);
      read(file);
      for (const std::string& key : keys) {
        if (!values_.count(key)) missing.push_back(key);
      }
    }
    if (missing.empty()) return;
    if (Clock::now() >= deadline) detail::wait_timed_out(missing, timeout);
    poll(nullptr, 0, pause);
    check_interrupt();
  }
}

bool FileStore::check(const Keys& keys) {
  std::lock_guard lock(mutex_);
  Locked file(path_);
  read(file);
  for (const std::string& key : keys) {
    if (!values_.count(key)) return false;
  }
  return true;
}

std::string FileStore::compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
  std::lock_guard lock(mutex_);
  Locked file(path_);
  read(file);
  auto at = values_.find(key);
  if (at == values_.end() ? !expected.empty() : at->second != expected) {
    return at == values_.end() ? expected : at->second;
  }
  write(file, 'S', key, desired);
  return desired;
}

bool FileStore::delete_key(const std::string& key) {
  std::lock_guard lock(mutex_);
  Locked file(path_);
  read(file);
  if (!values_.count(key)) return false;
  write(file, 'D', key, "");
  return true;
}

int64_t FileStore::num_keys() {
  std::lock_guard lock(mutex_);
  Locked file(path_);
  read(file);
  return std::count_if(values_.begin(), values_.end(), [](const auto& v) { return !ours(v.first); });
}

Keys FileStore::keys(const std::string& prefix) {
  std::lock_guard lock(mutex_);
  Locked file(path_);
  read(file);
  Keys r;
  for (const auto& [key, value] : values_) {
    if (!ours(key) && key.starts_with(prefix)) r.push_back(key);
  }
  return r;
}

}  // namespace vesta
