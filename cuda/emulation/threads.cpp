// Fibers for CUDA threads. A tour:
//
//   Fiber            a stack and where it was left; `switch_stack` is the whole context switch
//   Block            the fibers of one block: who is runnable, who waits at which barrier
//   run_grid         block after block; resumes runnable fibers in the chosen order until all have ended
//
// One host thread runs a kernel at a time (the emulated device sees to that), and fibers never leave it.
#include <vesta/cuda/emulation/threads.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>
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

thread_local Position position;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kStack = 256 << 10;
#else
constexpr size_t kStack = 64 << 10;
#endif

Order current_order = Order::ascending;
std::mt19937_64 shuffle_source;

enum class State : uint8_t { runnable, at_block_barrier, at_warp_barrier, ended };

struct Fiber {
  State state = State::ended;
  Index3 thread;
  char* stack = nullptr;
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

/// The block that runs on this host thread now.
class Block {
 public:
  void run(const char* name, const Index3& size, unsigned shared_bytes, const std::function<void()>& body);
  void yield(State s) {
    current_->state = s;
    leave(*current_);
  }
  void exchange(void* value, unsigned nbytes, unsigned from);
  unsigned match(unsigned value);
  void* shared() { return shared_.data(); }
  void enter_body();

 private:
  struct alignas(16) Slot {
    char bytes[16];
  };

  void prepare(Fiber& f);
  void resume(Fiber& f);
  void leave(Fiber& f);
  bool release_barriers();
  void order_threads(unsigned n);

  const char* name_ = "";
  const std::function<void()>* body_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<unsigned> order_;
  std::vector<Slot> slots_;
  std::vector<char> shared_;
  unsigned count_ = 0;
  Fiber* current_ = nullptr;
  unsigned current_number_ = 0;
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

thread_local Block block;

void fiber_main() { block.enter_body(); }

void Block::enter_body() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &host_stack_, &host_stack_size_);
#endif
  (*body_)();
  current_->state = State::ended;
  leave(*current_);
}

void Block::prepare(Fiber& f) {
  if (!f.stack) {
    void* p = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    VESTA_CHECK(p != MAP_FAILED, memory, "emulation: no memory for the stacks of a block's threads.");
    f.stack = static_cast<char*>(p);
  }
  f.state = State::runnable;
  f.fake_stack = nullptr;
#if defined(__x86_64__)
  void** top = reinterpret_cast<void**>(f.stack + kStack) - 2;
  *top = reinterpret_cast<void*>(&fiber_main);  // where the first switch returns to; the stack is then aligned as at
  *(top + 1) = nullptr;                         // a function's entry
  f.left_at = top - 6;                          // six registers, with any values
  std::memset(f.left_at, 0, 6 * sizeof(void*));
#else
  getcontext(&f.context);
  f.context.uc_stack.ss_sp = f.stack, f.context.uc_stack.ss_size = kStack, f.context.uc_link = nullptr;
  makecontext(&f.context, fiber_main, 0);
#endif
}

void Block::resume(Fiber& f) {
  current_ = &f;
  position.thread = f.thread;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&host_fake_stack_, f.stack, kStack);
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
  __sanitizer_start_switch_fiber(f.state == State::ended ? nullptr : &f.fake_stack, host_stack_, host_stack_size_);
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

void Block::exchange(void* value, unsigned nbytes, unsigned from) {
  const unsigned me = current_number_, warp = me / 32 * 32;
  std::memcpy(slots_[me].bytes, value, nbytes);
  yield(State::at_warp_barrier);
  const unsigned source = warp + from;
  if (source < count_ && from < 32) std::memcpy(value, slots_[source].bytes, nbytes);
  yield(State::at_warp_barrier);  // so that no slot is overwritten that a slower lane has yet to read
}

unsigned Block::match(unsigned value) {
  const unsigned me = current_number_, warp = me / 32 * 32;
  std::memcpy(slots_[me].bytes, &value, sizeof value);
  yield(State::at_warp_barrier);
  unsigned equal = 0;
  for (unsigned i = 0; i < 32 && warp + i < count_; ++i) {
    unsigned other;
    std::memcpy(&other, slots_[warp + i].bytes, sizeof other);
    equal |= unsigned(other == value) << i;
  }
  yield(State::at_warp_barrier);
  return equal;
}

/// Releases the threads whose barrier all have reached. Returns whether it released any.
bool Block::release_barriers() {
  bool any = false;
  for (unsigned warp = 0; warp < count_; warp += 32) {
    const unsigned end = std::min(warp + 32, count_);
    bool all = true, some = false;
    for (unsigned i = warp; i < end; ++i) {
      const State s = fibers_[i]->state;
      some = some || s == State::at_warp_barrier;
      all = all && (s == State::at_warp_barrier || s == State::ended);
    }
    if (!all || !some) continue;
    for (unsigned i = warp; i < end; ++i) {
      if (fibers_[i]->state == State::at_warp_barrier) fibers_[i]->state = State::runnable;
    }
    any = true;
  }
  if (any) return true;
  bool all = true, some = false;
  for (unsigned i = 0; i < count_; ++i) {
    const State s = fibers_[i]->state;
    some = some || s == State::at_block_barrier;
    all = all && s == State::at_block_barrier;  // a thread that has ended never arrives: CUDA leaves that undefined
  }
  VESTA_CHECK(all && some, runtime, "emulation: the threads of kernel ", name_,
              " wait at different barriers, or some ended before one.");
  for (unsigned i = 0; i < count_; ++i) fibers_[i]->state = State::runnable;
  return true;
}

void Block::order_threads(unsigned n) {
  order_.resize(n);
  for (unsigned i = 0; i < n; ++i) order_[i] = current_order == Order::descending ? n - 1 - i : i;
  if (current_order == Order::shuffled) std::shuffle(order_.begin(), order_.end(), shuffle_source);
}

void Block::run(const char* name, const Index3& size, unsigned shared_bytes, const std::function<void()>& body) {
  name_ = name, body_ = &body;
  count_ = size.x * size.y * size.z;
  shared_.assign(shared_bytes, char(0xff));
  slots_.resize(std::max<size_t>(slots_.size(), count_));
  while (fibers_.size() < count_) fibers_.push_back(std::make_unique<Fiber>());
  for (unsigned i = 0; i < count_; ++i) {
    fibers_[i]->thread = {i % size.x, i / size.x % size.y, i / size.x / size.y};
    prepare(*fibers_[i]);
  }
  order_threads(count_);
  for (unsigned ended = 0; ended < count_;) {
    bool progress = false;
    for (unsigned i : order_) {
      if (fibers_[i]->state != State::runnable) continue;
      current_number_ = i;
      resume(*fibers_[i]);
      progress = true;
      ended += fibers_[i]->state == State::ended;
    }
    if (!progress) release_barriers();
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
  VESTA_CHECK(threads >= 1 && threads <= 1024 && shape.grid[1] <= 65535 && shape.grid[2] <= 65535, runtime,
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
