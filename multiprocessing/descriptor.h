// A file descriptor that closes itself.
#pragma once
#include <utility>

#include <vesta/core/base/macros.h>

namespace vesta::shared {

/// An open file descriptor, or none (-1); closed when the object dies.
class VESTA_API Descriptor {
 public:
  Descriptor() = default;
  /// Takes over `fd`.
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    Descriptor(std::move(o)).swap(*this);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }

  /// Opens the same file once more: a new open file description, with its own locks. Error(runtime) if no descriptor
  /// is left or /proc is not mounted.
  static Descriptor reopen(int fd);
  /// Duplicates a descriptor (the same open file description), closed by exec. Error(runtime) if none is left.
  static Descriptor duplicate(int fd);

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// Releases the descriptor to the caller, who closes it.
  int release() { return std::exchange(fd_, -1); }
  void reset() noexcept;
  void swap(Descriptor& o) noexcept { std::swap(fd_, o.fd_); }

 private:
  int fd_ = -1;
};

/// Throws Error(runtime) that names the failed call and errno, with advice if the limit of descriptors was reached.
[[noreturn]] VESTA_API void fail_with_errno(const char* op, const char* call, int code);

}  // namespace vesta::shared
