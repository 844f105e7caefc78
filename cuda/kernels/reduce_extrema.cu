// Extrema, any and all.
#include <vesta/cuda/kernels/reduce.cuh>

namespace vesta::cuda {
namespace {

/// The largest (or smallest) value of floats; NaN wins.
template <class T, bool smallest>
struct Extremum {
  using In = T;
  using Acc = compute_of<T>;
  static constexpr bool converts = true;
  char* out;

  VESTA_DEVICE Acc identity() const { return extreme_value<Acc>(smallest); }
  VESTA_DEVICE Acc combine(Acc a, Acc b) const { return extremum<smallest>(a, b); }
  VESTA_DEVICE Acc load(T v, int64_t, int64_t) const { return convert<Acc>(v); }
  VESTA_DEVICE void store(int64_t k, Acc a) const { reinterpret_cast<T*>(out)[k] = convert<T>(a); }
};

/// The same of integers.
template <class T>
struct IntegerExtremum {
  using In = T;
  using Acc = std::conditional_t<sizeof(T) < 4, int, T>;
  static constexpr bool converts = false;
  T* out;
  TurnedIntegers<T> turn;

  VESTA_DEVICE Acc identity() const { return extreme_value<Acc>(false); }
  VESTA_DEVICE Acc combine(Acc a, Acc b) const { return a > b ? a : b; }
  VESTA_DEVICE Acc load(T v, int64_t, int64_t) const { return turn(v); }
  VESTA_DEVICE void store(int64_t k, Acc a) const { out[k] = turn(T(a)); }
};

/// The bits of an element. It is true if any bit is set under a mask that leaves out signs of zero.
struct alignas(16) Bits16 {
  uint64_t low, high;
};

/// Whether any element is true, or with `flip` whether none is false.
template <class T>
struct Logical {
  using In = T;
  using Acc = unsigned;
  static constexpr bool converts = false;
  bool* out;
  uint64_t mask;
  bool flip;

  VESTA_DEVICE Acc identity() const { return 0; }
  VESTA_DEVICE Acc combine(Acc a, Acc b) const { return a | b; }
  VESTA_DEVICE Acc load(T v, int64_t, int64_t) const {
    if constexpr (std::is_same_v<T, Bits16>) return (((v.low | v.high) & mask) != 0) != flip;
    else return ((uint64_t(v) & mask) != 0) != flip;
  }
  VESTA_DEVICE void store(int64_t k, Acc a) const { out[k] = (a != 0) != flip; }
};

/// Returns the mask of the bits that make an element true.
uint64_t truth_mask(DType d) {
  switch (d) {
    case DType::float16:
    case DType::bfloat16: return 0x7fff;
    case DType::float32: return 0x7fffffff;
    case DType::complex64: return 0x7fffffff7fffffff;
    case DType::float64:
    case DType::complex128: return 0x7fffffffffffffff;
    default: return ~uint64_t(0);
  }
}

template <class T>
void run_logical(const ReduceStage& s) {
  run_stage(Logical<T>{reinterpret_cast<bool*>(s.out), truth_mask(s.dtype), s.op == Reduction::all}, s);
}

}  // namespace

void reduce_extremum(const ReduceStage& s) {
  const bool smallest = s.op == Reduction::minimum;
  visit_by_order(s.dtype, [&]<class T>(DType d) {
    if constexpr (std::is_integral_v<T>) {
      run_stage(IntegerExtremum<T>{reinterpret_cast<T*>(s.out), TurnedIntegers<T>::of(d, smallest)}, s);
    } else if (smallest) {
      run_stage(Extremum<T, true>{s.out}, s);
    } else {
      run_stage(Extremum<T, false>{s.out}, s);
    }
  });
}

void reduce_logical(const ReduceStage& s) {
  switch (itemsize(s.dtype)) {
    case 1: return run_logical<uint8_t>(s);
    case 2: return run_logical<uint16_t>(s);
    case 4: return run_logical<uint32_t>(s);
    case 8: return run_logical<uint64_t>(s);
    default: return run_logical<Bits16>(s);
  }
}

}  // namespace vesta::cuda
