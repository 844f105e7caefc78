// Threads of the CPU backend: one loop whose results never depend on how many threads ran it.
#pragma once

#include <vesta/core/base/macros.h>

#include <cstdint>
#include <memory>
#include <type_traits>

namespace vesta::cpu {

// Pieces of loops (benchmarks/compare_torch.py): below them a second thread costs more than it saves.
inline constexpr std::int64_t kElementGrain = 32768;  ///< elements that a thread takes at a time, where they are moved
inline constexpr std::int64_t kTaskWork = 64 * 1024;  ///< multiply-adds that make a task worthwhile
inline constexpr std::int64_t kTasks = 16;  ///< tasks wanted of a product: threads that end early find another

/// A reference to a callable `void(int64_t begin, int64_t end)`. It owns and allocates nothing.
class RangeFn {
 public:
  /// Binds to `f`, which must outlive the RangeFn.
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, RangeFn>)
  RangeFn(F&& f)  // NOLINT(bugprone-forwarding-reference-overload): it is constrained
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, std::int64_t begin, std::int64_t end) {
          (*static_cast<std::remove_reference_t<F>*>(object))(begin, end);
        }) {}

  /// Calls the function for [begin, end).
  void operator()(std::int64_t begin, std::int64_t end) const { call_(object_, begin, end); }

 private:
  void* object_;
  void (*call_)(void*, std::int64_t, std::int64_t);
};

/// Returns the length of the pieces into which `parallel_for(n, grain, ...)` cuts its range: `grain`, or the smallest
/// multiple of it that leaves at most 256 pieces. It depends on nothing else, so `begin / chunk_size(n, grain)`
/// numbers the pieces, and one partial result may be kept per piece.
constexpr std::int64_t chunk_size(std::int64_t n, std::int64_t grain) {
  constexpr std::int64_t kMaxChunks = 256;  // enough to balance 64 threads, few enough to make the counter free
  if (grain < 1) grain = 1;
  const std::int64_t grains = n / grain + (n % grain != 0);
  return grain * (grains / kMaxChunks + (grains % kMaxChunks != 0) + (grains == 0));
}

namespace detail { VESTA_API void run_chunks(std::int64_t n, std::int64_t chunk, RangeFn body); }

/// Calls `body(begin, end)` over pieces of [0, n), on several threads if that pays.
///
/// The pieces depend on `n` and `grain` only (see chunk_size). Threads take pieces as they become free, so that a
/// thread delayed by another process holds up one piece and not its share of the loop. The loop is serial, over the
/// same pieces, if n <= grain, inside another parallel region, after fork() in the child, with one thread, and as long
/// as the workers run the loop of another thread (Note [Own threads]). The first exception a piece throws stops the
/// loop and is thrown here; pieces not begun are then skipped.
inline void parallel_for(std::int64_t n, std::int64_t grain, RangeFn body) {
  if (n <= 0) return;
  if (n <= grain) return body(0, n);
  detail::run_chunks(n, chunk_size(n, grain), body);
}

/// Returns the number of threads a loop may use: the value given to set_num_threads, else OMP_NUM_THREADS, else the
/// number of CPUs this process may run on, cut to the CPU quota of its control group.
VESTA_API int num_threads();

/// Sets the number of threads a loop may use, at least 1. It applies to every thread of the process, also to those
/// started later.
VESTA_API void set_num_threads(int n);

/// Returns the number of CPUs that affinity and the control group's quota (v1 or v2, rounded up) leave to this
/// process.
VESTA_API int available_cpus();

/// Returns whether the calling thread is inside a parallel region: one of ours, or of OpenMP if the program loaded its
/// library first.
VESTA_API bool in_parallel_region();

/// Returns whether this process was forked from one that had loaded the library: it then computes on one thread.
VESTA_API bool is_forked_child();

}  // namespace vesta::cpu
