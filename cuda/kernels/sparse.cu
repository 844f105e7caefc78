// The places of sparse tensors, and sums over equal ones. The product of a CSR matrix and a dense one: a team of lanes
// has a row of the result, a lane a column; sums go in the order of the elements, as on the CPU (core/cpu/sparse.cpp).
// Four elements are loaded before one is added.
#include <vesta/cuda/kernels/sparse.h>

#include <vesta/cuda/kernels/rounded.cuh>
#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {
namespace {

constexpr int kAtOnce = 4;

template <class C>
VESTA_DEVICE C product(C a, C b) {
  if constexpr (std::is_integral_v<C>) {
    return C(uint64_t(a) * uint64_t(b));
  } else if constexpr (is_complex_type<C>) {
    return C(rounded::sub(rounded::mul(a.re, b.re), rounded::mul(a.im, b.im)),
             rounded::add(rounded::mul(a.re, b.im), rounded::mul(a.im, b.re)));
  } else {
    return rounded::mul(a, b);
  }
}
template <class C>
VESTA_DEVICE C total(C a, C b) {
  if constexpr (std::is_integral_v<C>) return C(uint64_t(a) + uint64_t(b));
  else if constexpr (is_complex_type<C>) return a + b;
  else return rounded::add(a, b);
}

template <class T, class Index>
VESTA_KERNEL void csr_product_kernel(CsrProduct l, unsigned width) {
  using C = compute_of<T>;
  const GroupTeam team(width);
  const int64_t row = int64_t(team.row);
  if (row >= l.rows) return;
  const Index *const ends = static_cast<const Index*>(l.ends), *const places = static_cast<const Index*>(l.places);
  const T *const values = static_cast<const T*>(l.values), *const dense = static_cast<const T*>(l.dense);
  int64_t begin = int64_t(ends[row]), end = int64_t(ends[row + 1]);
  if (begin < 0 || end < begin || end > l.count) {
    report(l.fault, FaultKind::condition, l.not_ends, end, l.count);
    begin = end = 0;
  }
  for (int64_t j = team.rank; j < l.columns; j += team.size) {
    C sum = C(0);
    VESTA_ROLLED
    for (int64_t e = begin; e < end; e += kAtOnce) {
      C factor[kAtOnce], other[kAtOnce];
      bool there[kAtOnce];
      VESTA_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        const int64_t at = e + k < end ? e + k : e;
        const int64_t place = int64_t(places[at]);
        const bool inside = place >= 0 && place < l.inner;
        if (!inside) report(l.fault, FaultKind::index, l.name, place, l.inner);
        there[k] = e + k < end && inside;
        factor[k] = convert<C>(values[at]), other[k] = convert<C>(dense[(inside ? place : 0) * l.columns + j]);
      }
      VESTA_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        const C next = total(sum, product(factor[k], other[k]));
        sum = there[k] ? next : sum;
      }
    }
    static_cast<T*>(l.out)[row * l.columns + j] = convert<T>(sum);
  }
}

constexpr unsigned kThreads = 256;

template <class Key>
VESTA_KERNEL void sparse_numbers_kernel(SparsePlaces p, Key* numbers) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= p.n) return;
  uint64_t number = 0;
  for (int d = 0; d < p.dims; ++d) {
    number = number * uint64_t(p.sizes[d]) + uint64_t(p.indices[d * p.row + i * p.column]);
  }
  numbers[i] = Key(number);
}

/// Writes the indices of a place in each dimension, `step` apart.
VESTA_DEVICE void write_place(const SparsePlaces& p, uint64_t number, int64_t* to, int64_t step) {
  for (int d = p.dims - 1; d >= 0; --d) {
    const uint64_t size = p.sizes[d] > 0 ? uint64_t(p.sizes[d]) : 1, next = number / size;
    to[d * step] = int64_t(number - next * size);
    number = next;
  }
}

VESTA_KERNEL void sparse_places_kernel(SparsePlaces p, const int64_t* numbers, int64_t* places) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i < p.n) write_place(p, uint64_t(numbers[i]), places + i, p.n);
}

template <class Key>
VESTA_KERNEL void sparse_heads_kernel(int64_t n, SparseRuns r) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;
  const Key* const numbers = static_cast<const Key*>(r.numbers);
  r.group[i] = i == 0 || numbers[i] != numbers[i - 1];
  r.order[i] = int64_t(static_cast<const Key*>(r.elements)[i]);
}

