// The kernels made from a pointwise struct: per dtype one over any strides and, where packs of elements pay, one over
// rows (the inner dimension of each operand is contiguous or one repeated value: 16-byte accesses). The CPU's loops are
// made from the same struct (core/cpu/loops.h).
#pragma once
#include <cstring>

#include <vesta/core/ops/lines.h>
#include <vesta/core/ops/pointwise_traits.h>
#include <vesta/cuda/kernels/packs.cuh>
#include <vesta/cuda/kernels/pointwise.h>

namespace vesta::cuda {

constexpr unsigned kThreads = 256;

/// The widest access, in bytes: what the host checks. A type that claims more gets wider ones on newer GPUs.
constexpr size_t kWidestAccess = 16;
/// Returns the alignment of N elements of a size that are loaded and stored at once.
constexpr size_t pack_alignment(size_t item, int n) {
  return item * size_t(n) < kWidestAccess ? item * size_t(n) : kWidestAccess;
}
/// Returns the number of elements that a thread of the rows' kernel takes: 16 bytes of `widest`, the larger of the
/// types that are loaded and stored, and no more than 64 of a result that is wider than it.
constexpr int pack_size(size_t widest, size_t result) {
  const size_t loaded = widest >= kWidestAccess ? 1 : kWidestAccess / widest, stored = 64 / result;
  return int(loaded < stored ? loaded : stored);
}

/// The kernel's form of a launch: 32-bit sizes and strides, prepared divisors.
template <int inputs>
struct LoopArgs {
  char* out;
  const char* in[inputs];  // null: value
  alignas(16) char value[inputs][16];  // or, of 16-bit floats, the address of a float
  double params[kMaxParams];
  uint32_t n;  // elements; of the rows' kernel, packs
  uint32_t row;  // of the rows' kernel: elements of a row
  uint32_t held;  // a bit for each operand whose value is an address
  uint32_t repeated;  // of the rows' kernel: a bit for each operand that is one value along a row
  uint32_t loose;  // and for each whose elements are loaded one by one: its rows are not aligned for packs
  uint32_t flat;  // elements of a dense result whose packs pass from row to row; 0: each row has its own
  int ndim;
  char* second;  // of two results, the second: its elements lie as those of `out`
  FastDivisor sizes[kLaunchDims];
  int32_t out_strides[kLaunchDims];  // bytes; of the rows' kernel, dimension 0 counts packs
  int32_t strides[inputs][kLaunchDims];
};

/// The computation of an op: forward of struct D. It gives the result of one element from the loaded ones.
template <class D, class T, int inputs_, class P>
struct Forward {
  static constexpr int inputs = inputs_;
  static constexpr bool mask = traits::mask_first<D>();
  using In = T;
  using C = compute_of<T>;
  template <size_t... K>
  VESTA_HD VESTA_INLINE static auto expanded(std::index_sequence<K...>, const C* v, bool m, const double* p) {
    if constexpr (mask) return D::forward(m, v[K + 1]...);
    else return traits::forward<D, P>(p, v[K]...);
  }
  VESTA_HD VESTA_INLINE static auto call(const C* v, bool m, const double* p) {
#ifdef __CUDA_ARCH__  // a formula of its own for results of 16 bits
    if constexpr (is_half_type<T> && requires(C x) { D::forward_of_16_bits(x); }) {
      return D::forward_of_16_bits(v[0]);
    } else
#endif
      return expanded(std::make_index_sequence<mask ? inputs - 1 : inputs>{}, v, m, p);
  }
  using Value = decltype(call(nullptr, false, nullptr));
  // the type written: bool for predicates, the real type of a complex op, the complex type of parts, else T
  static constexpr auto result = traits::result_of<D>();
  using Result_ = std::conditional_t<result == Result::boolean, bool,
                                     std::conditional_t<result == Result::real && is_complex_type<T>, Value,
                                                        std::conditional_t<result == Result::complex, Complex<C>, T>>>;
  static constexpr bool pair = traits::has_two_results<D>();
  using Second = traits::Second<D, T>;
  using Widest = std::conditional_t<pair, Second, Result_>;  // that is stored
};

/// The gradient of input i of struct D: the operands are g and the operands it uses.
template <class D, class T, int op_inputs, class P, int i>
struct Backward {
  using G = traits::Gradient<D, op_inputs, P, i>;
  static constexpr int inputs = G::operands;
  static constexpr bool mask = false;
  using In = T;
  using C = compute_of<T>;
  using Result_ = T;
  static constexpr bool pair = false;
  using Widest = T;
  VESTA_HD VESTA_INLINE static C call(const C* v, bool, const double* p) {
#ifdef __CUDA_ARCH__
    if constexpr (is_half_type<T> && requires(C x) { D::backward_of_16_bits(x, x); }) {
      return D::backward_of_16_bits(v[0], v[1]);
    }
#endif
    return G::template call<C>(v[0], v + 1, p);
  }
};

/// The same for two operands of float32 of which operand `other` is read as H, a 16-bit float.
template <class D, class H, int other, class P>
struct MixedForward : Forward<D, float, 2, P> {
  template <int k>
  using Operand = std::conditional_t<k == other, H, float>;
};

template <class F, int k>
struct OperandType {
  using type = std::conditional_t<F::mask && k == 0, bool, typename F::In>;
};
template <class F, int k>
  requires requires { typename F::template Operand<k>; }
struct OperandType<F, k> {
  using type = typename F::template Operand<k>;
};
template <class F, int k>
using operand_t = typename OperandType<F, k>::type;

/// Loads operand k of the element at `p`, converted to the type of the computation.
template <class F, int k>
VESTA_HD VESTA_INLINE void load_one(const char* p, typename F::C* v, bool& m) {
  if constexpr (F::mask && k == 0) m = *reinterpret_cast<const bool*>(p);
  else v[k] = convert<typename F::C>(*reinterpret_cast<const operand_t<F, k>*>(p));
}

/// Loads operand k that is one value everywhere: it is of the type of the computation, unless the op has a mask. Beside
/// 16-bit floats the device may have a wider one, which is not rounded to them.
template <class F, int k>
VESTA_HD VESTA_INLINE void load_value(const LoopArgs<F::inputs>& a, typename F::C* v, bool& m) {
  const char* const p = a.value[k];
  if constexpr (F::mask) load_one<F, k>(p, v, m);
  else if constexpr (!is_half_type<typename F::In>) v[k] = *reinterpret_cast<const typename F::C*>(p);
  else if (a.held >> k & 1) v[k] = **reinterpret_cast<const typename F::C* const*>(p);
  else v[k] = *reinterpret_cast<const typename F::C*>(p);
}

/// Makes the result that is written of a formula's value: a complex number of its parts.
template <class F, class V>
VESTA_HD VESTA_INLINE typename F::Result_ result_from(const V& value) {
  return convert<typename F::Result_>(value);
}
template <class F, class A, class B>
VESTA_HD VESTA_INLINE typename F::Result_ result_from(const Both<A, B>& value) {
  if constexpr (F::pair) return convert<typename F::Result_>(value.first);
  else return typename F::Result_(value.first, value.second);
}

/// The offset of an element, or a pack, in each operand, in bytes; `inner` is its index along dimension 0.
template <int inputs>
struct Place {
  int64_t out = 0, in[inputs] = {};
  uint32_t inner = 0;
};

/// Moves M positions, whose elements or packs are numbered from `rest`, to where these lie. A product of 32-bit numbers
/// is added to a 64-bit one in one instruction; the M divisions of a dimension do not wait for each other.
template <int M, int inputs, size_t... K>
VESTA_DEVICE void find_places(std::index_sequence<K...>, const LoopArgs<inputs>& a, uint32_t (&rest)[M],
                              Place<inputs> (&places)[M]) {
  if (a.ndim == 1) {  // most launches: without the loop, which costs as much as a short formula
    VESTA_UNROLL
    for (int k = 0; k < M; ++k) {
      places[k].inner = rest[k];
      places[k].out = int64_t(int32_t(rest[k])) * a.out_strides[0];
      ((places[k].in[K] = int64_t(int32_t(rest[k])) * a.strides[K][0]), ...);
    }
    return;
  }
  VESTA_ROLLED
  for (int d = 0; d < a.ndim; ++d) {
    VESTA_UNROLL
    for (int k = 0; k < M; ++k) {
      const uint32_t next = d + 1 < a.ndim ? a.sizes[d].divide(rest[k]) : 0;
      const uint32_t at = rest[k] - next * a.sizes[d].divisor;
      rest[k] = next;
      if (d == 0) places[k].inner = at;
      places[k].out += int64_t(int32_t(at)) * a.out_strides[d];
      ((places[k].in[K] += int64_t(int32_t(at)) * a.strides[K][d]), ...);
    }
  }
}

/// Computes and writes the element of these operands; `at` is its offset in the result, in bytes.
template <class F>
VESTA_DEVICE void store_one(const LoopArgs<F::inputs>& a, int64_t at, const typename F::C* v, bool m) {
  const auto value = F::call(v, m, a.params);
  *reinterpret_cast<typename F::Result_*>(a.out + at) = result_from<F>(value);
  if constexpr (F::pair) {
    using S = typename F::Second;
    reinterpret_cast<S*>(a.second)[at / int64_t(sizeof(typename F::Result_))] = convert<S>(value.second);
  }
}

/// Whether packs may pass from row to row: of types of one or two bytes, of which the strided kernel has too few bytes
/// in flight.
template <class F>
constexpr bool passes_rows = sizeof(typename F::In) <= 2;

/// Loads N neighbours along a row of operand k, or its one value; those from number `left` on are of the row at `next`.
template <class F, int N, int k>
VESTA_DEVICE void load_pack(const LoopArgs<F::inputs>& a, int64_t at, int64_t next, uint32_t left,
                            typename F::C (&v)[N][F::inputs], bool (&m)[N]) {
  using T = operand_t<F, k>;
  if (!a.in[k]) {
    for (int j = 0; j < N; ++j) load_value<F, k>(a, v[j], m[j]);
  } else if (a.repeated >> k & 1) {
    const T one = *reinterpret_cast<const T*>(a.in[k] + at);
    const T other = passes_rows<F> && N > 1 && left < uint32_t(N) ? *reinterpret_cast<const T*>(a.in[k] + next) : one;
    for (int j = 0; j < N; ++j) {
      const T own = uint32_t(j) < left ? one : other;
      load_one<F, k>(reinterpret_cast<const char*>(&own), v[j], m[j]);
    }
  } else if (passes_rows<F> && N > 1 && a.loose >> k & 1) {
    const char* const from = a.in[k] + at;
    const int64_t jump = next - at - int64_t(left) * int64_t(sizeof(T));
    T pack[N];
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      const char* const p = from + j * int(sizeof(T));
      pack[j] = *reinterpret_cast<const T*>(uint32_t(j) < left ? p : p + jump);
    }
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) load_one<F, k>(reinterpret_cast<const char*>(&pack[j]), v[j], m[j]);
  } else {
    const auto pack = *reinterpret_cast<const Elements<T, N>*>(a.in[k] + at);
    if constexpr (is_half_type<T> && std::is_same_v<typename F::C, float>) {
      float w[N];
      widen(pack, w);
      for (int j = 0; j < N; ++j) v[j][k] = w[j];
    } else {
      for (int j = 0; j < N; ++j) load_one<F, k>(reinterpret_cast<const char*>(&pack.v[j]), v[j], m[j]);
    }
  }
}

