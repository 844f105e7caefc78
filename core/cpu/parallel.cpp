#include <vesta/core/cpu/parallel.h>

#include <vesta/core/base/interrupt.h>
#include <vesta/core/denormals.h>

#include <omp.h>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif
#include <pthread.h>
#include <sched.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <sstream>
#include <string>

namespace vesta::cpu {
namespace {

std::atomic<int> chosen_threads{0};  // 0: not set yet
std::atomic<bool> forked_child{false};
thread_local bool inside_loop = false;

// libgomp's worker threads do not survive fork(), and the child would wait for them forever: it must never open a
// region. The handler is installed when the library is loaded, before any thread of ours can exist.
[[gnu::constructor]] void watch_for_fork() {
  pthread_atfork(nullptr, nullptr, [] { forked_child.store(true, std::memory_order_relaxed); });
}

// Returns the quota of one control group folder in CPUs, 0 if it has none.
double quota_of(const std::string& folder) {
  std::string first;
  double period = 0;
  if (std::ifstream v2(folder + "/cpu.max"); v2 >> first >> period) {
    return first == "max" || period <= 0 ? 0 : std::atof(first.c_str()) / period;
  }
  double quota = 0;
  std::ifstream v1_quota(folder + "/cpu.cfs_quota_us"), v1_period(folder + "/cpu.cfs_period_us");
  if (v1_quota >> quota && v1_period >> period && quota > 0 && period > 0) return quota / period;
  return 0;
}

// Returns the smallest quota on the way from this process's group up to the root of the hierarchy mounted at `mount`.
double tightest_quota(const std::string& mount, std::string path) {
  double tightest = 0;
  while (true) {
    if (const double quota = quota_of(mount + path); quota > 0) {
      tightest = tightest > 0 ? std::min(tightest, quota) : quota;
    }
    const auto slash = path.find_last_of('/');
    if (slash == std::string::npos) return tightest;
    path.resize(slash);
  }
}

// Lines of /proc/self/cgroup are `id:controllers:path`; version 2 has no controllers.
double cgroup_quota() {
  double tightest = 0;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    std::string mount = "/sys/fs/cgroup";
    if (!controllers.empty()) {
      std::istringstream names(controllers);
      bool has_cpu = false;
      for (std::string name; std::getline(names, name, ',');) has_cpu |= name == "cpu";
      if (!has_cpu) continue;
      mount += "/cpu";
    }
    if (const double quota = tightest_quota(mount, path); quota > 0) {
      tightest = tightest > 0 ? std::min(tightest, quota) : quota;
    }
  }
  return tightest;
}

int default_threads() {
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    if (const int n = std::atoi(text); n > 0) return n;
  }
  return available_cpus();
}

// What the threads of one loop share. Each thread has a share of neighbouring pieces and takes them in order, so that
// it reads memory as one stream (5 to 10 % more bandwidth than taking turns, bin/bandwidth); then it helps the others.
struct Loop {
  static constexpr int kShares = 64;
  struct alignas(64) Share {
    std::atomic<std::int64_t> next;
    std::int64_t end;
  };
  std::int64_t n, chunk;
  RangeFn body;
  int shares;
  std::atomic<bool> failed{false};
  std::exception_ptr error = nullptr;  // written by the one thread that turned `failed`
  Share share[kShares];

  Loop(std::int64_t length, std::int64_t piece, std::int64_t pieces, RangeFn f, int team)
      : n(length), chunk(piece), body(f), shares(std::min(team, kShares)) {
    for (int s = 0; s < shares; ++s) {
      share[s].next.store(pieces * s / shares, std::memory_order_relaxed);
      share[s].end = pieces * (s + 1) / shares;
    }
  }

  // Takes pieces until none is left and returns how many it took. Only the thread that entered the loop, number 0,
  // runs the interrupt check: the check may need to run there.
  std::int64_t work(int thread) noexcept {
    const InterruptCheck hook = thread == 0 ? interrupt_check() : nullptr;
    std::int64_t taken = 0;
    for (int s = 0; s < shares; ++s) {
      Share& from = share[(thread + s) % shares];
      while (!failed.load(std::memory_order_relaxed)) {
        const std::int64_t i = from.next.fetch_add(1, std::memory_order_relaxed);
        if (i >= from.end) break;
        try {
          if (hook != nullptr && taken > 0) hook();
          ++taken;
          body(i * chunk, std::min(n, (i + 1) * chunk));
        } catch (...) {
          if (!failed.exchange(true)) error = std::current_exception();
        }
      }
    }
    return taken;
  }
};

// Note [A crowded machine]
// A region ends when all its threads have arrived, those that found no piece to do included. Where other processes
// keep the CPUs busy a thread may wait for its turn for milliseconds, and a loop of 100 us takes that long: steps of a
// small network slow down many times over instead of by the share lost. So the thread that entered compares what the
// region took with what it would have taken alone (its own pieces, scaled up); if it lost more than kNotice, it runs
// alone for kRest times the loss, longer each time in a row. Results do not change: no bit depends on the number of
// threads.
class Crowd {
 public:
  using Clock = std::chrono::steady_clock;

