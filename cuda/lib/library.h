// Libraries that are opened when first needed, never linked.
#pragma once
#include <stdexcept>
#include <string>
#include <vector>

#include <vesta/core/base/macros.h>

namespace vesta::cuda {

/// The names of a library: for people, for VESTA_CUDA_LIBRARIES, and the file names to try, newest first. One that
/// ends in the major version of the CUDA runtime, less `behind`, is tried before the others.
struct LibraryNames {
  const char* title;
  const char* key;
  std::vector<const char*> files;
  int behind = 0;  // cuSOLVER 11 belongs to CUDA 12
};

/// One library, opened or not. Never closed: its static objects and threads would outlive it.
class VESTA_API Library {
 public:
  explicit Library(const LibraryNames& names);
  /// Returns whether the library is there and has all requested symbols.
  bool usable() const { return handle_ && problem_.empty(); }
  /// Returns a sentence that tells why it is not usable; empty if it is.
  const std::string& problem() const { return problem_; }
  const std::string& path() const { return path_; }
  /// Sets *to to a function; a missing name makes the library unusable.
  template <class F>
  void resolve(F** to, const char* name) {
    *to = reinterpret_cast<F*>(symbol(name));
  }
  /// Refuses the library, with a reason.
  void refuse(std::string why) { problem_ = std::move(why); }

 private:
  void* symbol(const char* name);
  bool open_in(const std::string& folder);
  bool open_file(const std::string& file, int flags);

  LibraryNames names_;
  void* handle_ = nullptr;
  std::string path_, problem_;
};

/// The exception for a missing library or a refused call; the op then runs on the host.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns whether devices are emulated: no real library can compute on their memory.
bool is_emulated();

/// Lists the folders that are searched, in order (without the loader's own).
VESTA_API std::vector<std::string> library_folders();
/// Lists the folders of Python's packages nvidia-* below `packages` (site-packages), in the order of search. Packages
/// of CUDA 12 and 13 may stand side by side: the folder of CUDA's version `major` comes first, that of another one
/// last.
VESTA_API std::vector<std::string> package_folders(const std::string& packages, int major);

/// Warns that a library is not used, once per message.
void warn_once(const std::string& text);

}  // namespace vesta::cuda
