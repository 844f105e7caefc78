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

/// The bits of the number of elements of a tile that a block copies: 16 KiB of 4 bytes, of sides that are powers of
/// two.
template <class T>
constexpr int kTileBits = sizeof(T) <= 4 ? 12 : 10;
constexpr int kLeastBits = 4;  // of a side
/// The elements that a thread has of a tile of any sides.
template <class T>
constexpr uint32_t kTaken = sizeof(T) <= 8 ? 8 : 4;
constexpr int64_t kLeastMatrix = 512;  // elements

/// Matrices that are copied by tiles: the result is contiguous along `across`, the operand along `down`.
struct TransposeArgs {
  const char* in;
  char* out;
  uint32_t across, down;
  FastDivisor tiles_across, tiles_down;
  FastDivisor side_across, side_down;
  int bits_across = 0, bits_down = 0;  // of sides that are powers of two
  int64_t in_across, out_down;  // strides in bytes, of the dimension in which the other side is contiguous
  int ndim;                     // of the matrices' numbers
  FastDivisor sizes[kLaunchDims];
  int64_t in_strides[kLaunchDims], out_strides[kLaunchDims];

  /// Cuts matrices into tiles; returns how many there are.
  uint64_t cut(uint32_t tile_across, uint32_t tile_down, uint64_t matrices) {
    side_across = FastDivisor(tile_across), side_down = FastDivisor(tile_down);
    tiles_across = FastDivisor((across + tile_across - 1) / tile_across);
    tiles_down = FastDivisor((down + tile_down - 1) / tile_down);
    return matrices * tiles_across.divisor * tiles_down.divisor;
  }
};

/// The block's tile: where it begins in its matrix, and the matrix.
struct TransposeTile {
  uint32_t across, down;
  const char* in;
  char* out;
  VESTA_DEVICE TransposeTile(const TransposeArgs& a, uint32_t side_across, uint32_t side_down) {
    const uint32_t row = a.tiles_across.divide(blockIdx.x), batch = a.tiles_down.divide(row);
    across = (blockIdx.x - row * a.tiles_across.divisor) * side_across;
    down = (row - batch * a.tiles_down.divisor) * side_down;
    int64_t from = 0, to = 0;
    uint32_t rest = batch;
    VESTA_ROLLED
    for (int d = 0; d < a.ndim; ++d) {
      const uint32_t next = a.sizes[d].divide(rest), at = rest - next * a.sizes[d].divisor;
      from += at * a.in_strides[d], to += at * a.out_strides[d], rest = next;
    }
    in = a.in + from, out = a.out + to;
  }
};

/// Copies a tile by way of shared memory: both sides are accessed along their contiguous dimension. All elements of a
/// thread are loaded before one is stored.
template <class T>
VESTA_KERNEL void VESTA_BOUNDS(kThreads, 6) transpose_kernel(TransposeArgs a) {
  constexpr int kArea = 1 << kTileBits<T>, kEach = kArea / int(kThreads);
  constexpr int kPad = sizeof(T) < 4 ? int(4 / sizeof(T)) : 1;  // a column falls into different banks
  VESTA_SHARED(T, tile, kArea + kPad * (kArea >> kLeastBits));
  const int wide = 1 << a.bits_down, high = 1 << a.bits_across, pitch = wide + kPad;
  const TransposeTile t(a, uint32_t(high), uint32_t(wide));
  const int across = int(a.across - t.across), down = int(a.down - t.down);  // to the end of the matrix
  const int x = int(threadIdx.x) & (wide - 1), y = int(threadIdx.x) >> a.bits_down;
  const int step = int(kThreads) >> a.bits_down;
  const char* in = t.in + (t.across + y) * a.in_across + int64_t(t.down + x) * int64_t(sizeof(T));
  T v[kEach];
  const int rows = x < down ? across - y : 0;
  VESTA_UNROLL
  for (int k = 0; k < kEach; ++k, in += step * a.in_across) {
    if (k * step < rows) v[k] = *reinterpret_cast<const T*>(in);
  }
  VESTA_UNROLL
  for (int k = 0; k < kEach; ++k) tile[(y + k * step) * pitch + x] = v[k];
  block_barrier();
  const int column = int(threadIdx.x) & (high - 1), line = int(threadIdx.x) >> a.bits_across;
  const int lines = int(kThreads) >> a.bits_across, columns = column < across ? down - line : 0;
  char* out = t.out + (t.down + line) * a.out_down + int64_t(t.across + column) * int64_t(sizeof(T));
  VESTA_UNROLL
  for (int k = 0; k < kEach; ++k, out += lines * a.out_down) {
    if (k * lines < columns) *reinterpret_cast<T*>(out) = tile[column * pitch + line + k * lines];
  }
}

