#include <vesta/cuda/lib/library.h>

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include <vesta/core/base/warning.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {
namespace {
namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

/// Splits a list at `separator`, leaving out empty parts.
std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    if (end > at) parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

/// Returns whether VESTA_CUDA_LIBRARIES allows a library: it is unset or `on`, or a list that names the library.
bool is_wanted(const char* key) {
  const std::string list = environment("VESTA_CUDA_LIBRARIES");
  if (list.empty() || list == "on") return true;
  const auto keys = split(list, ',');
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// Returns the folder of our own library.
fs::path own_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&library_folders), &info) || !info.dli_fname) return {};
  std::error_code ignored;
  return fs::weakly_canonical(info.dli_fname, ignored).parent_path();
}

/// Returns the runtime's major version: 13 for CUDA 13.0.
int runtime_major() { return rt::version() / 1000; }

/// Returns the version in the name of a folder of Python's packages: 13 for cu13; 0 where the name has none.
int version_of_folder(const std::string& name) { return name.rfind("cu1", 0) == 0 ? std::atoi(name.c_str() + 2) : 0; }

/// Returns the names of a library's files, that of CUDA's version `major` first.
std::vector<const char*> files_of(const LibraryNames& names, int major) {
  std::vector<const char*> files = names.files;
  const std::string ending = fmt::format(".so.{}", major - names.behind);
  std::stable_partition(files.begin(), files.end(), [&](std::string_view file) { return file.ends_with(ending); });
  return files;
}

}  // namespace

bool is_emulated() { return std::string_view(rt::implementation()) != "CUDA"; }

std::vector<std::string> package_folders(const std::string& packages, int major) {
  std::error_code ignored;
  std::vector<std::pair<int, std::string>> found;  // with their rank
  for (const auto& package : fs::directory_iterator(fs::path(packages) / "nvidia", ignored)) {
    if (!fs::is_directory(package.path() / "lib", ignored)) continue;
    // cu13 holds libraries of CUDA 13; those of CUDA 12 have a folder each: cublas, cudnn
    const int version = version_of_folder(package.path().filename().string());
    const int rank = version == 0 ? 1 : version == major ? 0 : 2;
    found.emplace_back(rank, (package.path() / "lib").string());
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> folders;
  for (auto& [rank, folder] : found) folders.push_back(std::move(folder));
  return folders;
}

std::vector<std::string> library_folders() {
  std::vector<std::string> to = split(environment("VESTA_CUDA_LIB_DIR"), ':');
  if (is_emulated()) return to;
  const fs::path own = own_folder();
  if (!own.empty()) to.push_back(own.string());
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string home = environment(name); !home.empty()) to.push_back(home + "/lib64");
  }
  const auto add_packages = [&to](const fs::path& packages) {
    for (std::string& folder : package_folders(packages.string(), runtime_major())) to.push_back(std::move(folder));
  };
  // this library lies somewhere below site-packages, or in a build tree beside an environment
  for (fs::path p = own; p.has_relative_path(); p = p.parent_path()) add_packages(p);
  std::error_code ignored;
  for (const auto& python : fs::directory_iterator(environment("VIRTUAL_ENV") + "/lib", ignored)) {
    add_packages(python.path() / "site-packages");
  }
  to.push_back("/usr/local/cuda/lib64");
  return to;
}

Library::Library(const LibraryNames& names) : names_(names) {
  names_.files = files_of(names, runtime_major());
  if (!is_wanted(names.key)) {
    problem_ =
        fmt::format("{} is left out by VESTA_CUDA_LIBRARIES={}.", names.title, environment("VESTA_CUDA_LIBRARIES"));
    return;
  }
  std::vector<std::string> folders = library_folders();
  if (!is_emulated()) {
    for (const char* file : names_.files) {
      if (open_file(file, RTLD_NOLOAD)) return;
    }
  }
  for (const std::string& folder : folders) {
    if (open_in(folder)) return;
  }
  if (!is_emulated()) {
    for (const char* file : names_.files) {
      if (open_file(file, 0)) return;
    }
  }
  std::string where;
  for (const std::string& folder : folders) where += (where.empty() ? "" : ", ") + folder;
  if (problem_.empty()) problem_ = fmt::format("{} was not found in {} nor by the loader.", names.title, where);
}

bool Library::open_in(const std::string& folder) {
  std::error_code ignored;
  for (const char* file : names_.files) {
    const fs::path path = fs::path(folder) / file;
    if (fs::exists(path, ignored) && open_file(path.string(), 0)) return true;
  }
  return false;
}

bool Library::open_file(const std::string& file, int flags) {
  handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | flags);
  if (handle_) {
    path_ = file, problem_.clear();
  } else if (!flags && file.find('/') != std::string::npos) {  // it exists, and cannot be used
    const char* why = dlerror();
    problem_ = fmt::format("{} could not be loaded: {}.", names_.title, why ? why : file);
  }
  return handle_ != nullptr;
}

void* Library::symbol(const char* name) {
  if (!handle_) return nullptr;
  void* found = dlsym(handle_, name);
  if (!found && problem_.empty()) problem_ = fmt::format("{} ({}) has no function {}.", names_.title, path_, name);
  return found;
}

void warn_once(const std::string& text) {
  static std::mutex lock;
  static std::set<std::string> said;
  {
    std::lock_guard guard(lock);
    if (!said.insert(text).second) return;
  }
  warn(text);
}

}  // namespace vesta::cuda
