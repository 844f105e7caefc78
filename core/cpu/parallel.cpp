#include <vesta/core/cpu/parallel.h>

#include <vesta/core/base/interrupt.h>
#include <vesta/core/denormals.h>

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

// OpenMP's, if the program uses it: a loop in one of its regions has the CPUs that it can have.
extern "C" [[gnu::weak]] int omp_in_parallel();

namespace vesta::cpu {
namespace {

constexpr std::int64_t kMostThreads = 1 << 14;

std::atomic<int> chosen_threads{0};  // 0: not set yet
std::atomic<bool> forked_child{false};
thread_local bool inside_loop = false;

// Threads do not survive fork(), and the child would wait for the workers forever: it must never ask them. The handler
// is installed when the library is loaded, before any thread of ours can exist.
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
  bool asked = denormals_asked.load(std::memory_order_relaxed);
  unsigned bits = asked ? flush_bits() : 0;  // of the thread that entered
  std::atomic<bool> failed{false};
  std::exception_ptr error = nullptr;  // written by the one thread that turned `failed`
  Share share[kShares];

  // Pieces from number `first` on.
  Loop(std::int64_t length, std::int64_t piece, std::int64_t first, std::int64_t pieces, RangeFn f, int team)
      : n(length), chunk(piece), body(f), shares(std::min(team, kShares)) {
    for (int s = 0; s < shares; ++s) {
      share[s].next.store(first + (pieces - first) * s / shares, std::memory_order_relaxed);
      share[s].end = first + (pieces - first) * (s + 1) / shares;
    }
  }

  // Takes pieces until none is left. Only the thread that entered the loop, number 0, runs the interrupt check: the
  // check may need to run there.
  void work(int thread) noexcept {
    const InterruptCheck hook = thread == 0 ? interrupt_check() : nullptr;
    bool began = false;
    inside_loop = true;
    if (asked) set_flush_bits(bits);
    for (int s = 0; s < shares; ++s) {
      Share& from = share[(thread + s) % shares];
      while (!failed.load(std::memory_order_relaxed)) {
        const std::int64_t i = from.next.fetch_add(1, std::memory_order_relaxed);
        if (i >= from.end) break;
        try {
          if (hook != nullptr && began) hook();
          began = true;
          body(i * chunk, std::min(n, (i + 1) * chunk));
        } catch (...) {
          if (!failed.exchange(true)) error = std::current_exception();
        }
      }
    }
    inside_loop = false;
  }
};

// Note [Own threads]
// libgomp ends a region when all its threads have arrived, those that found no piece to do included, and waits for them
// and for the next region by spinning for 300,000 pauses: 5 ms on a Zen 4, 17 ms on a Sapphire Rapids. Where another
// process keeps a CPU busy, a thread that has lost its turn is then waited for by one that burns the CPU on which it
// could have run: steps of small networks took twice as long (benchmarks/beside.py), where the share lost is a third.
// So the workers are our own. A loop is a gate that is open while it has pieces: a worker that comes late finds it shut
// and nobody waits for it. A thread that waits spins for kSpin, which covers the gaps between the ops of a step, and
// then sleeps, so that the kernel can move the thread that it waits for to the CPU that it leaves. No bit of a result
// depends on who computes what.
//
// There is one team per process. A thread whose loop begins while the team works for another runs pieces alone until
// the team is free.

void relax() {
#ifdef __x86_64__
  _mm_pause();
#endif
}

using Clock = std::chrono::steady_clock;

std::atomic<Clock::rep> crowded_until{0};

// Returns whether the machine seems crowded: a thread that asked within the last 100 ms had lost its CPU to another one
// since it last asked.
bool is_crowded(Clock::time_point now) {
  constexpr auto kMemory = std::chrono::milliseconds(100);
  thread_local long seen = -1;
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  const long before = std::exchange(seen, used.ru_nivcsw);
  if (before >= 0 && before != used.ru_nivcsw) crowded_until = (now + kMemory).time_since_epoch().count();
  return now.time_since_epoch().count() < crowded_until.load(std::memory_order_relaxed);
}

// Spins until `ready()` holds, kSpin at most, or kCrowdedSpin on a crowded machine; returns whether it does.
template <class F>
bool spin_until(F ready) {
  constexpr auto kSpin = std::chrono::microseconds(2000), kCrowdedSpin = std::chrono::microseconds(50);
  Clock::time_point start{};
  bool asked = false;  // whether the machine is crowded, once
  while (true) {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      relax();
    }
    const auto now = Clock::now();
    if (start == Clock::time_point{}) start = now;
    if (now - start < kCrowdedSpin) continue;
    if (!asked && is_crowded(now)) return false;
    asked = true;
    if (now - start > kSpin) return false;
  }
}

void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void wake(std::atomic<std::uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}
static_assert(sizeof(std::atomic<std::uint32_t>) == 4, "a futex is 4 bytes");

class Team {
 public:
  // Returns the team of the process, whose threads live until it ends.
  static Team& of_process() {
    static Team* const team = new Team;
    return *team;
  }

  // Takes the team for the calling thread; returns false while it works for another.
  bool take() { return !working_.exchange(true, std::memory_order_acquire); }

