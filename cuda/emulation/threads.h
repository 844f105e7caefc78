// Runs a kernel's threads on the CPU: each CUDA thread is a fiber, so that a barrier is a switch to the next one.
#pragma once
#include <cstdint>
#include <functional>

#include <vesta/cuda/runtime.h>

namespace vesta::cuda::emulation {

struct Index3 {
  unsigned x = 0, y = 0, z = 0;
};

/// The values of CUDA's built-in variables on the thread that runs now.
struct Position {
  Index3 thread, block, block_size{1, 1, 1}, grid_size{1, 1, 1};
};
[[gnu::visibility("hidden")]] extern Position position;

/// The order in which a block's threads take turns. Deterministic kernels give the same bits in each.
enum class Order : uint8_t { ascending, descending, shuffled };
void set_order(Order order, uint64_t seed);

/// Runs `body` for every thread of every block. Blocks run one after another, in the order that is set. With `fibers`
/// threads may wait at barriers; without, each thread runs to its end at once, which is cheaper.
void run_grid(const char* name, const LaunchShape& shape, bool fibers, const std::function<void()>& body);

/// Waits for all threads of the block. Error: some threads have ended or wait elsewhere.
void block_barrier();
/// Gives `value` (up to 16 bytes) to the warp and replaces it by the value of lane `from`. All live lanes take part.
void warp_exchange(void* value, unsigned nbytes, unsigned from);
/// Returns the lanes of the warp, a bit each, that gave the same `value`. All 32 lanes take part.
unsigned warp_match(unsigned value);
/// Waits for all live lanes of the warp.
void warp_barrier();
/// Returns the block's dynamic shared memory, which starts filled with 0xff (NaN).
void* dynamic_shared();

}  // namespace vesta::cuda::emulation
