// The primitives that our kernels are written in. nvcc gives them their CUDA meaning; g++ compiles the same kernels
// for the emulated device (emulation/). Kernel files (.cu) include this and headers of plain data, and no host
// headers.
//
//   template <class T> VESTA_KERNEL void scale(T* x, unsigned n) { ... global_index() ... }
//   launch_independent("scale", scale<float>, shape, x, n);        // threads never wait for each other
//   launch_block("row_sum", row_sum<float>, shape, x, n);          // they do: block_barrier, shuffles, shared memory
#pragma once
#include <cstdint>

#include <vesta/core/base/half.h>
#include <vesta/core/base/macros.h>
#include <vesta/cuda/kernels/fault_record.h>
#include <vesta/cuda/runtime.h>

#ifdef __CUDACC__

#define VESTA_KERNEL __global__
#define VESTA_DEVICE __device__ __forceinline__
/// Keeps registers so few that `blocks` blocks of `threads` threads fit a multiprocessor.
#define VESTA_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
/// A kernel's parameter that functions which are not inlined may refer to.
#define VESTA_PARAMETER const __grid_constant__
/// A device function that is called, so that its registers are not the caller's.
#define VESTA_CALLED __device__ __noinline__
/// Declares an array of a block's shared memory.
#define VESTA_SHARED(type, name, count) __shared__ type name[count]
/// Declares the block's dynamic shared memory (LaunchShape::shared_bytes), 16-byte aligned.
#define VESTA_DYNAMIC_SHARED(type, name)                       \
  extern __shared__ __align__(16) unsigned char vesta_dynamic_shared[]; \
  type* name = reinterpret_cast<type*>(vesta_dynamic_shared)

namespace vesta::cuda {

template <class... P, class... A>
rt::Status launch(const char* name, void (*kernel)(P...), const LaunchShape& shape, A... arguments) {
  void* pointers[] = {static_cast<void*>(&arguments)...};
  return rt::launch(name, reinterpret_cast<const void*>(kernel), shape, pointers);
}

VESTA_DEVICE void block_barrier() { __syncthreads(); }
/// Waits as block_barrier() does, and returns on every thread whether any thread passes true.
VESTA_DEVICE bool block_any(bool v) { return __syncthreads_or(v); }
VESTA_DEVICE void warp_barrier() { __syncwarp(); }
/// Returns the `value` of lane `from`. All lanes of the warp take part. T is at most 16 bytes.
template <class T>
VESTA_DEVICE T shuffle(T v, unsigned from) {
  static_assert(sizeof(T) % 4 == 0);
  union {
    T value;
    int words[sizeof(T) / 4];
  } u{v};
#pragma unroll
  for (int i = 0; i < int(sizeof(T) / 4); ++i) u.words[i] = __shfl_sync(0xffffffffu, u.words[i], int(from));
  return u.value;
}
/// Returns the lanes, a bit each, that have the same `v`. All lanes of the warp take part.
VESTA_DEVICE unsigned match_lanes(unsigned v) { return __match_any_sync(0xffffffffu, v); }
/// Returns the same for numbers of `bits` bits, by a vote on each.
template <int bits>
VESTA_DEVICE unsigned match_digits(unsigned v) {
  unsigned equal = 0xffffffffu;
#pragma unroll
  for (int b = 0; b < bits; ++b) {
    const unsigned set = __ballot_sync(0xffffffffu, v >> b & 1);
    equal &= v >> b & 1 ? set : ~set;
  }
  return equal;
}
/// Returns whether `v` is true on any lane. All lanes of the warp take part.
VESTA_DEVICE bool any_lane(bool v) { return __any_sync(0xffffffffu, v); }
VESTA_DEVICE unsigned count_bits(unsigned v) { return unsigned(__popc(v)); }
/// Makes earlier writes of this thread visible to the device before later ones.
VESTA_DEVICE void device_fence() { __threadfence(); }
/// Makes earlier writes of this thread visible to the host before later ones.
VESTA_DEVICE void system_fence() { __threadfence_system(); }

VESTA_DEVICE float atomic_add(float* p, float v) { return atomicAdd(p, v); }
VESTA_DEVICE double atomic_add(double* p, double v) { return atomicAdd(p, v); }
VESTA_DEVICE unsigned atomic_add(unsigned* p, unsigned v) { return atomicAdd(p, v); }
VESTA_DEVICE unsigned atomic_cas(unsigned* p, unsigned expected, unsigned desired) {
  return atomicCAS(p, expected, desired);
}
VESTA_DEVICE unsigned long long atomic_cas(unsigned long long* p, unsigned long long expected,
                                           unsigned long long desired) {
  return atomicCAS(p, expected, desired);
}

}  // namespace vesta::cuda