template <class F, int N, size_t... K>
VESTA_DEVICE void row_pack(std::index_sequence<K...>, const LoopArgs<F::inputs>& a, const Place<F::inputs>& place,
                           const Place<F::inputs>& next, uint32_t left) {
  typename F::C v[N][F::inputs];
  bool m[N] = {};
  (load_pack<F, N, int(K)>(a, place.in[K], next.in[K], left, v, m), ...);
  using R = typename F::Result_;
  Elements<R, N> r;
  if constexpr (F::pair) {
    using S = typename F::Second;
    Elements<S, N> second;
    for (int j = 0; j < N; ++j) {
      const auto value = F::call(v[j], m[j], a.params);
      r.v[j] = result_from<F>(value), second.v[j] = convert<S>(value.second);
    }
    const int64_t at = place.out / int64_t(sizeof(R)) * int64_t(sizeof(S));
    *reinterpret_cast<Elements<S, N>*>(a.second + at) = second;
  } else if constexpr (is_half_type<R> && std::is_same_v<decltype(F::call(v[0], m[0], a.params)), float>) {
    float w[N];
    for (int j = 0; j < N; ++j) w[j] = F::call(v[j], m[j], a.params);
    r = narrowed<R, N>(w);
  } else {
    for (int j = 0; j < N; ++j) r.v[j] = result_from<F>(F::call(v[j], m[j], a.params));
  }
  *reinterpret_cast<Elements<R, N>*>(a.out + place.out) = r;
}

