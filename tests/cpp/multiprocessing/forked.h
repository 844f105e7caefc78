// Children for tests: forked processes that run a function and are always waited for.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <utility>

namespace vesta::test {

/// A forked child that runs `f`; its exit status is f's result (99 if it throws). It is killed at the end of the
/// scope.
class Forked {
 public:
  template <class F>
  explicit Forked(F f) : pid_(fork()) {
    if (pid_ != 0) return;
    int status = 99;
    try {
      status = f();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "child: %s\n", e.what());
    }
    _exit(status);
  }
  ~Forked() { kill(); }
  Forked(const Forked&) = delete;

  pid_t pid() const { return pid_; }
  /// Waits for the end; returns the exit status, or minus the signal.
  int join() {
    int status = 0;
    if (pid_ > 0) waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }
  void kill() {
    if (pid_ > 0) ::kill(pid_, SIGKILL), join();
  }

 private:
  pid_t pid_;
};

/// Returns the number of this process's open descriptors.
inline int open_descriptors() {
  int n = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) n += entry.exists() || true;
  return n;
}

}  // namespace vesta::test