#else

#include <vesta/cuda/emulation/device.h>

#define VESTA_KERNEL
#define VESTA_DEVICE inline
#define VESTA_BOUNDS(threads, blocks)
#define VESTA_PARAMETER const
#define VESTA_CALLED inline
// One block runs at a time, so its shared memory is one array. It starts with the contents that the last block left.
#define VESTA_SHARED(type, name, count) static type name[count]
#define VESTA_DYNAMIC_SHARED(type, name) type* name = static_cast<type*>(::vesta::cuda::emulation::dynamic_shared())

namespace vesta::cuda {

#define threadIdx (::vesta::cuda::emulation::position.thread)
#define blockIdx (::vesta::cuda::emulation::position.block)
#define blockDim (::vesta::cuda::emulation::position.block_size)
#define gridDim (::vesta::cuda::emulation::position.grid_size)

template <class... P, class... A>
rt::Status launch(const char* name, bool fibers, void (*kernel)(P...), const LaunchShape& shape, A... arguments) {
  emulation::enqueue(shape.stream, name,
                     [=] { emulation::run_grid(name, shape, fibers, [&] { kernel(static_cast<P>(arguments)...); }); });
  return rt::Status::success;
}

VESTA_DEVICE void block_barrier() { emulation::block_barrier(); }
VESTA_DEVICE bool block_any(bool v) {
  VESTA_SHARED(bool, any, 1);
  block_barrier();  // the last call's answer has been read
  if (threadIdx.x == 0) any[0] = false;
  block_barrier();
  if (v) any[0] = true;
  block_barrier();
  return any[0];
}
VESTA_DEVICE void warp_barrier() { emulation::warp_barrier(); }
template <class T>
VESTA_DEVICE T shuffle(T v, unsigned from) {
  static_assert(sizeof(T) <= 16);
  emulation::warp_exchange(&v, sizeof(T), from);
  return v;
}
VESTA_DEVICE unsigned match_lanes(unsigned v) { return emulation::warp_match(v); }
template <int bits>
VESTA_DEVICE unsigned match_digits(unsigned v) {
  return emulation::warp_match(v);
}
VESTA_DEVICE bool any_lane(bool v) { return emulation::warp_match(v) != 0xffffffffu || v; }
VESTA_DEVICE unsigned count_bits(unsigned v) { return unsigned(__builtin_popcount(v)); }
VESTA_DEVICE void device_fence() {}
VESTA_DEVICE void system_fence() {}

template <class T>
VESTA_DEVICE T atomic_add(T* p, T v) {
  T old = *p;
  *p = old + v;
  return old;
}
template <class T>
VESTA_DEVICE T atomic_cas(T* p, T expected, T desired) {
  T old = *p;
  if (old == expected) *p = desired;
  return old;
}

}  // namespace vesta::cuda

#endif

