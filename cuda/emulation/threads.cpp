// Fibers for CUDA threads. A tour:
//
//   Fiber            a stack and where it was left; `switch_stack` is the whole context switch
//   Block            the fibers of one block: who is runnable, who waits at which barrier
//   run_grid         block after block; resumes runnable fibers in the chosen order until all have ended
//
// One host thread runs a kernel at a time (the emulated device's lock sees to that), and fibers never leave it.
#include <vesta/cuda/emulation/threads.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include <vesta/core/base/error.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace vesta::cuda::emulation {

Position position;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kStack = 256 << 10;
#else
constexpr size_t kStack = 64 << 10;
#endif
// From stack to stack: an odd number of cache lines, so that their tops fall into different sets of the caches.
constexpr size_t kStride = kStack + 67 * 64;
constexpr unsigned kMaxThreads = 1024, kWarp = 32;

Order current_order = Order::ascending;
std::mt19937_64 shuffle_source;

enum class State : uint8_t { runnable, at_block_barrier, at_warp_barrier, ended };

struct Fiber {
  Index3 thread;
  bool odd = false;  // whether the number of its warp's exchanges so far is
#if defined(__x86_64__)
  void* left_at = nullptr;
#else
  ucontext_t context;
#endif
  void* fake_stack = nullptr;  // AddressSanitizer's
};

void fiber_main();

#if defined(__x86_64__)
// Saves what the ABI says a call preserves, stores the stack pointer in *from, and continues where `to` was left.
extern "C" void vesta_switch_stack(void** from, void* to);
asm(R"(
.text
.type vesta_switch_stack, @function
vesta_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size vesta_switch_stack, .-vesta_switch_stack
)");
#endif

/// The block that runs now.
class Block {
 public:
  void run(const char* name, const Index3& size, unsigned shared_bytes, const std::function<void()>& body);
  void yield(State s) {
    states_[current_] = s;
    leave(fibers_[current_]);
  }
  void exchange(void* value, unsigned nbytes, unsigned from);
  unsigned match(unsigned value);
  void* shared() { return shared_.data(); }
  void enter_body();

 private:
  struct alignas(16) Slot {
    char bytes[16];
  };
  /// Threads that take turns among themselves until each waits for the whole block: a warp, or in random order all.
  struct Group {
    unsigned begin, end;         // of order_
    unsigned first_warp, warps;  // whose lanes they are
  };

  void prepare(unsigned i);
  void resume(unsigned i);
  void leave(Fiber& f);
  Slot* give(const void* value, unsigned nbytes);
  void order_groups();
  void run_group(const Group& g);
  bool release_warp(unsigned warp);
  void release_block();

  const char* name_ = "";
  const std::function<void()>* body_ = nullptr;
  char* stacks_ = nullptr;
  std::vector<State> states_;
  std::vector<Fiber> fibers_;
  std::vector<unsigned> order_;
  std::vector<Group> groups_;
  std::vector<Slot> slots_[2];  // of the even and the odd exchanges
  std::vector<char> shared_;
  unsigned count_ = 0, ended_ = 0, current_ = 0;
#if defined(__x86_64__)
  void* scheduler_ = nullptr;
#else
  ucontext_t scheduler_;
#endif
#if defined(__SANITIZE_ADDRESS__)
  const void* host_stack_ = nullptr;
  size_t host_stack_size_ = 0;
  void* host_fake_stack_ = nullptr;
#endif
};

Block block;

void fiber_main() { block.enter_body(); }

void Block::enter_body() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &host_stack_, &host_stack_size_);
#endif
  (*body_)();
  yield(State::ended);
}

void Block::prepare(unsigned i) {
  Fiber& f = fibers_[i];
  char* const stack = stacks_ + i * kStride;
  states_[i] = State::runnable;
  f.odd = false;
  f.fake_stack = nullptr;
#if defined(__x86_64__)
  void** top = reinterpret_cast<void**>(stack + kStack) - 2;
  *top = reinterpret_cast<void*>(&fiber_main);  // where the first switch returns to; the stack is then aligned as at
  *(top + 1) = nullptr;                         // a function's entry
  f.left_at = top - 6;                          // six registers, with any values
  std::memset(f.left_at, 0, 6 * sizeof(void*));
#else
  getcontext(&f.context);
  f.context.uc_stack.ss_sp = stack, f.context.uc_stack.ss_size = kStack, f.context.uc_link = nullptr;
  makecontext(&f.context, fiber_main, 0);
#endif
}