/// Advances a position by one element along its row.
template <class F, size_t... K>
VESTA_DEVICE void step_along_row(std::index_sequence<K...>, const LoopArgs<F::inputs>& a, Place<F::inputs>& place) {
  place.out += int64_t(sizeof(typename F::Result_));
  ((place.in[K] += a.repeated >> K & 1 ? 0 : int64_t(sizeof(operand_t<F, int(K)>))), ...);
}

/// Runs over rows: a thread takes one pack of the result, or what is left of a row. Rows that are aligned for packs
/// have their own, a dense result of other rows has packs that pass from one row to the next.
template <class F, int N>
VESTA_KERNEL void rows_kernel(LoopArgs<F::inputs> a) {
  const uint32_t i = global_index();
  if (i >= a.n) return;
  constexpr auto all = std::make_index_sequence<size_t(F::inputs)>{};
  const bool flat = passes_rows<F> && a.flat;
  const uint32_t number = flat ? i * N : i;
  uint32_t rest[1] = {number};
  Place<F::inputs> place[1];
  find_places(all, a, rest, place);
  const uint32_t left = a.row - (flat ? place[0].inner : place[0].inner * N);  // of the row
  if (flat ? number + N <= a.flat : left >= N) {
    Place<F::inputs> next[1] = {place[0]};
    if (passes_rows<F> && left < N) {
      rest[0] = number + left, next[0] = {};
      find_places(all, a, rest, next);
    }
    return row_pack<F, N>(all, a, place[0], next[0], left);
  }
  VESTA_ROLLED
  for (uint32_t j = flat ? a.flat - number : left; j > 0; --j) {
    row_pack<F, 1>(all, a, place[0], place[0], 1);
    step_along_row<F>(all, a, place[0]);
  }
}

