// The kernels made from a pointwise struct: per dtype one over contiguous operands (16-byte loads) and one over any
// strides. The CPU's loops are made from the same struct (core/cpu/loops.h).
#pragma once
#include <cstring>

#include <vesta/core/ops/lines.h>
#include <vesta/core/ops/pointwise_traits.h>
#include <vesta/cuda/kernels/pointwise.h>
#include <vesta/cuda/kernels/types.cuh>

namespace vesta::cuda {

constexpr unsigned kThreads = 256;

/// N elements that are loaded and stored at once.
template <class T, int N>
struct alignas(N * sizeof(T)) Pack {
  T v[N];
};
/// The number of elements per thread of the contiguous kernel: 16 bytes of the widest type that is loaded or stored.
template <class... T>
constexpr int pack_size() {
  size_t widest = 1;
  ((widest = sizeof(T) > widest ? sizeof(T) : widest), ...);
  return widest >= 16 ? 1 : int(16 / widest);
}

/// The kernel's form of a launch: 32-bit sizes, prepared divisors.
template <int inputs>
struct LinearArgs {
  char* out;
  const char* in[inputs];      // null: value
  alignas(16) char value[inputs][16];
  double params[kMaxParams];
  uint32_t n;
  char* second;  // of two results, the second: its elements lie as those of `out`
};
template <int inputs>
struct StridedArgs {
  LinearArgs<inputs> base;
  int ndim;
  FastDivisor sizes[kLaunchDims];
  int64_t out_strides[kLaunchDims];
  int64_t strides[inputs][kLaunchDims];
};

/// How an op reads and computes: forward of struct D. It gives the result of one element from the loaded ones.
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
  VESTA_HD VESTA_INLINE static C call(const C* v, bool, const double* p) { return G::template call<C>(v[0], v + 1, p); }
};

template <class F, int k>
using operand_t = std::conditional_t<F::mask && k == 0, bool, typename F::In>;

/// Loads operand k of the element at `p`, converted to the type of the computation.
template <class F, int k>
VESTA_HD VESTA_INLINE void load_one(const char* p, typename F::C* v, bool& m) {
  if constexpr (F::mask && k == 0) m = *reinterpret_cast<const bool*>(p);
  else v[k] = convert<typename F::C>(*reinterpret_cast<const typename F::In*>(p));
}

