// The loop over threads: pieces, exceptions, interruption, fork, and the thread count.
#include <catch2/catch.hpp>

#include <vesta/core/base/interrupt.h>
#include <vesta/core/cpu/gemm.h>
#include <vesta/core/cpu/parallel.h>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace vesta::cpu;
using std::int64_t;

// A scope with a given number of threads.
struct Threads {
  explicit Threads(int n) : before(num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
  int before;
};

std::set<std::pair<int64_t, int64_t>> pieces(int64_t n, int64_t grain) {
  std::set<std::pair<int64_t, int64_t>> seen;
  std::mutex mutex;
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    seen.emplace(begin, end);
  });
  return seen;
}

// Runs f in a child process; returns true if it ended by itself with success within ten seconds.
template <class F>
bool in_child(F&& f) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);  // a hang ends the child, not the test run
    _exit(f() ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("pieces cover the range once and depend on size and grain only", "[parallel]") {
  for (const int64_t n : {1, 7, 64, 1000, 100000}) {
    for (const int64_t grain : {1, 3, 64, 5000}) {
      std::set<std::pair<int64_t, int64_t>> one;
      {
        const Threads threads(1);
        one = pieces(n, grain);
      }
      for (const int count : {2, 4, 70}) {
        const Threads threads(count);
        CHECK(pieces(n, grain) == one);
      }
      int64_t next = 0;
      for (const auto& [begin, end] : one) {
        CHECK(begin == next);
        CHECK(end > begin);
        if (n > grain) CHECK(begin % chunk_size(n, grain) == 0);
        next = end;
      }
      CHECK(next == n);
      CHECK(one.size() <= 256);
    }
  }
  CHECK(pieces(0, 1).empty());
  CHECK(pieces(-3, 1).empty());
}

TEST_CASE("a thread that is held up gives its share of the pieces to the others", "[parallel]") {
  const Threads threads(2);
  std::atomic<int64_t> others{0};
  parallel_for(100, 1, [&](int64_t begin, int64_t) {
    if (begin != 0) {
      ++others;
      return;
    }
    const auto start = std::chrono::steady_clock::now();
    while (in_parallel_region() && others < 99) {  // serial while the workers run another loop: nobody to wait for
      if (std::chrono::steady_clock::now() - start > std::chrono::seconds(20)) break;
      std::this_thread::yield();
    }
  });
  CHECK(others == 99);
}

TEST_CASE("an exception in a piece ends the loop and reaches the caller", "[parallel]") {
  for (const int count : {1, 2, 4}) {
    const Threads threads(count);
    std::atomic<int64_t> done{0};
    const auto loop = [&] {
      parallel_for(100, 1, [&](int64_t begin, int64_t) {
        if (begin == 3) throw std::runtime_error("piece three");
        ++done;
      });
    };
    CHECK_THROWS_WITH(loop(), "piece three");
    CHECK(done < 100);
    CHECK(pieces(100, 1).size() == 100);  // the next loop is complete again
  }
}

TEST_CASE("the poll hook runs on the entering thread and can end a loop", "[parallel]") {
  static std::atomic<int> calls{0};
  static std::thread::id entering;
  static std::atomic<bool> elsewhere{false};
  entering = std::this_thread::get_id();
  for (const int count : {1, 2}) {
    const Threads threads(count);
    calls = 0;
    const vesta::InterruptCheck before = vesta::set_interrupt_check([] {
      if (std::this_thread::get_id() != entering) elsewhere = true;
      if (++calls == 5) throw std::runtime_error("interrupted");
    });
    std::atomic<int> done{0};
    const auto loop = [&] {
      parallel_for(200, 1, [&](int64_t, int64_t) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));  // so that the entering thread gets its share
        ++done;
      });
    };
    CHECK_THROWS_WITH(loop(), "interrupted");
    CHECK(vesta::set_interrupt_check(before) != nullptr);
    CHECK(done < 200);
    CHECK_FALSE(elsewhere);
  }
}

TEST_CASE("a loop inside a loop is serial", "[parallel]") {
  const Threads threads(4);
  std::atomic<bool> moved{false};
  std::atomic<int64_t> sum{0};
  CHECK_FALSE(in_parallel_region());
  parallel_for(8, 1, [&](int64_t, int64_t) {
    const auto self = std::this_thread::get_id();
    const bool inside = in_parallel_region();  // not if the workers ran another loop
    parallel_for(10, 1, [&](int64_t begin, int64_t) {
      if (inside && std::this_thread::get_id() != self) moved = true;
      sum += begin;
    });
  });
  CHECK_FALSE(moved);
  CHECK(sum == 8 * 45);
  CHECK_FALSE(in_parallel_region());
}