template <class Key>
VESTA_KERNEL void sparse_starts_kernel(SparsePlaces p, SparseRuns r, int64_t count, int64_t* places, int64_t* starts) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= p.n) return;
  if (i == p.n - 1) starts[count] = p.n;
  const int64_t group = r.group[i] - 1;
  if (i > 0 && r.group[i - 1] - 1 == group) return;
  starts[group] = i;
  write_place(p, uint64_t(static_cast<const Key*>(r.numbers)[i]), places + group, count);
}

template <class T>
VESTA_KERNEL void run_sums_kernel(RunSums l, unsigned width) {
  using C = compute_of<T>;
  const GroupTeam team(width);
  const int64_t run = int64_t(team.row);
  if (run >= l.count) return;
  const T* const values = static_cast<const T*>(l.values);
  const int64_t begin = l.starts[run], end = l.starts[run + 1];
  for (int64_t j = team.rank; j < l.columns; j += team.size) {
    C sum = C(0);
    VESTA_ROLLED
    for (int64_t e = begin; e < end; e += kAtOnce) {
      C v[kAtOnce];
      VESTA_UNROLL
      for (int k = 0; k < kAtOnce; ++k) v[k] = convert<C>(values[l.order[e + k < end ? e + k : e] * l.columns + j]);
      VESTA_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        const C next = total(sum, v[k]);
        sum = e + k < end ? next : sum;
      }
    }
    static_cast<T*>(l.out)[run * l.columns + j] = convert<T>(sum);
  }
}

/// Returns the lanes that share a row of so many columns.
unsigned lanes_of(int64_t columns) {
  unsigned width = 1;
  while (width < 32 && int64_t(width) < columns) width *= 2;
  return width;
}

}  // namespace

void run_sparse_numbers(const SparsePlaces& p, void* numbers, bool wide) {
  const LaunchShape shape = linear_shape(uint64_t(p.n), kThreads, p.stream);
  if (wide) {
    launch_independent("_sparse_numbers", sparse_numbers_kernel<uint64_t>, shape, p, static_cast<uint64_t*>(numbers));
  } else {
    launch_independent("_sparse_numbers", sparse_numbers_kernel<uint32_t>, shape, p, static_cast<uint32_t*>(numbers));
  }
}

void run_sparse_places(const SparsePlaces& p, const int64_t* numbers, int64_t* places) {
  launch_independent("_sparse_places", sparse_places_kernel, linear_shape(uint64_t(p.n), kThreads, p.stream), p,
                     numbers, places);
}

void run_sparse_heads(const SparsePlaces& p, const SparseRuns& r) {
  const LaunchShape shape = linear_shape(uint64_t(p.n), kThreads, p.stream);
  if (r.wide) launch_independent("_sparse_order", sparse_heads_kernel<uint64_t>, shape, p.n, r);
  else launch_independent("_sparse_order", sparse_heads_kernel<uint32_t>, shape, p.n, r);
}

void run_sparse_starts(const SparsePlaces& p, const SparseRuns& r, int64_t count, int64_t* places, int64_t* starts) {
  const LaunchShape shape = linear_shape(uint64_t(p.n), kThreads, p.stream);
  if (r.wide) {
    launch_independent("_sparse_order", sparse_starts_kernel<uint64_t>, shape, p, r, count, places, starts);
  } else {
    launch_independent("_sparse_order", sparse_starts_kernel<uint32_t>, shape, p, r, count, places, starts);
  }
}

void run_run_sums(const RunSums& l) {
  const unsigned width = lanes_of(l.columns);
  visit_device<kNumbers>(l.dtype, [&]<class T>() {
    launch_independent("_sum_runs", run_sums_kernel<T>, team_shape(uint64_t(l.count), width, l.stream), l, width);
  });
}

void run_csr_product(const CsrProduct& l) {
  const unsigned width = lanes_of(l.columns);
  visit_device<kNumbers>(l.dtype, [&]<class T>() {
    const auto run = [&]<class Index>(const Index*) {
      launch_independent("_csr_product", csr_product_kernel<T, Index>, team_shape(uint64_t(l.rows), width, l.stream), l,
                         width);
    };
    if (l.index == DType::int32) run(static_cast<const int32_t*>(nullptr));
    else run(static_cast<const int64_t*>(nullptr));
  });
}

}  // namespace vesta::cuda