namespace vesta::cuda {

/// Returns the number of the thread within the grid (one dimension).
VESTA_DEVICE uint32_t global_index() { return blockIdx.x * blockDim.x + threadIdx.x; }
/// Returns the number of the lane within its warp; warp_index(), that of the warp within its block (one dimension).
VESTA_DEVICE unsigned lane_index() { return threadIdx.x % 32; }
VESTA_DEVICE unsigned warp_index() { return threadIdx.x / 32; }

/// Raises for a refused launch, naming the kernel.
void check_launch(rt::Status status, const char* name);
/// Returns the size of a grid of `n` threads in blocks of `threads`; raises if it is more than a GPU takes.
VESTA_API unsigned block_count(uint64_t n, unsigned threads);

/// Queues a kernel whose threads never wait for each other.
template <class Kernel, class... A>
void launch_independent(const char* name, Kernel* kernel, const LaunchShape& shape, const A&... arguments);
/// Queues a kernel with barriers, shuffles or shared memory.
template <class Kernel, class... A>
void launch_block(const char* name, Kernel* kernel, const LaunchShape& shape, const A&... arguments);

#ifdef __CUDACC__
template <class... P, class... A>
void launch_converted(const char* name, void (*kernel)(P...), const LaunchShape& shape, const A&... arguments) {
  check_launch(launch<P...>(name, kernel, shape, static_cast<P>(arguments)...), name);
}
template <class Kernel, class... A>
void launch_independent(const char* name, Kernel* kernel, const LaunchShape& shape, const A&... arguments) {
  launch_converted(name, kernel, shape, arguments...);
}
template <class Kernel, class... A>
void launch_block(const char* name, Kernel* kernel, const LaunchShape& shape, const A&... arguments) {
  launch_converted(name, kernel, shape, arguments...);
}
#else
template <class Kernel, class... A>
void launch_independent(const char* name, Kernel* kernel, const LaunchShape& shape, const A&... arguments) {
  check_launch(launch(name, false, kernel, shape, arguments...), name);
}
template <class Kernel, class... A>
void launch_block(const char* name, Kernel* kernel, const LaunchShape& shape, const A&... arguments) {
  check_launch(launch(name, true, kernel, shape, arguments...), name);
}
#endif

/// Returns a one-dimensional shape for `n` threads in blocks of `threads`.
inline LaunchShape linear_shape(uint64_t n, unsigned threads, StreamHandle stream) {
  LaunchShape s;
  s.grid[0] = block_count(n, threads), s.block[0] = threads, s.stream = stream;
  return s;
}

/// Combines a value over the warp by exchanging halves: every lane gets the same bits. `combine(a, b)` is associative
/// and commutative up to rounding; the order of operands is the lower lane's first.
template <class T, class F>
VESTA_DEVICE T warp_reduce(T v, F combine) {
  for (unsigned step = 16; step > 0; step /= 2) {
    const unsigned lane = lane_index(), other = lane ^ step;
    T w = shuffle(v, other);
    v = lane < other ? combine(v, w) : combine(w, v);
  }
  return v;
}

/// Reports an error in a kernel's operands (an index out of range); the host raises it when it next waits.
VESTA_DEVICE void report(Fault* fault, FaultKind kind, const char* op, int64_t value, int64_t bound, int dim = -1) {
  if (atomic_cas(&fault->set, 0u, 1u) != 0) return;
  fault->kind = int(kind), fault->op = op, fault->value = value, fault->bound = bound, fault->dim = dim;
  system_fence();
  volatile unsigned* set = &fault->set;
  *set = 2;  // the host reads the rest only now
}

/// A fixed divisor of 32-bit numbers, which divides by a multiplication (Granlund and Montgomery, "Division by
/// Invariant Integers using Multiplication", PLDI 1994). Exact for n < 2^31.
struct FastDivisor {
  uint32_t divisor = 1, multiplier = 1, shift = 0;
  FastDivisor() = default;
  explicit FastDivisor(uint32_t d) : divisor(d) {
    while ((uint64_t(1) << shift) < d) ++shift;
    multiplier = uint32_t(((uint64_t(1) << 32) * ((uint64_t(1) << shift) - d)) / d + 1);
  }
  VESTA_HD uint32_t divide(uint32_t n) const {
    const uint32_t high = uint32_t((uint64_t(n) * multiplier) >> 32);
    return (high + n) >> shift;
  }
};

}  // namespace vesta::cuda
