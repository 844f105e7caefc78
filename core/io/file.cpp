#include <vesta/core/io/file.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace vesta::io {
namespace {

constexpr uint64_t kMaxStep = uint64_t(1) << 30;  // Linux moves at most 2 GiB in one call

[[noreturn]] void fail_on(const std::string& path, const char* what) { throw FileError(errno, path, what); }

}  // namespace

FileError::FileError(int code, std::string path, const std::string& what)
    : Error(Cause::runtime, what + ": " + path + ": " + std::strerror(code)), code_(code), path_(std::move(path)) {}

File File::open(const std::string& path) {
  File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC), path);
  if (file.fd_ < 0) fail_on(path, "open");
  struct stat s;
  if (::fstat(file.fd_, &s) != 0) fail_on(path, "stat");
  if (S_ISDIR(s.st_mode)) throw FileError(EISDIR, path, "open");
  if (!S_ISREG(s.st_mode)) throw FileError(EINVAL, path, "open: expected a regular file");
  return file;
}

File File::create(const std::string& path) {
  File file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), path);
  if (file.fd_ < 0) fail_on(path, "create");
  return file;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

uint64_t File::size() const {
  struct stat s;
  if (::fstat(fd_, &s) != 0) fail_on(path_, "stat");
  return uint64_t(s.st_size);
}

void File::read(void* to, uint64_t n, uint64_t offset) const {
  char* p = static_cast<char*>(to);
  while (n > 0) {
    ssize_t got = ::pread(fd_, p, size_t(std::min(n, kMaxStep)), off_t(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_on(path_, "read");
    if (got == 0) throw FileError(EIO, path_, "read: the file is shorter than expected");
    p += got, offset += uint64_t(got), n -= uint64_t(got);
  }
}

void File::write(const void* from, uint64_t n) const {
  const char* p = static_cast<const char*>(from);
  while (n > 0) {
    ssize_t put = ::write(fd_, p, size_t(std::min(n, kMaxStep)));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_on(path_, "write");
    p += put, n -= uint64_t(put);
  }
}

void File::sync() const {
  if (::fsync(fd_) != 0) fail_on(path_, "sync");
}

void replace_file(const std::string& path, void (*write)(const File& file, void* context), void* context) {
  static std::atomic<unsigned> count{0};
  std::string temporary = path + ".tmp" + std::to_string(::getpid()) + "." + std::to_string(count++);
  struct Remover {
    const std::string& path;
    bool armed = false;
    ~Remover() {
      if (armed) ::unlink(path.c_str());
    }
  } remover{temporary};
  {
    File file = File::create(temporary);
    remover.armed = true;
    write(file, context);
    file.sync();
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) fail_on(path, "rename");
  remover.armed = false;
  size_t slash = path.rfind('/');
  std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // written and in place; a folder that cannot be opened cannot be synced
  int failed = ::fsync(fd) != 0 && errno != EINVAL ? errno : 0;  // some file systems cannot sync folders
  ::close(fd);
  if (failed) throw FileError(failed, folder, "sync");
}

}  // namespace vesta::io
