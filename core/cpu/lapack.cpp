#include <vesta/core/cpu/lapack.h>

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <new>
#include <span>
#include <sstream>
#include <vector>

#include <vesta/core/base/error.h>
#include <vesta/core/ops/linalg.h>

namespace vesta::cpu {
namespace {
namespace fs = std::filesystem;

/// The way a library spells the Fortran function `name`: prefix, name, suffix.
struct Spelling {
  const char *prefix, *suffix;
};
constexpr Spelling kSpellings[] = {{"", "_"}, {"scipy_", "_"}, {"scipy_", "_64_"}, {"", "_64_"}, {"", "64_"}};
/// The functions of all letters, and those of real and of complex numbers alone.
constexpr const char* kRoutines[] = {"geqrf", "trsm", "potrf", "getrf", "gesdd", "geev", "sytrf", "sytrs"};
constexpr const char* kRealNames[] = {"orgqr", "syevd"};
constexpr const char* kComplexNames[] = {"ungqr", "heevd", "hetrf", "hetrs"};

/// An open library that has the functions; never closed, its threads would outlive it.
struct Library {
  void* handle = nullptr;
  Spelling spelling{};
  void* find(const std::string& name) const {
    return dlsym(handle, (spelling.prefix + name + spelling.suffix).c_str());
  }
};

/// Returns whether a library has all functions under one spelling, and sets that.
bool is_complete(Library& library) {
  return std::any_of(std::begin(kSpellings), std::end(kSpellings), [&](const Spelling& spelling) {
    library.spelling = spelling;
    for (char letter : {'s', 'd', 'c', 'z'}) {
      const bool complex = letter == 'c' || letter == 'z';
      const auto has = [&](const char* name) { return library.find(letter + std::string(name)) != nullptr; };
      const std::span<const char* const> own = complex ? std::span<const char* const>(kComplexNames) : kRealNames;
      if (!std::all_of(std::begin(kRoutines), std::end(kRoutines), has)) return false;
      if (!std::all_of(std::begin(own), std::end(own), has)) return false;
    }
    return true;
  });
}

/// Opens a file; where it cannot be used, adds the reason to `problems`.
bool open(Library& library, const std::string& file, std::string& problems) {
  library.handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* why = library.handle ? nullptr : dlerror();
  if (library.handle && is_complete(library)) return true;
  problems += (problems.empty() ? "" : "; ") + (why ? std::string(why) : file + " lacks functions of LAPACK");
  return false;
}

/// Returns the files to try, in order: OpenBLAS of the system, of SciPy and NumPy, then any LAPACK of the system, which
/// may be the reference implementation: that takes up to 25 times as long.
std::vector<std::string> candidates() {
  if (const char* named = std::getenv("VESTA_LAPACK_LIBRARY"); named && *named) return {named};
  std::vector<std::string> files = {"libopenblas.so.0"};
  std::istringstream folders(lapack_folder());
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::vector<std::string> found;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      if (entry.path().filename().string().find("openblas") != std::string::npos) found.push_back(entry.path());
    }
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  files.emplace_back("liblapack.so.3");
  return files;
}

const Library& library(const char* op) {
  static std::mutex lock;
  static Library found;
  std::lock_guard guard(lock);
  if (found.handle) return found;
  std::string problems;
  Library next;
  for (const std::string& file : candidates()) {
    if (open(next, file, problems)) return found = next;
  }
  fail(Cause::runtime, op, ": expected LAPACK, found none (", problems,
       "). Install OpenBLAS (Debian: libopenblas0-openmp), NumPy or SciPy, or name a library in VESTA_LAPACK_LIBRARY.");
}

template <class T>
constexpr char kLetter = 's';
template <>
constexpr char kLetter<double> = 'd';
template <>
constexpr char kLetter<std::complex<float>> = 'c';
template <>
constexpr char kLetter<std::complex<double>> = 'z';

}  // namespace

void read_integers(const LapackInt* from, int64_t count, int32_t* to) {
  if (count > 0) read_integers(from, count, to, (uint64_t(from[0]) >> 32) == 0);
}

void read_integers(const LapackInt* from, int64_t count, int32_t* to, bool wide) {
  const auto* narrow = reinterpret_cast<const unsigned char*>(from);
  for (int64_t i = 0; i < count; ++i) {
    if (wide) to[i] = int32_t(from[i]);
    else std::memcpy(to + i, narrow + 4 * i, 4);
  }
}