// Blocks of words that a multiprocessor shall hold: 8, where it has 2048 threads; consumer GPUs have 1536.
#if defined(__CUDA_ARCH__) && \
    (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
constexpr int kWordBlocks = 6;
#else
constexpr int kWordBlocks = 8;
#endif

/// The same for 16-bit elements of which two lie in an aligned word on both sides: a thread turns squares of 2 x 2.
/// Word w of row r has place w ^ turn(r / 2), so that the words that a warp reads fall into different banks. Squares
/// are known to the compiler: 14 instructions an element instead of 20.
template <bool square>
VESTA_KERNEL void VESTA_BOUNDS(kThreads, kWordBlocks) transpose_words_kernel(TransposeArgs a) {
  constexpr int kWords = 1 << (kTileBits<uint16_t> - 1), kEach = kWords / int(kThreads);
  VESTA_SHARED(uint32_t, tile, kWords);
  constexpr int kBits = kTileBits<uint16_t> / 2;
  const int bits = (square ? kBits : a.bits_down) - 1, wide = 1 << bits;  // words of a row
  const int pair_bits = (square ? kBits : a.bits_across) - 1;             // pairs of rows
  const TransposeTile t(a, 2u << pair_bits, 2u << bits);
  const int across = int(a.across - t.across), down = int(a.down - t.down);  // to the end of the matrix
  const int shift = pair_bits < 5 ? 5 - pair_bits : 0;
  const auto turn = [&](int pair) { return pair << shift & (wide - 1); };
  const int x = int(threadIdx.x) & (wide - 1), y = int(threadIdx.x) >> bits, step = int(kThreads) >> bits;
  const char* in = t.in + (t.across + y) * a.in_across + int64_t(t.down + 2 * x) * 2;
  uint32_t v[kEach];
  const int rows = 2 * x < down ? across - y : 0;
  VESTA_UNROLL
  for (int k = 0; k < kEach; ++k, in += step * a.in_across) {
    if (k * step < rows) v[k] = *reinterpret_cast<const uint32_t*>(in);
  }
  const int first = (y << bits) + (x ^ turn(y >> 1));  // bits of y and of the steps do not meet
  VESTA_UNROLL
  for (int k = 0; k < kEach; ++k) tile[(first ^ turn(k * (step >> 1))) + k * int(kThreads)] = v[k];
  block_barrier();
  const int pair = int(threadIdx.x) & ((1 << pair_bits) - 1), line = int(threadIdx.x) >> pair_bits;
  const int lines = int(kThreads) >> pair_bits, columns = 2 * pair < across ? down - 2 * line : 0;
  const int turned = (2 * pair << bits) + (line ^ turn(pair));
  char* out = t.out + (t.down + 2 * line) * a.out_down + int64_t(t.across + 2 * pair) * 2;
  VESTA_UNROLL
  for (int k = 0; k < kEach / 2; ++k, out += 2 * lines * a.out_down) {
    const uint32_t upper = tile[turned ^ k * lines], lower = tile[(turned ^ k * lines) + wide];
    if (2 * k * lines < columns) {
      *reinterpret_cast<uint32_t*>(out) = (upper & 0xffffu) | lower << 16;
      *reinterpret_cast<uint32_t*>(out + a.out_down) = upper >> 16 | (lower & 0xffff0000u);
    }
  }
}

/// The same for tiles of any sides, where powers of two fit badly.
template <class T>
VESTA_KERNEL void transpose_sides_kernel(TransposeArgs a) {
  VESTA_DYNAMIC_SHARED(T, tile);
  const uint32_t side_across = a.side_across.divisor, side_down = a.side_down.divisor, pitch = side_down | 1;
  const TransposeTile t(a, side_across, side_down);
  const uint32_t across = a.across - t.across < side_across ? a.across - t.across : side_across;
  const uint32_t down = a.down - t.down < side_down ? a.down - t.down : side_down;
  const char* const in = t.in + t.across * a.in_across + int64_t(t.down) * int64_t(sizeof(T));
  char* const out = t.out + t.down * a.out_down + int64_t(t.across) * int64_t(sizeof(T));
  // offsets of 32 bits, which the host has checked
  const int32_t in_across = int32_t(a.in_across), out_down = int32_t(a.out_down), item = int32_t(sizeof(T));
  T v[kTaken<T>];
  VESTA_UNROLL
  for (uint32_t k = 0; k < kTaken<T>; ++k) {
    const uint32_t i = threadIdx.x + k * kThreads, c = a.side_down.divide(i), d = i - c * side_down;
    if (c < across && d < down) v[k] = *reinterpret_cast<const T*>(in + (int32_t(c) * in_across + int32_t(d) * item));
  }
  VESTA_UNROLL
  for (uint32_t k = 0; k < kTaken<T>; ++k) {  // there is room for what was not loaded
    const uint32_t i = threadIdx.x + k * kThreads;
    tile[i + a.side_down.divide(i) * (pitch - side_down)] = v[k];
  }
  block_barrier();
  VESTA_UNROLL
  for (uint32_t k = 0; k < kTaken<T>; ++k) {
    const uint32_t i = threadIdx.x + k * kThreads, d = a.side_across.divide(i), c = i - d * side_across;
    if (c < across && d < down) {
      *reinterpret_cast<T*>(out + (int32_t(d) * out_down + int32_t(c) * item)) = tile[c * pitch + d];
    }
  }
}

/// Queues a copy by tiles of any sides: as long as the shorter side of the matrix, or an even part of it. Returns false
/// if offsets in a tile are too large.
template <class T>
bool run_sides(const PointwiseLaunch& l, TransposeArgs a, uint64_t matrices) {
  constexpr uint32_t kArea = kThreads * kTaken<T>, kMost = 1 << kTileBits<T> / 2;
  const bool is_wide = a.across > a.down;
  const uint32_t least = is_wide ? a.down : a.across, most = is_wide ? a.across : a.down;
  const uint32_t parts = (least + kMost - 1) / kMost, side = (least + parts - 1) / parts;
  const uint32_t fits = kArea / side, other = fits < most ? fits / 32 * 32 : most;
  const uint32_t across = is_wide ? other : side, down = is_wide ? side : other;
  const auto is_small = [](int64_t offset) { return offset < INT32_MAX && offset > INT32_MIN; };
  if (!is_small(across * a.in_across + kArea * 16) || !is_small(down * a.out_down + kArea * 16)) return false;
  LaunchShape shape = linear_shape(a.cut(across, down, matrices) * kThreads, kThreads, l.stream);
  shape.shared_bytes = unsigned((kArea + down - 1) / down * (down | 1) * sizeof(T));
  launch_block(l.name, transpose_sides_kernel<T>, shape, a);
  return true;
}

/// Whether all elements of 16 bits lie in pairs that are aligned on both sides.
bool in_words(const TransposeArgs& a) {
  uint64_t bits = reinterpret_cast<uintptr_t>(a.in) | reinterpret_cast<uintptr_t>(a.out) | uint64_t(a.in_across) |
                  uint64_t(a.out_down) | uint64_t(a.across) * 2 | uint64_t(a.down) * 2;
  for (int d = 0; d < a.ndim; ++d) bits |= uint64_t(a.in_strides[d]) | uint64_t(a.out_strides[d]);
  return bits % 4 == 0;
}

/// Cuts matrices into tiles whose sides are powers of two, square ones unless others are filled better; returns the
/// share that is filled.
template <class T>
double cut_evenly(TransposeArgs& a) {
  constexpr double kBetter = 1.1;
  const auto filled = [&](int bits_down) {
    const auto whole = [](uint32_t n, int bits) { return double((uint64_t(n) + (1u << bits) - 1) >> bits << bits); };
    return double(a.across) * double(a.down) / (whole(a.across, kTileBits<T> - bits_down) * whole(a.down, bits_down));
  };
  int best = kTileBits<T> / 2;
  for (int bits = kLeastBits; bits <= kTileBits<T> - kLeastBits; ++bits) {
    if (filled(bits) > kBetter * filled(best)) best = bits;
  }
  a.bits_down = best, a.bits_across = kTileBits<T> - best;
  return filled(best);
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
  if (across < 0 || down < 0 || l.sizes[across] * l.sizes[down] < kLeastMatrix) return false;
  TransposeArgs a;
  a.in = l.in[0].data, a.out = l.out;
  a.across = uint32_t(l.sizes[across]), a.down = uint32_t(l.sizes[down]);
  a.in_across = l.in[0].strides[across], a.out_down = l.out_strides[down];
  a.ndim = 0;
  for (int d = 0; d < l.ndim; ++d) {
    if (d == across || d == down) continue;
    a.sizes[a.ndim] = FastDivisor(uint32_t(l.sizes[d]));
    a.in_strides[a.ndim] = l.in[0].strides[d], a.out_strides[a.ndim] = l.out_strides[d];
    ++a.ndim;
  }
  const int64_t matrix = l.sizes[across] * l.sizes[down];
  const uint64_t matrices = uint64_t(l.numel / matrix);
  const double filled = cut_evenly<T>(a);
  if (filled < 0.6 && run_sides<T>(l, a, matrices)) return true;
  if (filled < 0.1) return false;
  const uint64_t tiles = a.cut(1u << a.bits_across, 1u << a.bits_down, matrices);
  const LaunchShape shape = linear_shape(tiles * kThreads, kThreads, l.stream);
  if (sizeof(T) != 2 || !in_words(a)) launch_block(l.name, transpose_kernel<T>, shape, a);
  else if (a.bits_across == a.bits_down) launch_block(l.name, transpose_words_kernel<true>, shape, a);
  else launch_block(l.name, transpose_words_kernel<false>, shape, a);
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