TEST_CASE("loops of several threads at once visit every piece once", "[parallel]") {
  const Threads threads(4);
  std::atomic<int> wrong{0};
  const auto caller = [&](int64_t seed) {
    for (int64_t round = 0; round < 300; ++round) {
      const int64_t n = 2 + (seed * 7919 + round * 104729) % 700;
      std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
      parallel_for(n, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      for (const auto& count : seen) wrong += count != 1;
      // Longer than workers spin: they sleep, and are woken.
      if (round % 60 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  };
  std::vector<std::thread> callers;
  for (int64_t i = 1; i < 4; ++i) callers.emplace_back(caller, i);
  caller(0);
  for (std::thread& thread : callers) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a loop that begins beside another takes the workers when they are free", "[parallel]") {
  const Threads threads(2);
  std::atomic<bool> inside{false}, leave{false};
  std::thread other([&] {
    parallel_for(2, 1, [&](int64_t, int64_t) {
      inside = true;
      while (!leave) std::this_thread::yield();
    });
  });
  while (!inside) std::this_thread::yield();
  std::mutex mutex;
  std::set<std::thread::id> seen;
  parallel_for(200, 1, [&](int64_t begin, int64_t) {
    if (begin == 10) leave = true, other.join();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  CHECK(seen.size() == 2);
}

TEST_CASE("a loop waits, asleep, for a piece that takes long elsewhere", "[parallel]") {
  const Threads threads(2);
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> done{0};
    const auto caller = std::this_thread::get_id();
    parallel_for(2, 1, [&](int64_t, int64_t) {
      if (std::this_thread::get_id() != caller) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      ++done;
    });
    CHECK(done == 2);
  }
}

TEST_CASE("workers take no signals but those of faults", "[parallel]") {
  const Threads threads(2);
  std::atomic<bool> blocked{true};
  const auto caller = std::this_thread::get_id();
  parallel_for(64, 1, [&](int64_t, int64_t) {
    if (std::this_thread::get_id() == caller) return std::this_thread::sleep_for(std::chrono::microseconds(200));
    sigset_t set;
    sigemptyset(&set);
    if (pthread_sigmask(SIG_SETMASK, nullptr, &set) != 0 || sigismember(&set, SIGINT) != 1) blocked = false;
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE}) {
      if (sigismember(&set, fault) != 0) blocked = false;
    }
  });
  CHECK(blocked);
}

TEST_CASE("the thread count holds for threads born later", "[parallel]") {
  const Threads threads(3);
  int seen = 0;
  std::set<std::thread::id> workers;
  std::thread([&] {
    seen = num_threads();
    std::mutex mutex;
    parallel_for(64, 1, [&](int64_t, int64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::lock_guard lock(mutex);
      workers.insert(std::this_thread::get_id());
    });
  }).join();
  CHECK(seen == 3);
  CHECK(workers.size() <= 3);
  CHECK(workers.size() >= 2);
  set_num_threads(0);
  CHECK(num_threads() == 1);
}

TEST_CASE("available_cpus honours affinity", "[parallel]") {
  cpu_set_t all, one;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  CHECK(available_cpus() >= 1);
  CHECK(available_cpus() <= CPU_COUNT(&all));
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(available_cpus() == 1);
  REQUIRE(sched_setaffinity(0, sizeof all, &all) == 0);
}

TEST_CASE("a forked child computes serially and does not hang", "[parallel][fork]") {
  const Threads threads(2);
  const int64_t n = 200;
  const std::vector<float> a(n * n, 0.5f), b(n * n, 0.25f);
  std::vector<float> c(n * n), in_child_c(n * n);
  Gemm args{.m = n,
            .n = n,
            .k = n,
            .a = a.data(),
            .a_row = n,
            .a_col = 1,
            .b = b.data(),
            .b_row = n,
            .b_col = 1,
            .c = c.data(),
            .c_row = n};
  CHECK_FALSE(is_forked_child());
  for (int round = 0; round < 20; ++round) {
    gemm(Elem::f32, args);  // the pool is awake when we fork
    const bool fine = in_child([&] {
      args.c = in_child_c.data();
      gemm(Elem::f32, args);
      return is_forked_child() && in_child_c == c && pieces(50, 1).size() == 50;
    });
    CHECK(fine);
  }
  CHECK_FALSE(is_forked_child());
}
