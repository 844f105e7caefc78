#include <vesta/multiprocessing/descriptor.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <vesta/core/base/error.h>

namespace vesta::shared {

void fail_with_errno(const char* op, const char* call, int code) {
  if (code == EMFILE) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    fail(Cause::runtime, op, ": expected a free file descriptor, got none: this process has reached its limit of ",
         uint64_t(limit.rlim_cur), " (", call, ": ", std::strerror(code), "). Raise it with ulimit -n.");
  }
  fail(code == ENOMEM ? Cause::memory : Cause::runtime, op, ": ", call, " failed: ", std::strerror(code), ".");
}

void Descriptor::reset() noexcept {
  if (fd_ >= 0) ::close(fd_);  // closes even on EINTR
  fd_ = -1;
}

Descriptor Descriptor::reopen(int fd) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  int made = -1;
  do made = ::open(path, O_RDWR | O_CLOEXEC);
  while (made < 0 && errno == EINTR);
  if (made < 0) fail_with_errno("shared memory", path, errno);
  return Descriptor(made);
}

Descriptor Descriptor::duplicate(int fd) {
  const int made = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (made < 0) fail_with_errno("descriptor", "dup", errno);
  return Descriptor(made);
}

}  // namespace vesta::shared
