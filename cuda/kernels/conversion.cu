// Copies with conversion between any two element types: 144 pairs, of which pairs of equal size without conversion
// share one.
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {

PointwiseKernel conversion_kernels[12][12];

namespace {

/// The conversion of From to To, as a functor of loops.cuh.
template <class From, class To>
struct Convert {
  static constexpr int inputs = 1;
  static constexpr bool mask = false;
  using In = From;
  using C = From;
  using Result_ = To;
  static constexpr bool pair = false;
  using Widest = From;
  VESTA_HD VESTA_INLINE static To call(const From* v, bool, const double*) { return convert<To>(v[0]); }
};

/// Any element of this size: a copy without conversion moves bytes.
template <int bytes>
struct Bytes;
template <>
struct Bytes<1> {
  using type = uint8_t;
};
template <>
struct Bytes<2> {
  using type = uint16_t;
};
template <>
struct Bytes<4> {
  using type = uint32_t;
};
template <>
struct Bytes<8> {
  using type = uint64_t;
};
struct alignas(16) Sixteen {
  uint64_t words[2];
};
template <>
struct Bytes<16> {
  using type = Sixteen;
};

template <DType from, DType to>
void enter_pair() {
  using From = device_t<from>;
  if constexpr (from == to) {
    using B = typename Bytes<sizeof(From)>::type;
    conversion_kernels[int(from)][int(to)] = &run_loop<Convert<B, B>>;
  } else {
    conversion_kernels[int(from)][int(to)] = &run_loop<Convert<From, device_t<to>>>;
  }
}

}  // namespace

void register_conversions() {
#define VESTA_X_TO(from)                                                                                     \
  enter_pair<DType::from, DType::bool_>(), enter_pair<DType::from, DType::uint8>(),                          \
      enter_pair<DType::from, DType::int8>(), enter_pair<DType::from, DType::int16>(),                       \
      enter_pair<DType::from, DType::int32>(), enter_pair<DType::from, DType::int64>(),                      \
      enter_pair<DType::from, DType::float16>(), enter_pair<DType::from, DType::bfloat16>(),                 \
      enter_pair<DType::from, DType::float32>(), enter_pair<DType::from, DType::float64>(),                  \
      enter_pair<DType::from, DType::complex64>(), enter_pair<DType::from, DType::complex128>();
#define VESTA_X(name, type, text) VESTA_X_TO(name)
  VESTA_DTYPES(VESTA_X)
#undef VESTA_X
#undef VESTA_X_TO
}

}  // namespace vesta::cuda