/// Loads operand k that is one value everywhere: it is of the type of the computation, unless the op has a mask.
template <class F, int k>
VESTA_HD VESTA_INLINE void load_value(const char* p, typename F::C* v, bool& m) {
  if constexpr (F::mask) load_one<F, k>(p, v, m);
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

template <class F, int N, size_t... K>
VESTA_DEVICE void linear_pack(std::index_sequence<K...>, const LinearArgs<F::inputs>& a, uint32_t first) {
  typename F::C v[N][F::inputs];
  bool m[N] = {};
  auto fetch = [&]<int k>() {
    using T = operand_t<F, k>;
    if (a.in[k]) {
      const auto pack = *reinterpret_cast<const Pack<T, N>*>(a.in[k] + size_t(first) * sizeof(T));
      for (int j = 0; j < N; ++j) load_one<F, k>(reinterpret_cast<const char*>(&pack.v[j]), v[j], m[j]);
    } else {
      for (int j = 0; j < N; ++j) load_value<F, k>(a.value[k], v[j], m[j]);
    }
  };
  (fetch.template operator()<int(K)>(), ...);
  Pack<typename F::Result_, N> r;
  if constexpr (F::pair) {
    using S = typename F::Second;
    Pack<S, N> second;
    for (int j = 0; j < N; ++j) {
      const auto value = F::call(v[j], m[j], a.params);
      r.v[j] = result_from<F>(value), second.v[j] = convert<S>(value.second);
    }
    *reinterpret_cast<Pack<S, N>*>(a.second + size_t(first) * sizeof(S)) = second;
  } else {
    for (int j = 0; j < N; ++j) r.v[j] = result_from<F>(F::call(v[j], m[j], a.params));
  }
  *reinterpret_cast<Pack<typename F::Result_, N>*>(a.out + size_t(first) * sizeof(typename F::Result_)) = r;
}

template <class F, size_t... K>
VESTA_DEVICE void linear_one(std::index_sequence<K...> all, const LinearArgs<F::inputs>& a, uint32_t i) {
  linear_pack<F, 1>(all, a, i);
}

/// Runs over contiguous operands, aligned to 16 bytes: a thread takes one pack, the last thread the rest.
template <class F, int N>
VESTA_KERNEL void linear_kernel(LinearArgs<F::inputs> a) {
  const uint32_t first = global_index() * N;
  constexpr auto all = std::make_index_sequence<size_t(F::inputs)>{};
  if (first + N <= a.n) {
    linear_pack<F, N>(all, a, first);
  } else {
    for (uint32_t i = first; i < a.n; ++i) linear_one<F>(all, a, i);
  }
}

template <class F, size_t... K>
VESTA_DEVICE void strided_one(std::index_sequence<K...>, const StridedArgs<F::inputs>& a, uint32_t i) {
  int64_t out = 0, in[F::inputs] = {};
  uint32_t rest = i;
  for (int d = 0; d < a.ndim; ++d) {
    const uint32_t next = a.sizes[d].divide(rest), at = rest - next * a.sizes[d].divisor;
    out += at * a.out_strides[d];
    ((in[K] += at * a.strides[K][d]), ...);
    rest = next;
  }
  typename F::C v[F::inputs];
  bool m = false;
  auto load = [&]<int k>() {
    if (a.base.in[k]) load_one<F, k>(a.base.in[k] + in[k], v, m);
    else load_value<F, k>(a.base.value[k], v, m);
  };
  (load.template operator()<int(K)>(), ...);
  const auto value = F::call(v, m, a.base.params);
  *reinterpret_cast<typename F::Result_*>(a.base.out + out) = result_from<F>(value);
  if constexpr (F::pair) {
    using S = typename F::Second;
    reinterpret_cast<S*>(a.base.second)[out / int64_t(sizeof(typename F::Result_))] = convert<S>(value.second);
  }
}

/// Runs over any strides: a thread takes four elements, a block apart.
template <class F>
VESTA_KERNEL void strided_kernel(StridedArgs<F::inputs> a) {
  const uint32_t first = blockIdx.x * blockDim.x * 4 + threadIdx.x;
  constexpr auto all = std::make_index_sequence<size_t(F::inputs)>{};
  for (int k = 0; k < 4; ++k) {
    const uint32_t i = first + uint32_t(k) * blockDim.x;
    if (i < a.base.n) strided_one<F>(all, a, i);
  }
}

template <int inputs>
LinearArgs<inputs> linear_args(const PointwiseLaunch& l) {
  LinearArgs<inputs> a;
  a.out = l.out, a.n = uint32_t(l.numel), a.second = l.second;
  for (int k = 0; k < inputs; ++k) {
    a.in[k] = l.in[k].data;
    std::memcpy(a.value[k], l.in[k].value, 16);
  }
  std::memcpy(a.params, l.params, sizeof a.params);
  return a;
}

/// Returns whether every operand is one run of elements of its type, aligned for packs.
template <class F>
bool is_linear(const PointwiseLaunch& l) {
  auto dense = [&](const char* p, const int64_t* strides, int64_t item) {
    if (l.ndim > 1 || (l.ndim == 1 && strides[0] != item)) return false;
    return reinterpret_cast<uintptr_t>(p) % 16 == 0;
  };
  if (!dense(l.out, l.out_strides, sizeof(typename F::Result_))) return false;
  if (F::pair && reinterpret_cast<uintptr_t>(l.second) % 16 != 0) return false;
  for (int k = 0; k < F::inputs; ++k) {
    const int64_t item = F::mask && k == 0 ? 1 : int64_t(sizeof(typename F::In));
    if (l.in[k].data && !dense(l.in[k].data, l.in[k].strides, item)) return false;
  }
  return true;
}

/// Queues functor F over a launch.
template <class F>
void run_loop(const PointwiseLaunch& l) {
  if (is_linear<F>(l)) {
    constexpr int N = pack_size<typename F::In, typename F::Widest>();
    launch_independent(l.name, linear_kernel<F, N>, linear_shape(uint64_t((l.numel + N - 1) / N), kThreads, l.stream),
                       linear_args<F::inputs>(l));
    return;
  }
  StridedArgs<F::inputs> a;
  a.base = linear_args<F::inputs>(l);
  a.ndim = l.ndim;
  for (int d = 0; d < l.ndim; ++d) {
    a.sizes[d] = FastDivisor(uint32_t(l.sizes[d]));
    a.out_strides[d] = l.out_strides[d];
    for (int k = 0; k < F::inputs; ++k) a.strides[k][d] = l.in[k].strides[d];
  }
  launch_independent(l.name, strided_kernel<F>, linear_shape(uint64_t(l.numel + 3) / 4, kThreads, l.stream), a);
}

/// Registers the kernels of struct D for the dtypes of `part`.
template <DTypeSet part, class D, int inputs, class P>
void enter(PointwiseKernels& k) {
  auto one = [&]<DType d>() {
    if constexpr (D::accepts.has(d) && part.has(d)) {
      using T = device_t<d>;
      k.at[0][int(d)] = &run_loop<Forward<D, T, inputs, P>>;
      constexpr bool floating = (kFloats | kComplexes).has(d);
      if constexpr (floating && traits::is_differentiable_op<D>() && !traits::mask_first<D>()) {
        auto gradient = [&]<int i>() {
          using G = traits::Gradient<D, inputs, P, i>;
          if constexpr (kFloats.has(d) && G::exists && !G::is_pass) {
            k.at[1 + i][int(d)] = &run_loop<Backward<D, T, inputs, P, i>>;
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
    enter<part, def::Struct, Counts::inputs, typename Counts::Params>(to[at++]); \
  }
#define VESTA_ENTER_POINTWISE_PAIR(...) VESTA_ENTER_POINTWISE(__VA_ARGS__)
#define VESTA_ENTER_OP(...)
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
/// large topic is compiled in several files (no file may take nvcc over 30 s).
#define VESTA_CUDA_TOPIC_PART(name, LIST, SET)   \
  void kernels_of_##name(PointwiseKernels* to) { \
    constexpr DTypeSet part = SET;               \
    int at = 0;                                  \
    LIST(VESTA_ENTER)                            \
  }
#define VESTA_CUDA_TOPIC(topic, LIST) VESTA_CUDA_TOPIC_PART(topic, LIST, kAllTypes)

}  // namespace vesta::cuda