template <class F, size_t... K>
VESTA_DEVICE void load_strided(std::index_sequence<K...>, const LoopArgs<F::inputs>& a, const Place<F::inputs>& place,
                               typename F::C* v, bool& m) {
  auto load = [&]<int k>() {
    if (a.in[k]) load_one<F, k>(a.in[k] + place.in[k], v, m);
    else load_value<F, k>(a, v, m);
  };
  (load.template operator()<int(K)>(), ...);
}

/// The number of elements that a thread of the strided kernel loads before it stores one.
constexpr int kStridedElements = 4;

/// Runs over any strides: a thread takes four elements, a block apart.
template <class F>
VESTA_KERNEL void strided_kernel(LoopArgs<F::inputs> a) {
  constexpr auto all = std::make_index_sequence<size_t(F::inputs)>{};
  const uint32_t first = blockIdx.x * blockDim.x * kStridedElements + threadIdx.x;
  uint32_t rest[kStridedElements];
  VESTA_UNROLL
  for (int k = 0; k < kStridedElements; ++k) {
    const uint32_t i = first + uint32_t(k) * blockDim.x;
    rest[k] = i < a.n ? i : 0;  // all loads are issued, the last ones perhaps in vain
  }
  Place<F::inputs> places[kStridedElements];
  find_places(all, a, rest, places);
  typename F::C v[kStridedElements][F::inputs];
  bool m[kStridedElements] = {};
  VESTA_UNROLL
  for (int k = 0; k < kStridedElements; ++k) load_strided<F>(all, a, places[k], v[k], m[k]);
  VESTA_ROLLED  // the formula is compiled once: the elements move up
      for (uint32_t i = first; i < a.n; i += blockDim.x) {
    store_one<F>(a, places[0].out, v[0], m[0]);
    if (i - first == uint32_t(kStridedElements - 1) * blockDim.x) return;
    VESTA_UNROLL
    for (int k = 1; k < kStridedElements; ++k) {
      for (int j = F::mask ? 1 : 0; j < F::inputs; ++j) v[k - 1][j] = v[k][j];
      m[k - 1] = m[k], places[k - 1].out = places[k].out;
    }
  }
}