void Block::resume(unsigned i) {
  Fiber& f = fibers_[i];
  current_ = i;
  position.thread = f.thread;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&host_fake_stack_, stacks_ + i * kStride, kStack);
#endif
#if defined(__x86_64__)
  vesta_switch_stack(&scheduler_, f.left_at);
#else
  swapcontext(&scheduler_, &f.context);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(host_fake_stack_, nullptr, nullptr);
#endif
}

void Block::leave(Fiber& f) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(states_[current_] == State::ended ? nullptr : &f.fake_stack, host_stack_,
                                 host_stack_size_);
#endif
#if defined(__x86_64__)
  vesta_switch_stack(&f.left_at, scheduler_);
#else
  swapcontext(&f.context, &scheduler_);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(f.fake_stack, &host_stack_, &host_stack_size_);
#endif
}

/// Gives a value to the warp and waits for all its live lanes. Returns the warp's slots, whose values stay until the
/// next exchange but one: by then every lane has read them.
Block::Slot* Block::give(const void* value, unsigned nbytes) {
  const bool odd = fibers_[current_].odd;
  fibers_[current_].odd = !odd;
  std::vector<Slot>& slots = slots_[odd];
  std::memcpy(slots[current_].bytes, value, nbytes);
  const unsigned warp = current_ / kWarp * kWarp;
  yield(State::at_warp_barrier);
  return &slots[warp];
}

void Block::exchange(void* value, unsigned nbytes, unsigned from) {
  const Slot* slots = give(value, nbytes);
  if (from < kWarp && current_ / kWarp * kWarp + from < count_) std::memcpy(value, slots[from].bytes, nbytes);
}

unsigned Block::match(unsigned value) {
  const Slot* slots = give(&value, sizeof value);
  const unsigned lanes = std::min(kWarp, count_ - current_ / kWarp * kWarp);
  unsigned equal = 0;
  for (unsigned i = 0; i < lanes; ++i) {
    unsigned other;
    std::memcpy(&other, slots[i].bytes, sizeof other);
    equal |= unsigned(other == value) << i;
  }
  return equal;
}

/// Releases the lanes of a warp if all that live wait for each other. Returns whether they did.
bool Block::release_warp(unsigned warp) {
  State* const lanes = &states_[warp * kWarp];
  const unsigned n = std::min(kWarp, count_ - warp * kWarp);
  bool some = false;
  for (unsigned i = 0; i < n; ++i) {
    if (lanes[i] == State::at_warp_barrier) some = true;
    else if (lanes[i] != State::ended) return false;
  }
  if (!some) return false;
  std::replace(lanes, lanes + n, State::at_warp_barrier, State::runnable);
  return true;
}

void Block::release_block() {
  // A thread that has ended never arrives: CUDA leaves that undefined.
  const bool all =
      std::all_of(states_.begin(), states_.begin() + count_, [](State s) { return s == State::at_block_barrier; });
  VESTA_CHECK(all, runtime, "emulation: the threads of kernel ", name_,
              " wait at different barriers, or some ended before one.");
  std::fill_n(states_.begin(), count_, State::runnable);
}

/// Puts the block's threads in order, and into groups of those who take turns.
void Block::order_groups() {
  const unsigned warps = (count_ + kWarp - 1) / kWarp;
  groups_.clear();
  order_.resize(count_);
  for (unsigned i = 0; i < count_; ++i) order_[i] = current_order == Order::descending ? count_ - 1 - i : i;
  if (current_order == Order::shuffled) {
    std::shuffle(order_.begin(), order_.end(), shuffle_source);
    return groups_.push_back({0, count_, 0, warps});
  }
  for (unsigned begin = 0; begin < count_;) {
    const unsigned warp = order_[begin] / kWarp, lanes = std::min(kWarp, count_ - warp * kWarp);
    groups_.push_back({begin, begin + lanes, warp, 1});
    begin += lanes;
  }
}

