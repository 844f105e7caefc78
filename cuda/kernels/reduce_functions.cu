// Sums of functions of the elements, which are not written to memory: squares, and exponentials for logsumexp.
#include <vesta/cuda/kernels/reduce.cuh>
#include <vesta/cuda/kernels/rows.cuh>

namespace vesta::cuda {
namespace {

/// A sum of squares, of 16-bit floats in float.
template <class T>
struct Squares {
  using In = T;
  using Acc = compute_of<T>;
  static constexpr bool converts = false;
  Acc* out;

  VESTA_DEVICE Acc identity() const { return Acc(0); }
  VESTA_DEVICE Acc combine(Acc a, Acc b) const { return a + b; }
  VESTA_DEVICE Acc load(T v, int64_t, int64_t) const {
    const Acc x = convert<Acc>(v);
    return x * x;
  }
  VESTA_DEVICE void store(int64_t k, Acc a) const { out[k] = a; }
};

/// Returns what to subtract before exp: the maximum, but 0 if it is infinite or NaN, so that +inf gives +inf.
template <class C>
VESTA_DEVICE C shift_of(C top) {
  return top - top == C(0) ? top : C(0);
}

/// The sum of exponentials, relative to the largest (Milakov and Gimelshein, "Online normalizer calculation for
/// softmax", 2018). A result is its logarithm, a piece of one the two numbers.
template <class C>
struct Exponentials {
  using Acc = ExpSum<C>;
  static constexpr bool converts = false;
  char* out;
  DType out_dtype;  // complex for a piece

  VESTA_DEVICE Acc identity() const { return {C(-INFINITY), C(0)}; }
  VESTA_DEVICE Acc combine(const Acc& a, const Acc& b) const {
    const C top = extremum(a.top, b.top), shift = shift_of(top);
    return {top, a.sum * math::exp(a.top - shift) + b.sum * math::exp(b.top - shift)};
  }
  VESTA_DEVICE void store(int64_t k, const Acc& a) const {
    const C r = math::log(a.sum) + shift_of(a.top);
    switch (out_dtype) {
      case DType::float16: reinterpret_cast<Half*>(out)[k] = convert<Half>(r); return;
      case DType::bfloat16: reinterpret_cast<BFloat16*>(out)[k] = convert<BFloat16>(r); return;
      case DType::complex64:
      case DType::complex128: reinterpret_cast<Acc*>(out)[k] = a; return;
      default: reinterpret_cast<C*>(out)[k] = r;
    }
  }
};

/// logsumexp of elements T. A pack takes one exponential for each of its elements and one for the sum before it.
template <class T>
struct LogSumExp : Exponentials<compute_of<T>> {
  using In = T;
  using C = compute_of<T>;
  using Acc = ExpSum<C>;

  VESTA_DEVICE Acc load(T v, int64_t, int64_t) const { return {convert<C>(v), C(1)}; }
  VESTA_DEVICE static T missing() { return convert<T>(C(-INFINITY)); }
  template <int N>
  VESTA_DEVICE Acc fold(const Acc& a, const Elements<T, N>& pack, int64_t) const {
    C v[N];
    widen(pack, v);
    const C top = extremum(a.top, pack_extremum<N>(v)), shift = shift_of(top);
    C e[N];
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) e[j] = math::exp(v[j] - shift);
    return {top, (a.top == top ? a.sum : a.sum * math::exp(a.top - shift)) + pack_sum<N>(e)};
  }
};

/// logsumexp of pieces.
template <class C>
struct LogSumExpOfPieces : Exponentials<C> {
  using In = ExpSum<C>;

  VESTA_DEVICE In load(const In& v, int64_t, int64_t) const { return v; }
};

}  // namespace

void reduce_squares(const ReduceStage& s) {
  visit_device<kFloats>(s.dtype, [&]<class T>() { run_stage(Squares<T>{reinterpret_cast<compute_of<T>*>(s.out)}, s); });
}

void reduce_logsumexp(const ReduceStage& s) {
  if (s.dtype == DType::complex64) return run_stage(LogSumExpOfPieces<float>{{s.out, s.out_dtype}}, s);
  if (s.dtype == DType::complex128) return run_stage(LogSumExpOfPieces<double>{{s.out, s.out_dtype}}, s);
  visit_device<kFloats>(s.dtype, [&]<class T>() { run_stage(LogSumExp<T>{{s.out, s.out_dtype}}, s); });
}

}  // namespace vesta::cuda
