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
  using Value = std::conditional_t<is_half_type<To>, float, To>;
  static constexpr size_t kWide = sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To), kNarrow = sizeof(From) +
                                                                                                   sizeof(To) - kWide;
  // 16 bytes of the smaller type, and at most 64 of the larger: several loads are in flight before the first store
  static constexpr int pack = int(kWidestAccess / kNarrow < 64 / kWide ? kWidestAccess / kNarrow : 64 / kWide);
  VESTA_HD VESTA_INLINE static Value call(const From* v, bool, const double*) { return convert<Value>(v[0]); }
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

// ---- copies between two orders of the dimensions, such as images and pixels ----

/// The side of a square tile that a block copies: 64 elements of up to 4 bytes, 16 KiB.
template <class T>
constexpr unsigned kTile = sizeof(T) <= 4 ? 64 : 32;
constexpr int64_t kLeastSide = 16;  // of a matrix that is copied by tiles

/// Matrices that are copied by tiles: the result is contiguous along `across`, the operand along `down`.
struct TransposeArgs {
  const char* in;
  char* out;
  uint32_t across, down;
  FastDivisor tiles_across, tiles_down;
  int64_t in_across, out_down;  // strides in bytes, of the dimension in which the other side is contiguous
  int ndim;                     // of the matrices' numbers
  FastDivisor sizes[kLaunchDims];
  int64_t in_strides[kLaunchDims], out_strides[kLaunchDims];
};

/// Copies a tile by way of shared memory: both sides are accessed along their contiguous dimension. All elements of a
/// thread are loaded before one is stored.
template <class T>
VESTA_KERNEL void transpose_kernel(TransposeArgs a) {
  constexpr unsigned kSide = kTile<T>, kStep = kThreads / kSide, kEach = kSide / kStep;
  constexpr unsigned kPitch = kSide + (sizeof(T) < 4 ? 4 / sizeof(T) : 1);  // a column falls into different banks
  VESTA_SHARED(T, tile, kSide * kPitch);
  const uint32_t row = a.tiles_across.divide(blockIdx.x), batch = a.tiles_down.divide(row);
  const uint32_t across = (blockIdx.x - row * a.tiles_across.divisor) * kSide;
  const uint32_t down = (row - batch * a.tiles_down.divisor) * kSide;
  int64_t from = 0, to = 0;
  uint32_t rest = batch;
  VESTA_ROLLED
  for (int d = 0; d < a.ndim; ++d) {
    const uint32_t next = a.sizes[d].divide(rest), at = rest - next * a.sizes[d].divisor;
    from += at * a.in_strides[d], to += at * a.out_strides[d], rest = next;
  }
  const unsigned x = threadIdx.x % kSide, y = threadIdx.x / kSide;
  T v[kEach];
  VESTA_UNROLL
  for (unsigned k = 0; k < kEach; ++k) {
    const uint32_t c = across + y + k * kStep, d = down + x;
    if (c < a.across && d < a.down) {
      v[k] = *reinterpret_cast<const T*>(a.in + from + c * a.in_across + int64_t(d) * int64_t(sizeof(T)));
    }
  }
  VESTA_UNROLL
  for (unsigned k = 0; k < kEach; ++k) tile[(y + k * kStep) * kPitch + x] = v[k];
  block_barrier();
  VESTA_UNROLL
  for (unsigned k = 0; k < kEach; ++k) {
    const uint32_t c = across + x, d = down + y + k * kStep;
    if (c < a.across && d < a.down) {
      *reinterpret_cast<T*>(a.out + to + d * a.out_down + int64_t(c) * int64_t(sizeof(T))) =
          tile[x * kPitch + y + k * kStep];
    }
  }
}

/// Queues a copy by tiles if operand and result are contiguous along different dimensions; returns whether they are.
template <class T>
bool transposes(const PointwiseLaunch& l) {
  constexpr int64_t kItem = sizeof(T);
  int across = -1, down = -1;
  for (int d = 0; d < l.ndim && l.in[0].data; ++d) {
    if (l.sizes[d] == 1) continue;
    const bool out = l.out_strides[d] == kItem, in = l.in[0].strides[d] == kItem;
    if (out && in) return false;
    if (out) across = d;
    if (in) down = d;
  }
  if (across < 0 || down < 0 || l.sizes[across] < kLeastSide || l.sizes[down] < kLeastSide) return false;
  TransposeArgs a;
  a.in = l.in[0].data, a.out = l.out;
  a.across = uint32_t(l.sizes[across]), a.down = uint32_t(l.sizes[down]);
  const uint32_t tiles_across = (a.across + kTile<T> - 1) / kTile<T>, tiles_down = (a.down + kTile<T> - 1) / kTile<T>;
  a.tiles_across = FastDivisor(tiles_across), a.tiles_down = FastDivisor(tiles_down);
  a.in_across = l.in[0].strides[across], a.out_down = l.out_strides[down];
  a.ndim = 0;
  for (int d = 0; d < l.ndim; ++d) {
    if (d == across || d == down) continue;
    a.sizes[a.ndim] = FastDivisor(uint32_t(l.sizes[d]));
    a.in_strides[a.ndim] = l.in[0].strides[d], a.out_strides[a.ndim] = l.out_strides[d];
    ++a.ndim;
  }
  const uint64_t matrices = uint64_t(l.numel / (l.sizes[across] * l.sizes[down]));
  const uint64_t tiles = matrices * tiles_across * tiles_down;
  launch_block(l.name, transpose_kernel<T>, linear_shape(tiles * kThreads, kThreads, l.stream), a);
  return true;
}

template <class T>
void run_bytes(const PointwiseLaunch& l) {
  if (!transposes<T>(l)) run_loop<Convert<T, T>>(l);
}

template <DType from, DType to>
void enter_pair() {
  using From = device_t<from>;
  if constexpr (from == to) {
    using B = typename Bytes<sizeof(From)>::type;
    conversion_kernels[int(from)][int(to)] = &run_bytes<B>;
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