void Block::run_group(const Group& g) {
  for (bool released = true; released;) {
    for (unsigned k = g.begin; k < g.end; ++k) {
      const unsigned i = order_[k];
      if (states_[i] != State::runnable) continue;
      resume(i);
      ended_ += states_[i] == State::ended;
    }
    released = false;
    for (unsigned w = g.first_warp; w < g.first_warp + g.warps; ++w) released = release_warp(w) || released;
  }
}

void Block::run(const char* name, const Index3& size, unsigned shared_bytes, const std::function<void()>& body) {
  if (!stacks_) {
    void* p = mmap(nullptr, kMaxThreads * kStride, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    VESTA_CHECK(p != MAP_FAILED, memory, "emulation: no memory for the stacks of a block's threads.");
    stacks_ = static_cast<char*>(p);
    states_.resize(kMaxThreads), fibers_.resize(kMaxThreads);
    for (auto& slots : slots_) slots.resize(kMaxThreads);
  }
  name_ = name, body_ = &body;
  count_ = size.x * size.y * size.z, ended_ = 0;
  shared_.assign(shared_bytes, char(0xff));
  for (unsigned i = 0; i < count_; ++i) {
    fibers_[i].thread = {i % size.x, i / size.x % size.y, i / size.x / size.y};
    prepare(i);
  }
  order_groups();
  while (true) {
    for (const Group& g : groups_) run_group(g);
    if (ended_ == count_) return;
    release_block();
  }
}

}  // namespace

void set_order(Order order, uint64_t seed) {
  current_order = order;
  shuffle_source.seed(seed);
}

void run_grid(const char* name, const LaunchShape& shape, bool fibers, const std::function<void()>& body) {
  const Index3 size{shape.block[0], shape.block[1], shape.block[2]};
  const unsigned threads = size.x * size.y * size.z;
  VESTA_CHECK(threads >= 1 && threads <= kMaxThreads && shape.grid[1] <= 65535 && shape.grid[2] <= 65535, runtime,
              "emulation: kernel ", name, " was launched with ", threads, " threads in a block and a grid of ",
              shape.grid[0], " x ", shape.grid[1], " x ", shape.grid[2], " blocks; a GPU would refuse that.");
  VESTA_CHECK(shape.grid[0] >= 1 && shape.grid[1] >= 1 && shape.grid[2] >= 1 && shape.grid[0] <= 0x7fffffff, runtime,
              "emulation: kernel ", name, " was launched with a grid of ", shape.grid[0], " x ", shape.grid[1], " x ",
              shape.grid[2], " blocks; a GPU would refuse that.");
  // A launch gets 99 KiB on all GPUs that kernels are compiled for, of which we leave a KiB for arrays of fixed size.
  VESTA_CHECK(shape.shared_bytes <= 98 << 10, runtime, "emulation: kernel ", name, " asks for ", shape.shared_bytes,
              " bytes of dynamic shared memory; expected at most 100352.");
  position.block_size = size;
  position.grid_size = {shape.grid[0], shape.grid[1], shape.grid[2]};
  const uint64_t blocks = uint64_t(shape.grid[0]) * shape.grid[1] * shape.grid[2];
  for (uint64_t k = 0; k < blocks; ++k) {
    const uint64_t b = current_order == Order::descending ? blocks - 1 - k : k;
    position.block = {unsigned(b % shape.grid[0]), unsigned(b / shape.grid[0] % shape.grid[1]),
                      unsigned(b / shape.grid[0] / shape.grid[1])};
    if (fibers) {
      block.run(name, size, shape.shared_bytes, body);
      continue;
    }
    for (unsigned i = 0; i < threads; ++i) {
      const unsigned t = current_order == Order::descending ? threads - 1 - i : i;
      position.thread = {t % size.x, t / size.x % size.y, t / size.x / size.y};
      body();
    }
  }
}

void block_barrier() { block.yield(State::at_block_barrier); }
void warp_barrier() { block.yield(State::at_warp_barrier); }
void warp_exchange(void* value, unsigned nbytes, unsigned from) { block.exchange(value, nbytes, from); }
unsigned warp_match(unsigned value) { return block.match(value); }
void* dynamic_shared() { return block.shared(); }

}  // namespace vesta::cuda::emulation