  bool is_alone() const { return until_ != Clock::time_point{} && Clock::now() < until_; }

  void judge(Clock::duration took, Clock::duration worked, std::int64_t taken, std::int64_t chunks) {
    if (taken == 0) return;
    const Clock::duration alone = worked * chunks / taken, loss = took - alone;
    if (loss < kNotice) {
      if (took < alone) in_a_row_ = std::max(in_a_row_ - 1, 0);
      return;
    }
    in_a_row_ = std::min(in_a_row_ + 1, 4);
    until_ = Clock::now() + std::min<Clock::duration>(loss * (kRest << in_a_row_), std::chrono::milliseconds(500));
  }

 private:
  // On an idle machine a sleeping thread starts within 50 us; the scheduler's time slices last from 750 us.
  static constexpr Clock::duration kNotice = std::chrono::microseconds(300);
  static constexpr int kRest = 8;
  Clock::time_point until_{};
  int in_a_row_ = 0;
};

thread_local Crowd crowd;

// Note [Loops under ThreadSanitizer]
// libgomp is not built for ThreadSanitizer, which sees neither its threads wait nor its barriers, and would take all
// that a loop's threads see of each other for races. So they say it themselves: all that is done before enter() is
// seen by a thread after begin(), and all before end() after leave(). The compiler's own record of a region's variables
// is written after enter() and read before begin(): the function with the region is not watched.
#ifdef __SANITIZE_THREAD__
char gate;
void enter() { __tsan_release(&gate); }
void begin() { __tsan_acquire(&gate); }
void end() { __tsan_release(&gate); }
void leave() { __tsan_acquire(&gate); }
#else
void enter() {}
void begin() {}
void end() {}
void leave() {}
#endif

// How a thread takes denormal numbers is a state of its processor (the bits "flush to zero" and "denormals are zero"),
// which the threads of a loop take over from the one that entered it. Until somebody asks, nothing is read or written.
std::atomic<bool> denormals_asked{false};
#ifdef __x86_64__
constexpr unsigned kFlushBits = 0x8040;
unsigned flush_bits() { return _mm_getcsr() & kFlushBits; }
void set_flush_bits(unsigned bits) { _mm_setcsr((_mm_getcsr() & ~kFlushBits) | bits); }
#else
constexpr unsigned kFlushBits = 0;
unsigned flush_bits() { return 0; }
void set_flush_bits(unsigned) {}
#endif

void run_serially(std::int64_t n, std::int64_t chunk, const RangeFn& body) {
  const InterruptCheck hook = in_parallel_region() ? nullptr : interrupt_check();
  for (std::int64_t begin = 0; begin < n; begin += chunk) {
    if (hook != nullptr && begin > 0) hook();
    body(begin, std::min(n, begin + chunk));
  }
}

}  // namespace

[[gnu::no_sanitize("thread")]] void detail::run_chunks(std::int64_t n, std::int64_t chunk, RangeFn body) {
  const std::int64_t chunks = n / chunk + (n % chunk != 0);
  const int team = static_cast<int>(std::min<std::int64_t>(num_threads(), chunks));
  if (team <= 1 || in_parallel_region() || is_forked_child() || crowd.is_alone()) return run_serially(n, chunk, body);
  Loop loop(n, chunk, chunks, body, team);
  const auto start = Crowd::Clock::now();
  auto worked = start;
  std::int64_t taken = 0;
  const bool asked = denormals_asked.load(std::memory_order_relaxed);
  const unsigned bits = asked ? flush_bits() : 0;
  enter();
#pragma omp parallel num_threads(team)
  {
    begin();
    inside_loop = true;
    if (asked) set_flush_bits(bits);
    const int thread = omp_get_thread_num();
    const std::int64_t pieces = loop.work(thread);
    if (thread == 0) taken = pieces, worked = Crowd::Clock::now();
    inside_loop = false;
    end();
  }
  leave();
  crowd.judge(Crowd::Clock::now() - start, worked - start, taken, chunks);
  if (loop.error) std::rethrow_exception(loop.error);
}

int available_cpus() {
  cpu_set_t set;
  int cpus = 0;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = CPU_COUNT(&set);
  if (cpus < 1) cpus = omp_get_num_procs();
  if (const double quota = cgroup_quota(); quota > 0) cpus = std::min(cpus, static_cast<int>(std::ceil(quota)));
  return std::max(cpus, 1);
}

int num_threads() {
  int n = chosen_threads.load(std::memory_order_relaxed);
  if (n > 0) return n;
  int unset = 0;
  n = default_threads();
  return chosen_threads.compare_exchange_strong(unset, n) ? n : unset;
}

void set_num_threads(int n) { chosen_threads.store(std::max(n, 1), std::memory_order_relaxed); }

bool in_parallel_region() { return inside_loop || omp_in_parallel() != 0; }

bool is_forked_child() { return forked_child.load(std::memory_order_relaxed); }

}  // namespace vesta::cpu

bool vesta::set_flush_denormal(bool on) {
  if (cpu::kFlushBits == 0) return false;
  cpu::denormals_asked.store(true, std::memory_order_relaxed);
  cpu::set_flush_bits(on ? cpu::kFlushBits : 0);
  return true;
}
