// Additions at positions, in the order of the indices: this is the CPU's order, and for 32 and 64 bits gives the CPU's
// bits. Where the program allows it, in any order: one launch, without keys.
#include <vesta/cuda/kernels/index.h>

#include <vesta/cuda/kernels/add_scaled.cuh>
#include <vesta/cuda/kernels/lines.cuh>
#include <vesta/cuda/kernels/places.cuh>
#include <vesta/cuda/kernels/teams.cuh>
#include <vesta/cuda/kernels/walk.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 256;

template <class Index>
struct SortedAdditions {
  char* self;
  const char* other;
  uint64_t total;
  int marked;
  const Index* keys;
  const Index* order;
  Index count;
  int64_t unit, step;
  Index bad_key;
  double alpha;
};

/// Adds N elements at sorted keys: the thread at the first of equal keys adds them all.
template <class T, class Index, int N>
VESTA_KERNEL void add_kernel(Walk<Index, 2> walk, SortedAdditions<Index> m) {
  using Pack = Elements<T, N>;
  constexpr Index kAhead = N == 1 ? 8 : 4;  // loaded ahead while one thread adds a long run of equal positions
  const Index i = thread_number<Index>();
  if (i >= m.total) return;
  int64_t offset[2];
  const Index s = walk.offsets(i, offset, m.marked), key = m.keys[s];
  if (key == m.bad_key || (s > 0 && m.keys[s - 1] == key)) return;
  Pack* to = reinterpret_cast<Pack*>(m.self + offset[0] + int64_t(key) * m.unit);
  const char* from = m.other + offset[1] - int64_t(s) * m.step;
  auto value = [&](Index k) {
    return *reinterpret_cast<const Pack*>(from + int64_t(m.order ? m.order[k] : k) * m.step);
  };
  compute_of<T> sum[N];
  const Pack before = *to, first_value = value(s);
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) sum[j] = add_scaled(convert<compute_of<T>>(before.v[j]), first_value.v[j], m.alpha);
  VESTA_ROLLED
  for (Index first = s + 1; first < m.count && m.keys[first] == key; first += kAhead) {
    bool equal[kAhead];
    Pack v[kAhead];
    VESTA_UNROLL
    for (Index k = 0; k < kAhead; ++k) equal[k] = first + k < m.count && m.keys[first + k] == key;
    VESTA_UNROLL
    for (Index k = 0; k < kAhead; ++k) {
      if (equal[k]) v[k] = value(first + k);
    }
    VESTA_UNROLL
    for (Index k = 0; k < kAhead; ++k) {
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) {
        if (equal[k]) sum[j] = add_scaled(sum[j], v[k].v[j], m.alpha);
      }
    }
    if (!equal[kAhead - 1]) break;
  }
  Pack result;
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) result.v[j] = convert<T>(sum[j]);
  *to = result;
}

/// Adds along lines of the indexed dimension, one thread per line.
template <class T, class Index>
VESTA_KERNEL void scatter_lines_kernel(Walk<Index, 3> walk, ElementMoves m) {
  const Index i = thread_number<Index>();
  if (i >= Index(m.total)) return;
  each_along_line<T>(walk, m, i, [](T& to, T v) { to = convert<T>(add_scaled(convert<compute_of<T>>(to), v, 1.0)); });
}

/// Adds at positions in any order.
template <class T, class Index>
VESTA_KERNEL void add_any_kernel(Walk<Index, 2> walk, Moves m, T alpha) {
  const Index i = thread_number<Index>();
  if (i >= Index(m.total)) return;
  int64_t offset[2];
  const int64_t place = place_of(m.places, walk.offsets(i, offset, m.marked));
  if (place == kBadPlace) return;
  const T v = *reinterpret_cast<const T*>(m.other + offset[1]);
  atomic_add(reinterpret_cast<T*>(m.self + offset[0] + place), rounded::mul(v, alpha));
}

/// Adds elements at their positions in any order.
template <class T, class Index>
VESTA_KERNEL void scatter_any_kernel(Walk<Index, 3> walk, ElementMoves m) {
  const Index i = thread_number<Index>();
  if (i >= Index(m.total)) return;
  int64_t offset[3];
  walk.offsets(i, offset);
  const int64_t at = *reinterpret_cast<const int64_t*>(m.index + offset[1]);
  if (uint64_t(at) >= uint64_t(m.size)) return report(m.fault, FaultKind::element_index, m.name, at, m.size, m.dim);
  atomic_add(reinterpret_cast<T*>(m.self + offset[0] + at * m.stride),
             *reinterpret_cast<const T*>(m.other + offset[2]));
}

