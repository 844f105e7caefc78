// A block takes 4096 elements of one entry and finds the entry by its own number. The sums and products are the CPU's
// (core/cpu/kernels/row_kernels.cpp), rounded one by one, so that both devices train to the same bits.
#include <vesta/cuda/kernels/optim.h>

#include <vesta/cuda/kernels/entries.cuh>
#include <vesta/cuda/kernels/rounded.cuh>
#include <vesta/cuda/kernels/types.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr int kPack = 4, kPacks = 4;  // elements loaded at once, and how often
constexpr int64_t kChunk = int64_t(kThreads) * kPack * kPacks;

using rounded::add;
using rounded::mul;
using rounded::quotient;
using rounded::root;
using rounded::sub;

/// The entries of a launch. There are two capacities, because all of it is copied with every launch.
template <class Step, int capacity>
struct Entries {
  Step step;
  int n;
  OptimEntry at[capacity];
};

template <class T>
struct alignas(kPack * sizeof(T)) Four {
  T v[kPack];
};

/// Loads up to four elements; all four at once if the address allows it.
template <class T, class C>
VESTA_DEVICE void load(const char* base, int64_t i, int n, bool whole, C (&to)[kPack]) {
  const T* p = reinterpret_cast<const T*>(base) + i;
  if (whole) {
    const Four<T> four = *reinterpret_cast<const Four<T>*>(p);
#pragma unroll
    for (int k = 0; k < kPack; ++k) to[k] = convert<C>(four.v[k]);
  } else {
#pragma unroll
    for (int k = 0; k < kPack; ++k) to[k] = k < n ? convert<C>(p[k]) : C(0);
  }
}
template <class T, class C>
VESTA_DEVICE void store(const C (&from)[kPack], char* base, int64_t i, int n, bool whole) {
  T* p = reinterpret_cast<T*>(base) + i;
  if (whole) {
    Four<T> four;
#pragma unroll
    for (int k = 0; k < kPack; ++k) four.v[k] = convert<T>(from[k]);
    *reinterpret_cast<Four<T>*>(p) = four;
  } else {
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      if (k < n) p[k] = convert<T>(from[k]);
    }
  }
}

/// Returns whether packs of an entry's operands are aligned.
template <class T>
VESTA_DEVICE bool aligned(const OptimEntry& e) {
  const auto all = reinterpret_cast<uintptr_t>(e.p) | reinterpret_cast<uintptr_t>(e.g) |
                   reinterpret_cast<uintptr_t>(e.m) | reinterpret_cast<uintptr_t>(e.v) |
                   reinterpret_cast<uintptr_t>(e.top);
  return all % sizeof(Four<T>) == 0;
}

/// Calls f(first element, how many, whether packs may be used) for the thread's packs of entry e.
template <class T, class F>
VESTA_DEVICE void for_packs(const OptimEntry& e, F f) {
  const bool packs = aligned<T>(e);
  const int64_t begin = int64_t(blockIdx.x - e.first_block) * kChunk;
  for (int k = 0; k < kPacks; ++k) {
    const int64_t i = begin + (int64_t(k) * kThreads + threadIdx.x) * kPack;
    if (i >= e.numel) return;
    const int n = e.numel - i < kPack ? int(e.numel - i) : kPack;
    f(i, n, packs && n == kPack);
  }
}