  // Runs a loop on the calling thread, which has taken the team, and on `helpers` workers; gives the team back.
  void run(Loop& loop, int helpers) {
    grow(helpers);
    loop_ = &loop;
    gate_.store(kOpen | std::uint32_t(helpers) << kLimit, std::memory_order_release);
    epoch_.fetch_add(1);
    const int asleep = static_cast<int>(sleepers_.load()), wanted = helpers - (workers_ - asleep);
    if (asleep > 0 && wanted > 0) wake(epoch_, wanted);
    loop.work(0);
    const std::uint32_t left = gate_.fetch_and(~kOpen, std::memory_order_acq_rel);
    if ((left & kCount) != 0) wait_for_workers();
    working_.store(false, std::memory_order_release);
  }

 private:
  // The gate: whether it is open, whether the caller sleeps, how many workers may enter, and how many are inside.
  static constexpr std::uint32_t kOpen = 1u << 31, kWaiting = 1u << 30, kCount = 0x7fff;
  static constexpr int kLimit = 15;

  void wait_for_workers() {
    if (spin_until([&] { return (gate_.load(std::memory_order_acquire) & kCount) == 0; })) return;
    for (std::uint32_t g = gate_.load(std::memory_order_acquire); (g & kCount) != 0;
         g = gate_.load(std::memory_order_acquire)) {
      if ((g & kWaiting) != 0 || gate_.compare_exchange_weak(g, g | kWaiting)) sleep_while(gate_, g | kWaiting);
    }
  }

  // Starts workers until there are `wanted`; fewer if the system refuses. They take no signals sent to the process,
  // which are the program's; the handler of a fault sees theirs.
  void grow(int wanted) {
    if (workers_ >= wanted) return;
    sigset_t all, before;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    cpu_set_t cpus;  // those of the program's first thread: the calling one may be pinned
    if (sched_getaffinity(getpid(), sizeof cpus, &cpus) == 0) {
      pthread_attr_setaffinity_np(&attributes, sizeof cpus, &cpus);
    }
    for (pthread_t thread; workers_ < wanted; ++workers_) {
      const auto main = [](void* team) -> void* { static_cast<Team*>(team)->serve(); };
      if (pthread_create(&thread, &attributes, main, this) != 0) break;
      pthread_setname_np(thread, "vesta-worker");
      pthread_detach(thread);
    }
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  [[noreturn]] void serve() {
    std::uint32_t seen = epoch_.load(std::memory_order_acquire) - 1;  // the loop for which it was started may be open
    for (bool spare = false;;) {  // whether the last loop had workers enough: this one need not be quick for the next
      if (spare || !spin_until([&] { return epoch_.load(std::memory_order_acquire) != seen; })) {
        sleepers_.fetch_add(1);
        while (epoch_.load() == seen) sleep_while(epoch_, seen);
        sleepers_.fetch_sub(1);
      }
      seen = epoch_.load(std::memory_order_acquire);
      std::uint32_t g = gate_.load(std::memory_order_acquire);
      spare = false;
      while ((g & kOpen) != 0) {
        spare = (g & kCount) >= (g >> kLimit & kCount);
        if (spare) break;
        if (!gate_.compare_exchange_weak(g, g + 1, std::memory_order_acq_rel)) continue;
        loop_->work(int(g & kCount) + 1);
        const std::uint32_t old = gate_.fetch_sub(1, std::memory_order_acq_rel);
        if ((old & kCount) == 1 && (old & kWaiting) != 0) wake(gate_, 1);
        break;
      }
    }
  }

  alignas(64) std::atomic<std::uint32_t> gate_{0};
  alignas(64) std::atomic<std::uint32_t> epoch_{0};  // counts loops
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<bool> working_{false};
  Loop* loop_ = nullptr;  // written before the gate opens
  int workers_ = 0;  // of the thread whose loop runs
};

}  // namespace

void detail::run_chunks(std::int64_t n, std::int64_t chunk, RangeFn body) {
  const std::int64_t chunks = n / chunk + (n % chunk != 0), most = std::min<std::int64_t>(num_threads(), kMostThreads);
  const bool inside = in_parallel_region(), alone = most <= 1 || inside || is_forked_child();
  const InterruptCheck hook = inside ? nullptr : interrupt_check();
  for (std::int64_t i = 0; i < chunks; ++i) {
    if (hook != nullptr && i > 0) hook();
    if (Team* const team = alone || chunks - i <= 1 ? nullptr : &Team::of_process(); team && team->take()) {
      const int threads = static_cast<int>(std::min(most, chunks - i));
      Loop loop(n, chunk, i, chunks, body, threads);
      team->run(loop, threads - 1);
      if (loop.error) std::rethrow_exception(loop.error);
      return;
    }
    body(i * chunk, std::min(n, (i + 1) * chunk));
  }
}

int available_cpus() {
  cpu_set_t set;
  int cpus = 0;
  if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = CPU_COUNT(&set);
  if (cpus < 1) cpus = static_cast<int>(std::thread::hardware_concurrency());
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

bool in_parallel_region() { return inside_loop || (omp_in_parallel != nullptr && omp_in_parallel() != 0); }

bool is_forked_child() { return forked_child.load(std::memory_order_relaxed); }

}  // namespace vesta::cpu

bool vesta::set_flush_denormal(bool on) {
  if (cpu::kFlushBits == 0) return false;
  cpu::denormals_asked.store(true, std::memory_order_relaxed);
  cpu::set_flush_bits(on ? cpu::kFlushBits : 0);
  return true;
}