template <int inputs>
LoopArgs<inputs> loop_args(const PointwiseLaunch& l) {
  LoopArgs<inputs> a;
  a.out = l.out, a.n = uint32_t(l.numel), a.second = l.second, a.ndim = l.ndim, a.row = 0, a.held = 0, a.repeated = 0;
  a.loose = 0, a.flat = 0;
  for (int k = 0; k < inputs; ++k) {
    a.in[k] = l.in[k].data;
    if (l.in[k].held) std::memcpy(a.value[k], &l.in[k].held, sizeof l.in[k].held), a.held |= 1u << k;
    else std::memcpy(a.value[k], l.in[k].value, 16);
  }
  std::memcpy(a.params, l.params, sizeof a.params);
  for (int d = 0; d < l.ndim; ++d) {
    a.sizes[d] = FastDivisor(uint32_t(l.sizes[d]));
    a.out_strides[d] = int32_t(l.out_strides[d]);
    for (int k = 0; k < inputs; ++k) a.strides[k][d] = int32_t(l.in[k].strides[d]);
  }
  return a;
}

/// Returns whether rows of elements of `item` bytes, of an operand at `p`, are contiguous and aligned for packs of N.
inline bool has_packed_rows(const PointwiseLaunch& l, const char* p, const int64_t* strides, int64_t item, int n) {
  const int64_t alignment = int64_t(pack_alignment(size_t(item), n));
  if (l.ndim > 0 && l.sizes[0] > 1 && strides[0] != item) return false;
  for (int d = 1; d < l.ndim; ++d) {
    if (strides[d] % alignment != 0) return false;
  }
  return reinterpret_cast<uintptr_t>(p) % size_t(alignment) == 0;
}

/// The length class of a topic's formulas. Above a few hundred instructions, memory is not the limit: the kernel over
/// any strides alone is as fast, in less than half of the code.
enum class Formulas { short_ones, long_ones };

/// The fewest elements of 16 bytes that make a kernel over rows: a warp that loads single elements of 8 bytes, four a
/// thread, has as many bytes in flight.
constexpr int kFewestInPack = 4;

/// The kernels of a functor, and what the host needs about its elements: one function launches those of all functors,
/// which leaves a table to compile for each.
template <int inputs>
struct LoopKernels {
  void (*rows)(LoopArgs<inputs>);  // null: there is none
  void (*strided)(LoopArgs<inputs>);
  int pack;  // elements that a thread of the rows' kernel takes
  bool flat;  // whether they may pass from row to row
  int64_t result, second = 0;  // bytes of an element of the results; 0: there is no second one
  int64_t items[inputs];  // of the operands
};

