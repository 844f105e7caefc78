#include <vesta/multiprocessing/reservation.h>

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include <vesta/core/base/error.h>

namespace vesta::shared {
namespace {

constexpr uint64_t kPiece = uint64_t(8) << 20;        // about 3 ms of work, which a signal may have to wait
constexpr uint64_t kLookFrom = uint64_t(8) << 20;     // a smaller step is no more dangerous than any malloc
constexpr uint64_t kAlwaysLeft = uint64_t(16) << 20;  // what everything else needs to continue
constexpr uint64_t kNoLimit = uint64_t(1) << 60;

std::optional<uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  if (file >> value) return value;
  return {};
}

/// Sums the fields of a file of `name value` lines.
uint64_t sum_of(const std::string& path, std::initializer_list<const char*> names) {
  std::ifstream file(path);
  std::string name;
  uint64_t value = 0, sum = 0;
  while (file >> name >> value) {
    if (std::any_of(names.begin(), names.end(), [&](const char* n) { return name == n; })) sum += value;
    file.ignore(16, '\n');
  }
  return sum;
}

/// Returns the bytes that one control group leaves. Cached files count as free, because the kernel drops them first.
std::optional<uint64_t> left_in(const std::string& folder, bool v2) {
  const auto limit = number_in(folder + (v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  const auto used = number_in(folder + (v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!limit || !used || *limit >= kNoLimit) return {};
  const char* stat = "/memory.stat";
  const uint64_t files = v2 ? sum_of(folder + stat, {"inactive_file", "active_file"})
                            : sum_of(folder + stat, {"total_inactive_file", "total_active_file"});
  const uint64_t taken = *used - std::min(*used, files);
  return *limit - std::min(*limit, taken);
}

void keep_smaller(std::optional<uint64_t>& smallest, std::optional<uint64_t> other) {
  if (other) smallest = std::min(smallest.value_or(*other), *other);
}

/// Returns the bytes that the control groups leave. Lines of /proc/self/cgroup are `id:controllers:path`; version 2
/// has no controllers.
std::optional<uint64_t> left_in_groups() {
  std::optional<uint64_t> smallest;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && controllers != "memory") continue;
    const bool v2 = controllers.empty();
    const std::string mount = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    std::string path = line.substr(second + 1);
    while (true) {
      keep_smaller(smallest, left_in(mount + path, v2));
      const auto slash = path.find_last_of('/');
      if (slash == std::string::npos) break;
      path.resize(slash);
    }
  }
  return smallest;
}

/// A guard that blocks all signals of this thread: an interrupted fallocate starts anew, so a timer that fires often
/// would keep it from ever ending.
class SignalsLater {
 public:
  SignalsLater() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsLater() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsLater(const SignalsLater&) = delete;

 private:
  sigset_t before_;
};

[[noreturn]] void fail_reserving(uint64_t bytes, const std::string& why) {
  fail(Cause::memory, "shared memory: tried to reserve ", bytes, " bytes, ", why,
       ". Share less at a time, or give the process (its container, its control group) more memory.");
}

}  // namespace

std::optional<uint64_t> memory_headroom() {
  std::optional<uint64_t> smallest = left_in_groups();
  if (const uint64_t kib = sum_of("/proc/meminfo", {"MemAvailable:", "SwapFree:"})) keep_smaller(smallest, kib << 10);
  return smallest;
}

void give_back(int fd, uint64_t offset, uint64_t bytes) noexcept {
  static const uint64_t page = uint64_t(sysconf(_SC_PAGESIZE));
  const uint64_t begin = (offset + page - 1) / page * page, end = (offset + bytes) / page * page;
  if (begin >= end) return;
  const int error = errno;
  while (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(begin), off_t(end - begin)) && errno == EINTR)
    continue;
  errno = error;
}

void reserve(int fd, uint64_t offset, uint64_t bytes) {
  rlimit size{};
  if (getrlimit(RLIMIT_FSIZE, &size) == 0 && size.rlim_cur != RLIM_INFINITY && offset + bytes > size.rlim_cur) {
    fail_reserving(bytes, text("but files of this process end at ", uint64_t(size.rlim_cur),  // else: SIGXFSZ
                               " bytes (ulimit -f)"));
  }
  if (bytes >= kLookFrom) {
    const auto left = memory_headroom();
    if (left && bytes + kAlwaysLeft > *left) fail_reserving(bytes, text("but only ", *left, " are left"));
  }
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t piece = std::min(kPiece, bytes - done);
    int code = 0;
    {
      SignalsLater quiet;
      if (fallocate(fd, 0, off_t(offset + done), off_t(piece))) code = errno;
    }
    if (code == EINTR) continue;
    if (code) {
      give_back(fd, offset, done + piece);
      fail_reserving(bytes, text("but the system refused: ", std::strerror(code)));
    }
    done += piece;
  }
}

}  // namespace vesta::shared
