// Files: descriptors that close themselves, complete reads and writes, errors that carry errno.
#pragma once
#include <cstdint>
#include <string>

#include <vesta/core/base/error.h>

namespace vesta::io {

/// An error of the operating system about a file; Python raises OSError (FileNotFoundError, ...) from `code`.
class VESTA_API FileError : public Error {
 public:
  FileError(int code, std::string path, const std::string& what);
  int code() const noexcept { return code_; }
  const std::string& path() const noexcept { return path_; }

 private:
  int code_;
  std::string path_;
};

/// An open file; closed when the object dies.
class File {
 public:
  /// Opens a regular file for reading; FileError if there is none.
  static File open(const std::string& path);
  /// Creates a file for writing; FileError if it exists already.
  static File create(const std::string& path);
  File(File&& o) noexcept : fd_(o.fd_), path_(std::move(o.path_)) { o.fd_ = -1; }
  File(const File&) = delete;
  ~File();

  uint64_t size() const;
  /// Reads exactly n bytes at `offset`; a shorter file is a FileError.
  void read(void* to, uint64_t n, uint64_t offset) const;
  /// Appends n bytes.
  void write(const void* from, uint64_t n) const;
  /// Waits until the contents are on the disk.
  void sync() const;
  const std::string& path() const { return path_; }

 private:
  File(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_;
  std::string path_;
};

/// Replaces `path` by what `write(file)` writes, or leaves it as it was. A temporary file in the same folder is
/// written, synced and renamed, then the folder is synced.
void replace_file(const std::string& path, void (*write)(const File& file, void* context), void* context);

}  // namespace vesta::io