template <class T, int capacity>
VESTA_KERNEL void sgd_kernel(VESTA_CONSTANT_ARGUMENT Entries<SgdStep, capacity> a) {
  using C = compute_of<T>;
  const OptimEntry& e = a.at[entry_of(a.at, a.n, blockIdx.x)];
  const SgdStep& s = a.step;
  const C lr = C(s.lr), decay = C(s.weight_decay), momentum = C(s.momentum), fresh = C(1 - s.dampening);
  for_packs<T>(e, [&](int64_t i, int n, bool whole) {
    C x[kPack], d[kPack], v[kPack] = {};
    load<T>(e.p, i, n, whole, x);
    load<T>(e.g, i, n, whole, d);
    if (e.m && !s.first) load<T>(e.m, i, n, whole, v);
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      if (s.maximize) d[k] = -d[k];
      if (s.weight_decay != 0) d[k] = add(d[k], mul(x[k], decay));
      if (e.m) {
        v[k] = s.first ? d[k] : add(mul(v[k], momentum), mul(d[k], fresh));
        d[k] = s.nesterov ? add(d[k], mul(v[k], momentum)) : v[k];
      }
      x[k] = sub(x[k], mul(d[k], lr));
    }
    if (e.m) store<T>(v, e.m, i, n, whole);
    store<T>(x, e.p, i, n, whole);
  });
}

template <class T, int capacity>
VESTA_KERNEL void adam_kernel(VESTA_CONSTANT_ARGUMENT Entries<AdamStep, capacity> a) {
  using C = compute_of<T>;
  const OptimEntry& e = a.at[entry_of(a.at, a.n, blockIdx.x)];
  const AdamStep& s = a.step;
  const C decay = C(s.weight_decay), keep = C(1 - s.lr * s.weight_decay), rest1 = C(1 - s.beta1), beta2 = C(s.beta2),
          rest2 = C(1 - s.beta2), eps = C(s.eps);
  const C step = C(e.corrections ? e.corrections[0] : e.step_size);
  const C divisor = C(e.corrections ? e.corrections[1] : e.root);
  for_packs<T>(e, [&](int64_t i, int n, bool whole) {
    C x[kPack], d[kPack], mean[kPack], square[kPack], top[kPack] = {};
    load<T>(e.p, i, n, whole, x);
    load<T>(e.g, i, n, whole, d);
    load<T>(e.m, i, n, whole, mean);
    load<T>(e.v, i, n, whole, square);
    if (s.amsgrad) load<T>(e.top, i, n, whole, top);
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      if (s.maximize) d[k] = -d[k];
      if (s.weight_decay != 0) {
        if (s.decoupled) x[k] = mul(x[k], keep);
        else d[k] = add(d[k], mul(x[k], decay));
      }
      mean[k] = add(mean[k], mul(sub(d[k], mean[k]), rest1));
      square[k] = add(mul(square[k], beta2), mul(mul(d[k], d[k]), rest2));
      top[k] = s.amsgrad ? math::maximum(top[k], square[k]) : square[k];
      const C below = add(quotient(root(top[k]), divisor), eps);
      x[k] = sub(x[k], quotient(mul(step, mean[k]), below));
    }
    store<T>(mean, e.m, i, n, whole);
    store<T>(square, e.v, i, n, whole);
    if (s.amsgrad) store<T>(top, e.top, i, n, whole);
    store<T>(x, e.p, i, n, whole);
  });
}

template <class T, int capacity>
VESTA_KERNEL void rmsprop_kernel(VESTA_CONSTANT_ARGUMENT Entries<RmspropStep, capacity> a) {
  using C = compute_of<T>;
  const OptimEntry& e = a.at[entry_of(a.at, a.n, blockIdx.x)];
  const RmspropStep& s = a.step;
  const C lr = C(s.lr), decay = C(s.weight_decay), alpha = C(s.alpha), rest = C(1 - s.alpha), eps = C(s.eps),
          momentum = C(s.momentum);
  for_packs<T>(e, [&](int64_t i, int n, bool whole) {
    C x[kPack], d[kPack], square[kPack], mean[kPack] = {}, v[kPack] = {};
    load<T>(e.p, i, n, whole, x);
    load<T>(e.g, i, n, whole, d);
    load<T>(e.v, i, n, whole, square);
    if (s.centered) load<T>(e.top, i, n, whole, mean);
    if (e.m) load<T>(e.m, i, n, whole, v);
#pragma unroll
    for (int k = 0; k < kPack; ++k) {
      if (s.maximize) d[k] = -d[k];
      if (s.weight_decay != 0) d[k] = add(d[k], mul(x[k], decay));
      square[k] = add(mul(square[k], alpha), mul(mul(d[k], d[k]), rest));
      C below = square[k];
      if (s.centered) {
        mean[k] = add(mean[k], mul(sub(d[k], mean[k]), rest));
        below = sub(below, mul(mean[k], mean[k]));
      }
      d[k] = quotient(d[k], add(root(below), eps));
      if (e.m) d[k] = v[k] = add(mul(v[k], momentum), d[k]);
      x[k] = sub(x[k], mul(d[k], lr));
    }
    store<T>(square, e.v, i, n, whole);
    if (s.centered) store<T>(mean, e.top, i, n, whole);
    if (e.m) store<T>(v, e.m, i, n, whole);
    store<T>(x, e.p, i, n, whole);
  });
}

