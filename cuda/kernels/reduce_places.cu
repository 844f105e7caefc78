// The places of extrema: the accumulator holds the value and its number.
#include <vesta/cuda/kernels/reduce.cuh>

namespace vesta::cuda {
namespace {

template <class C>
struct Found {
  C value;
  int64_t place;
};

/// The largest (or smallest) value and the first place where it is; NaN wins, the first NaN among several.
template <class T>
struct Place {
  using In = T;
  using C = std::conditional_t<std::is_integral_v<T> && sizeof(T) < 4, int, compute_of<T>>;
  using Acc = Found<C>;
  T* out;  // null: the value is not needed
  int64_t* out_places;
  const int64_t* places;
  bool smallest;

  VESTA_DEVICE Acc identity() const { return {extreme_value<C>(smallest), INT64_MAX}; }
  VESTA_DEVICE Acc combine(Acc a, Acc b) const {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    const bool equal = a.value == b.value || (a_nan && b_nan);
    const bool before = smallest ? a.value < b.value : a.value > b.value;
    return equal ? (a.place < b.place ? a : b) : (a_nan || (before && !b_nan) ? a : b);
  }
  VESTA_DEVICE Acc load(T v, int64_t i, int64_t at) const { return {convert<C>(v), places ? places[at] : i}; }
  VESTA_DEVICE void store(int64_t k, Acc a) const {
    if (out) out[k] = convert<T>(a.value);
    out_places[k] = a.place;
  }
};

}  // namespace

void reduce_places(const ReduceStage& s) {
  const DType d = s.dtype == DType::bool_ ? DType::uint8 : s.dtype;
  visit_device<kReals>(d, [&]<class T>() {
    run_stage(Place<T>{reinterpret_cast<T*>(s.out), s.out_places, s.places, s.op == Reduction::argmin}, s);
  });
}

}  // namespace vesta::cuda
