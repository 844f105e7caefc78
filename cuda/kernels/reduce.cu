// Sums and products.
#include <vesta/cuda/kernels/reduce.cuh>

namespace vesta::cuda {
namespace {

/// A sum: integers in int64, 16-bit floats in float. The result may be divided, for a mean.
template <class T>
struct Sum {
  using In = T;
  using Acc = std::conditional_t<std::is_integral_v<T>, int64_t, compute_of<T>>;
  static constexpr bool converts = true;
  char* out;
  DType out_dtype;
  double divisor;

  VESTA_DEVICE Acc identity() const { return Acc(0); }
  VESTA_DEVICE Acc combine(Acc a, Acc b) const { return a + b; }
  VESTA_DEVICE Acc load(T v, int64_t, int64_t) const { return convert<Acc>(v); }
  VESTA_DEVICE void store(int64_t k, Acc a) const {
    if (divisor >= 0) a = divide(a);
    if constexpr (std::is_same_v<Acc, float>) {
      if (out_dtype == DType::float16) {
        reinterpret_cast<Half*>(out)[k] = convert<Half>(a);
        return;
      }
      if (out_dtype == DType::bfloat16) {
        reinterpret_cast<BFloat16*>(out)[k] = convert<BFloat16>(a);
        return;
      }
    }
    reinterpret_cast<Acc*>(out)[k] = a;
  }
  VESTA_DEVICE Acc divide(Acc a) const {
    if constexpr (is_complex_type<Acc>) {
      using R = typename Acc::value_type;
      return {a.re / R(divisor), a.im / R(divisor)};
    } else {
      return Acc(double(a) / divisor);  // in double: a float cannot hold a count above 2^24
    }
  }
};

/// A product, in the accumulator of a sum; integers wrap.
template <class T>
struct Product : Sum<T> {
  using Acc = typename Sum<T>::Acc;

  VESTA_DEVICE Acc identity() const { return Acc(1); }
  VESTA_DEVICE Acc combine(Acc a, Acc b) const {
    if constexpr (std::is_same_v<Acc, int64_t>) return int64_t(uint64_t(a) * uint64_t(b));
    else return a * b;
  }
};

}  // namespace

void reduce_sum(const ReduceStage& s) {
  const DType d = s.dtype == DType::bool_ ? DType::uint8 : s.dtype;
  visit_device<kNumbers>(d, [&]<class T>() { run_stage(Sum<T>{s.out, s.out_dtype, s.divisor}, s); });
}

void reduce_product(const ReduceStage& s) {
  const DType d = s.dtype == DType::bool_ ? DType::uint8 : s.dtype;
  visit_device<kNumbers>(d, [&]<class T>() { run_stage(Product<T>{{s.out, s.out_dtype, -1}}, s); });
}

}  // namespace vesta::cuda