VESTA_KERNEL void adam_counts_kernel(VESTA_CONSTANT_ARGUMENT AdamCounts c) {
  const unsigned i = global_index();
  if (i >= unsigned(c.n)) return;
  const float count = add(*c.steps[i], 1.0f);
  *c.steps[i] = count;
  c.corrections[2 * i] = c.lr / (1 - ::pow(c.beta1, double(count)));
  c.corrections[2 * i + 1] = ::sqrt(1 - ::pow(c.beta2, double(count)));
}

/// Queues kernel(entries) over the blocks that the entries need.
template <class Step, int capacity>
void run_entries(const char* name, void (*kernel)(Entries<Step, capacity>), const OptimEntry* entries, int n,
                 const Step& step, StreamHandle stream) {
  Entries<Step, capacity> a;
  a.step = step, a.n = n;
  uint64_t blocks = 0;
  for (int i = 0; i < n; ++i) {
    a.at[i] = entries[i];
    a.at[i].first_block = uint32_t(blocks);
    blocks += uint64_t((entries[i].numel + kChunk - 1) / kChunk);
  }
  if (blocks) launch_independent(name, kernel, linear_shape(blocks * kThreads, kThreads, stream), a);
}

constexpr int kFew = 32;

}  // namespace

void run_sgd(const OptimEntry* entries, int n, DType dtype, const SgdStep& step, StreamHandle stream) {
  visit_device<kFloats>(dtype, [&]<class T>() {
    if (n <= kFew) run_entries<SgdStep, kFew>("sgd", sgd_kernel<T, kFew>, entries, n, step, stream);
    else run_entries<SgdStep, kOptimEntries>("sgd", sgd_kernel<T, kOptimEntries>, entries, n, step, stream);
  });
}

void run_adam(const OptimEntry* entries, int n, DType dtype, const AdamStep& step, StreamHandle stream) {
  visit_device<kFloats>(dtype, [&]<class T>() {
    if (n <= kFew) run_entries<AdamStep, kFew>("adam", adam_kernel<T, kFew>, entries, n, step, stream);
    else run_entries<AdamStep, kOptimEntries>("adam", adam_kernel<T, kOptimEntries>, entries, n, step, stream);
  });
}

void run_rmsprop(const OptimEntry* entries, int n, DType dtype, const RmspropStep& step, StreamHandle stream) {
  visit_device<kFloats>(dtype, [&]<class T>() {
    if (n <= kFew) run_entries<RmspropStep, kFew>("rmsprop", rmsprop_kernel<T, kFew>, entries, n, step, stream);
    else run_entries<RmspropStep, kOptimEntries>("rmsprop", rmsprop_kernel<T, kOptimEntries>, entries, n, step, stream);
  });
}

void run_adam_counts(const AdamCounts& c, StreamHandle stream) {
  launch_independent("adam_counts", adam_counts_kernel, linear_shape(uint64_t(c.n), 128, stream), c);
}

}  // namespace vesta::cuda