/// Fills what the rows' kernel needs beside loop_args; returns whether it can run.
template <int inputs>
bool make_rows(const PointwiseLaunch& l, const LoopKernels<inputs>& kernels, LoopArgs<inputs>& a) {
  const int n = kernels.pack;
  if (l.ndim > 1 && l.sizes[0] < n) return false;
  if (!has_packed_rows(l, l.out, l.out_strides, kernels.result, n)) return false;
  if (kernels.second) {
    int64_t strides[kLaunchDims];
    for (int d = 0; d < l.ndim; ++d) strides[d] = l.out_strides[d] / kernels.result * kernels.second;
    if (!has_packed_rows(l, l.second, strides, kernels.second, n)) return false;
  }
  for (int k = 0; k < inputs; ++k) {
    if (!l.in[k].data) continue;
    if (l.ndim > 0 && l.in[k].strides[0] == 0 && l.sizes[0] > 1) a.repeated |= 1u << k;
    else if (!has_packed_rows(l, l.in[k].data, l.in[k].strides, kernels.items[k], n)) return false;
  }
  a.row = l.ndim ? uint32_t(l.sizes[0]) : 1;
  const uint32_t packs = (a.row + uint32_t(n) - 1) / uint32_t(n);
  a.n = uint32_t(l.numel / a.row) * packs;
  if (!l.ndim) return true;
  a.sizes[0] = FastDivisor(packs);
  a.out_strides[0] = int32_t(kernels.result * n);
  for (int k = 0; k < inputs; ++k) a.strides[k][0] = a.repeated >> k & 1 ? 0 : int32_t(kernels.items[k] * n);
  return true;
}

/// Does the same for a dense result whose rows are not aligned for packs, or whose operands' are not.
template <int inputs>
bool make_flat(const PointwiseLaunch& l, const LoopKernels<inputs>& kernels, LoopArgs<inputs>& a) {
  const int n = kernels.pack;
  if (!kernels.flat || l.ndim == 0 || l.sizes[0] < n) return false;
  const auto is_flat = [&](const char* p, const int64_t* strides, int64_t item, int64_t unit) {
    int64_t step = unit;
    for (int d = 0; d < l.ndim; step *= l.sizes[d++]) {
      if (l.sizes[d] > 1 && strides[d] != step) return false;
    }
    return reinterpret_cast<uintptr_t>(p) % pack_alignment(size_t(item), n) == 0;
  };
  if (!is_flat(l.out, l.out_strides, kernels.result, kernels.result)) return false;
  if (kernels.second && !is_flat(l.second, l.out_strides, kernels.second, kernels.result)) return false;
  a.repeated = a.loose = 0;
  for (int k = 0; k < inputs; ++k) {
    const int64_t item = kernels.items[k], step = l.in[k].strides[0];
    if (!l.in[k].data || is_flat(l.in[k].data, l.in[k].strides, item, item)) continue;
    if (step == 0) a.repeated |= 1u << k;
    else if (step == item) a.loose |= 1u << k;
    else return false;
  }
  a.row = uint32_t(l.sizes[0]), a.flat = uint32_t(l.numel);
  a.n = uint32_t(l.numel + n - 1) / uint32_t(n);
  return true;
}

/// Queues the kernel that a launch asks for.
template <int inputs>
void run_kernels(const PointwiseLaunch& l, const LoopKernels<inputs>& kernels) {
  auto a = loop_args<inputs>(l);
  if (kernels.rows && (make_rows(l, kernels, a) || make_flat(l, kernels, a))) {
    launch_independent(l.name, kernels.rows, linear_shape(a.n, kThreads, l.stream), a);
  } else {
    a.n = uint32_t(l.numel), a.repeated = a.loose = 0;
    const uint64_t threads = uint64_t(l.numel + kStridedElements - 1) / kStridedElements;
    launch_independent(l.name, kernels.strided, linear_shape(threads, kThreads, l.stream), a);
  }
}

template <class F, Formulas formulas, size_t... K>
constexpr LoopKernels<F::inputs> loop_kernels(std::index_sequence<K...>) {
  constexpr size_t kLoaded = sizeof(typename F::In), kStored = sizeof(typename F::Widest);
  constexpr int N = [] {
    if constexpr (requires { F::pack; }) return F::pack;
    else return pack_size(kLoaded > kStored ? kLoaded : kStored, sizeof(typename F::Result_));
  }();
  int64_t second = 0;
  if constexpr (F::pair) second = sizeof(typename F::Second);
  void (*rows)(LoopArgs<F::inputs>) = nullptr;
  if constexpr (formulas == Formulas::short_ones && N >= kFewestInPack) rows = &rows_kernel<F, N>;
  return {rows,
          &strided_kernel<F>,
          N,
          passes_rows<F>,
          int64_t(sizeof(typename F::Result_)),
          second,
          {int64_t(sizeof(operand_t<F, int(K)>))...}};
}