/// Multiplies, or keeps the larger or smaller; NaN wins.
template <class T>
VESTA_DEVICE T combined(T a, T b, Combine how) {
  if constexpr (std::is_same_v<T, bool>) {
    return how == Combine::larger ? a || b : a && b;
  } else {
    if (how == Combine::product) return T(a * b);
    if (a != a) return a;
    return b != b || (how == Combine::larger ? b > a : b < a) ? b : a;
  }
}

/// Combines along lines of the indexed dimension, one thread per line.
template <class T, class Index>
VESTA_KERNEL void combine_lines_kernel(Walk<Index, 3> walk, ElementMoves m, Combine how) {
  using C = compute_of<T>;
  const Index i = thread_number<Index>();
  if (i >= Index(m.total)) return;
  each_along_line<T>(walk, m, i, [&](T& to, T v) { to = convert<T>(combined(convert<C>(to), convert<C>(v), how)); });
}

template <class T, class Index, int N>
void add(const Moves& m, double alpha) {
  const SortedAdditions<Index> a{m.self,
                                 m.other,
                                 uint64_t(m.total),
                                 m.marked,
                                 static_cast<const Index*>(m.keys),
                                 static_cast<const Index*>(m.order),
                                 Index(m.count),
                                 m.unit,
                                 m.walk.strides[1][m.marked],
                                 Index(m.bad_key),
                                 alpha};
  launch_independent(m.name, add_kernel<T, Index, N>, linear_shape(uint64_t(m.total), kThreads, m.stream),
                     Walk<Index, 2>(m.walk), a);
}

template <class T, class Index>
void scatter_lines(const ElementMoves& m) {
  launch_independent(m.name, scatter_lines_kernel<T, Index>, linear_shape(uint64_t(m.total), kThreads, m.stream),
                     Walk<Index, 3>(m.walk), m);
}

constexpr DTypeSet kAll{0xfff};

}  // namespace

void run_add(const Moves& m, DType dtype, double alpha, int64_t unit) {
  visit_device<kAll>(dtype, [&]<class T>() {
    constexpr int N = int(added_together(sizeof(T)) / int64_t(sizeof(T)));
    if (unit == added_together(sizeof(T)) && !m.wide) add<T, uint32_t, N>(m, alpha);
    else if (m.wide) add<T, uint64_t, 1>(m, alpha);
    else add<T, uint32_t, 1>(m, alpha);
  });
}

void run_scatter_lines(const ElementMoves& m, DType dtype) {
  visit_device<kAll>(dtype, [&]<class T>() {
    if (m.wide) scatter_lines<T, uint64_t>(m);
    else scatter_lines<T, uint32_t>(m);
  });
}

void run_add_in_any_order(const Moves& m, DType dtype, double alpha) {
  visit_device<kAddedInPlace>(dtype, [&]<class T>() {
    auto launch = [&]<class Index>(Index) {
      launch_independent(m.name, add_any_kernel<T, Index>, linear_shape(uint64_t(m.total), kThreads, m.stream),
                         Walk<Index, 2>(m.walk), m, T(alpha));
    };
    if (m.wide) launch(uint64_t());
    else launch(uint32_t());
  });
}

void run_scatter_in_any_order(const ElementMoves& m, DType dtype) {
  visit_device<kAddedInPlace>(dtype, [&]<class T>() {
    auto launch = [&]<class Index>(Index) {
      launch_independent(m.name, scatter_any_kernel<T, Index>, linear_shape(uint64_t(m.total), kThreads, m.stream),
                         Walk<Index, 3>(m.walk), m);
    };
    if (m.wide) launch(uint64_t());
    else launch(uint32_t());
  });
}

void run_combine_lines(const ElementMoves& m, DType dtype, Combine how) {
  visit_device<kReals | kBool>(dtype, [&]<class T>() {
    auto launch = [&]<class Index>(Index) {
      launch_independent(m.name, combine_lines_kernel<T, Index>, linear_shape(uint64_t(m.total), kThreads, m.stream),
                         Walk<Index, 3>(m.walk), m, how);
    };
    if (m.wide) launch(uint64_t());
    else launch(uint32_t());
  });
}

}  // namespace vesta::cuda