void write_integers(const int64_t* from, int64_t count, LapackInt* to, bool wide) {
  auto* narrow = reinterpret_cast<unsigned char*>(to);
  for (int64_t i = 0; i < count; ++i) {
    const auto value = int32_t(from[i]);
    if (wide) to[i] = from[i];
    else std::memcpy(narrow + 4 * i, &value, 4);
  }
}

/// OpenBLAS's number of threads, which is one for the process, and what it is when nobody is inside. Its results depend
/// on it: those who want one thread and those who want all wait for each other.
struct LapackThreads::Count {
  std::mutex lock;
  std::condition_variable all_left;
  bool one = false;  // whether those inside have one thread
  int users = 0, outside = 0;
  void (*set)(int) = nullptr;
  int (*get)() = nullptr;

  explicit Count(const char* op) {
    const Library& from = library(op);
    for (const char* suffix : {"", "64_", "_64_", "_"}) {
      const auto named = [&](const char* name) {
        return dlsym(from.handle, (from.spelling.prefix + std::string(name) + suffix).c_str());
      };
      set = reinterpret_cast<void (*)(int)>(named("openblas_set_num_threads"));
      get = reinterpret_cast<int (*)()>(named("openblas_get_num_threads"));
      if (set && get) return;
    }
    set = nullptr;
  }
  /// Starts anew in a child: those inside and those who wait are the parent's threads.
  void forget_parent() {
    if (users && one) set(outside);
    users = 0;
    new (&all_left) std::condition_variable;
    lock.unlock();
  }
  /// Returns the process's own; it is never destroyed, as threads may still be inside at exit.
  static Count& of_process(const char* op) {
    static Count* made = nullptr;
    static std::once_flag once;
    std::call_once(once, [&] {
      made = new Count(op);
      pthread_atfork([] { made->lock.lock(); }, [] { made->lock.unlock(); }, [] { made->forget_parent(); });
    });
    return *made;
  }
};

LapackThreads::LapackThreads(int64_t rows, int64_t columns, const char* op) {
  constexpr double kSmall = 1 << 26;  // rows * columns * rank
  if (rows <= 0 || columns <= 0) return;
  Count& count = Count::of_process(op);
  if (!count.set) return;
  const bool one = double(rows) * double(columns) * double(std::min(rows, columns)) < kSmall;
  std::unique_lock guard(count.lock);
  count.all_left.wait(guard, [&] { return count.users == 0 || count.one == one; });
  if (count.users++ == 0) {
    count.one = one, count.outside = count.get();
    if (one) count.set(1);
  }
  count_ = &count;
}

LapackThreads::~LapackThreads() {
  if (!count_) return;
  std::lock_guard guard(count_->lock);
  if (--count_->users > 0) return;
  if (count_->one) count_->set(count_->outside);
  count_->all_left.notify_all();
}

template <class T>
bool has_wide_integers(const char* op) {
  T one(1);
  LapackInt n = 1, pivot = -1, info = 0;
  lapack<T>(op).getrf(&n, &n, &one, &n, &pivot, &info);
  return (uint64_t(pivot) >> 32) == 0;
}
template bool has_wide_integers<float>(const char* op);
template bool has_wide_integers<double>(const char* op);
template bool has_wide_integers<std::complex<float>>(const char* op);
template bool has_wide_integers<std::complex<double>>(const char* op);

template <class T>
const Lapack<T>& lapack(const char* op) {
  static const Lapack<T> functions = [&] {
    const Library& from = library(op);
    Lapack<T> f{};
    auto set = [&]<class F>(F*& to, const char* name) {
      to = reinterpret_cast<F*>(from.find(kLetter<T> + std::string(name)));
    };
    set(f.geqrf, "geqrf");
    set(f.orgqr, std::is_floating_point_v<T> ? "orgqr" : "ungqr");
    set(f.trsm, "trsm");
    set(f.sytrf, "sytrf");
    set(f.sytrs, "sytrs");
    set(f.potrf, "potrf");
    set(f.getrf, "getrf");
    if constexpr (std::is_floating_point_v<T>) {
      set(f.syevd, "syevd");
      set(f.gesdd, "gesdd");
      set(f.geev, "geev");
    } else {
      set(f.hetrf, "hetrf");
      set(f.hetrs, "hetrs");
      set(f.heevd, "heevd");
      set(f.gesdd_complex, "gesdd");
      set(f.geev_complex, "geev");
    }
    return f;
  }();
  return functions;
}

template const Lapack<float>& lapack(const char* op);
template const Lapack<double>& lapack(const char* op);
template const Lapack<std::complex<float>>& lapack(const char* op);
template const Lapack<std::complex<double>>& lapack(const char* op);

}  // namespace vesta::cpu