/// Queues functor F over a launch.
template <class F, Formulas formulas = Formulas::short_ones>
void run_loop(const PointwiseLaunch& l) {
  static constexpr auto kernels = loop_kernels<F, formulas>(std::make_index_sequence<size_t(F::inputs)>{});
  run_kernels(l, kernels);
}

/// Registers the kernels of struct D for the dtypes of `part`.
template <DTypeSet part, Formulas formulas, class D, int inputs, class P>
void enter(PointwiseKernels& k) {
  auto one = [&]<DType d>() {
    if constexpr (D::accepts.has(d) && part.has(d)) {
      using T = device_t<d>;
      k.at[0][int(d)] = &run_loop<Forward<D, T, inputs, P>, formulas>;
      constexpr bool floating = (kFloats | kComplexes).has(d);
      if constexpr (floating && traits::is_differentiable_op<D>() && !traits::mask_first<D>()) {
        auto gradient = [&]<int i>() {
          using G = traits::Gradient<D, inputs, P, i>;
          if constexpr (kFloats.has(d) && G::is_formula) {
            k.at[1 + i][int(d)] = &run_loop<Backward<D, T, inputs, P, i>, formulas>;
          }
        };
        gradient.template operator()<0>();
        if constexpr (inputs > 1) gradient.template operator()<1>();
        if constexpr (inputs > 2) gradient.template operator()<2>();
      }
    }
  };
#define VESTA_X(name, type, text) one.template operator()<DType::name>();
  VESTA_DTYPES(VESTA_X)
#undef VESTA_X
}

}  // namespace vesta::cuda

/// Reads the parameters of a line of the op list, written as a lambda's parameter list (nvcc takes its defaults
/// there).
template <class L, class R, class... A>
struct vesta::traits::Arity<R (L::*)(A...) const> : vesta::traits::Arity<R(A...)> {};

namespace vesta::cuda {

#define VESTA_ENTER(kind, ...) VESTA_LINE_##kind(VESTA_ENTER, __VA_ARGS__)
#define VESTA_ENTER_POINTWISE(name, Struct, parameters, ...)         \
  {                                                             \
    [[maybe_unused]] auto signature = [] parameters {};         \
    using Counts = traits::Arity<decltype(&decltype(signature)::operator())>; \
    enter<part, formulas, def::Struct, Counts::inputs, typename Counts::Params>(to[at++]); \
  }
#define VESTA_ENTER_POINTWISE_PAIR(...) VESTA_ENTER_POINTWISE(__VA_ARGS__)
#define VESTA_ENTER_OP(...)
#define VESTA_ENTER_OUT(...)
#define VESTA_ENTER_TWIN(...)
#define VESTA_ENTER_COPIED(...)
#define VESTA_ENTER_IN(...)
#define VESTA_ENTER_FORM(...)
#define VESTA_ENTER_PYTHON_FORM(...)
#define VESTA_ENTER_ALIAS(...)
/// The 16-bit floats, and all other types: the two files of a topic that one file would take too long for.
inline constexpr DTypeSet kHalves = set_of(DType::float16) | set_of(DType::bfloat16);
inline constexpr DTypeSet kAllButHalves =
    kBool | kIntegers | set_of(DType::float32) | set_of(DType::float64) | kComplexes;
/// Defines kernels_of_NAME(to), which fills `to` in the order of the topic's pointwise lines, for the dtypes of SET: a
/// large topic is compiled in several files (no file may take nvcc over 30 s). LENGTH is one of Formulas.
#define VESTA_CUDA_TOPIC_PART(name, LIST, SET, LENGTH)   \
  void kernels_of_##name(PointwiseKernels* to) {         \
    constexpr DTypeSet part = SET;                       \
    constexpr Formulas formulas = Formulas::LENGTH;      \
    int at = 0;                                          \
    LIST(VESTA_ENTER)                                    \
  }
#define VESTA_CUDA_TOPIC(topic, LIST) VESTA_CUDA_TOPIC_PART(topic, LIST, kAllTypes, short_ones)

}  // namespace vesta::cuda
