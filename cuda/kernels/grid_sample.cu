// Reading images at positions of a grid: a thread has one position and some of its channels, of pixels 16 bytes at a
// time. For the gradient of the input, positions are sorted by the cell between four elements that they lie in: then
// the positions that read an element are two runs, those of the two cells above it and of the two below. A thread adds
// them up for some channels of an element; nothing is added by atomics, and the order depends on the grid alone.
#include <vesta/cuda/kernels/grid_sample.h>

#include <algorithm>

#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kGridThreads = 256;
constexpr int kMostLanes = 8;   // that share the channels of a position
constexpr int64_t kLayers = 65535;  // that a grid has at most
constexpr int kSummed = 8;      // channels that a thread adds up
constexpr int kPlacesAhead = 4;  // positions whose numbers are loaded before the first one is added

template <class T>
constexpr int kGridPack = int(16 / sizeof(T));

/// A launch with prepared divisors.
template <class T>
struct GridArgs {
  using C = compute_of<T>;
  GridSampleLaunch l;
  Divider places;
  GridAxis<C> rows, columns;
  int64_t pixel_step, channel_step, total;
  explicit GridArgs(const GridSampleLaunch& launch)
      : l(launch),
        places(l.places),
        rows(GridAxis<C>::of(l.height, l.padding, l.align_corners)),
        columns(GridAxis<C>::of(l.width, l.padding, l.align_corners)),
        pixel_step(l.pixels ? l.channels : 1),
        channel_step(l.pixels ? 1 : l.height * l.width),
        total(l.batch * l.places) {}
  VESTA_DEVICE int64_t image_size() const { return l.channels * l.height * l.width; }
};

/// What a position reads: elements (0, 0), (1, 0), (0, 1) and (1, 1) by row and column, or the first one alone. One
/// outside is not read; its number is that of an element inside.
template <class T>
struct GridNeighbours {
  using C = compute_of<T>;
  int64_t image, place;
  int64_t at[4];  // the elements' numbers in the image, of channel 0
  bool read[4];
  C rows[2], columns[2];  // weights, 0 outside
  C slope_x, slope_y;     // of the position along the grid
  int64_t row = 0, column = 0;
  bool reaches;  // whether any element is read

  VESTA_DEVICE GridNeighbours(const GridArgs<T>& a, int64_t q) : image(a.places.divide(q)) {
    place = q - image * a.l.places;
    const T* const grid = static_cast<const T*>(a.l.grid) + 2 * q;
    const T gx = grid[0], gy = grid[1];
    const C x = a.columns.place(convert<C>(gx), slope_x), y = a.rows.place(convert<C>(gy), slope_y);
    const C height = a.rows.n, width = a.columns.n;
    if (a.l.nearest) {
      const C r = math::round(y), c = math::round(x);
      reaches = r >= C(0) && r < height && c >= C(0) && c < width;
      if (reaches) row = int64_t(r), column = int64_t(c);
      at[0] = (row * a.l.width + column) * a.pixel_step, read[0] = reaches;
      return;
    }
    const C r = math::floor(y), c = math::floor(x), down = y - r, along = x - c;
    reaches = r >= C(-1) && r < height && c >= C(-1) && c < width;
    if (reaches) row = int64_t(r), column = int64_t(c);
    const bool row_read[2] = {reaches && row >= 0, reaches && row + 1 < a.l.height};
    const bool column_read[2] = {column >= 0, column + 1 < a.l.width};
    rows[0] = row_read[0] ? C(1) - down : C(0), rows[1] = row_read[1] ? down : C(0);
    columns[0] = reaches && column_read[0] ? C(1) - along : C(0), columns[1] = reaches && column_read[1] ? along : C(0);
    const int64_t first_row = row < 0 ? 0 : row, second_row = row + 1 < a.l.height ? row + 1 : first_row;
    const int64_t first = column < 0 ? 0 : column, second = column + 1 < a.l.width ? column + 1 : first;
    VESTA_UNROLL
    for (int k = 0; k < 4; ++k) {
      at[k] = ((k % 2 ? second_row : first_row) * a.l.width + (k / 2 ? second : first)) * a.pixel_step;
      read[k] = row_read[k % 2] && column_read[k / 2];
    }
  }
  VESTA_DEVICE C weight(int k) const { return rows[k % 2] * columns[k / 2]; }
};

/// Reads channels [first, first + chunk) of a position, `first` by the block's second number.
template <class T, int N>
VESTA_KERNEL void grid_sample_kernel(GridArgs<T> a, int64_t chunk) {
  using C = compute_of<T>;
  using Pack = Elements<T, N>;
  constexpr int kAhead = N == 1 ? 4 : 1;  // packs of each neighbour that are loaded at once
  const int64_t q = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (q >= a.total) return;
  const GridNeighbours<T> p(a, q);
  const int64_t begin = int64_t(blockIdx.y) * chunk, end = begin + chunk < a.l.channels ? begin + chunk : a.l.channels;
  const T* const x = static_cast<const T*>(a.l.input) + p.image * a.image_size();
  T* const y = static_cast<T*>(a.l.output) + p.image * a.l.channels * a.l.places + p.place;
  if (a.l.nearest) {
    VESTA_ROLLED
    for (int64_t c = begin; c < end; c += N) {
      const Pack v = *reinterpret_cast<const Pack*>(x + p.at[0] + c * a.channel_step);
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) y[(c + j) * a.l.places] = p.read[0] ? v.v[j] : convert<T>(C(0));
    }
    return;
  }
  C weights[4];
  VESTA_UNROLL
  for (int k = 0; k < 4; ++k) weights[k] = p.weight(k);
  VESTA_ROLLED
  for (int64_t c = begin; c < end; c += kAhead * N) {
    Pack v[kAhead][4];
    VESTA_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      const T* const from = x + (c + i * N < end ? c + i * N : c) * a.channel_step;
      VESTA_UNROLL
      for (int k = 0; k < 4; ++k) v[i][k] = *reinterpret_cast<const Pack*>(from + p.at[k]);
    }
    VESTA_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      C sum[N];
      VESTA_UNROLL
      for (int k = 0; k < 4; ++k) {
        C wide[N];
        widen<T, N>(v[i][k], wide);
        VESTA_UNROLL
        for (int j = 0; j < N; ++j) {
          const C term = (p.read[k] ? wide[j] : C(0)) * weights[k];
          sum[j] = k == 0 ? term : sum[j] + term;
        }
      }
      if (c + i * N >= end) continue;
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) y[(c + i * N + j) * a.l.places] = convert<T>(sum[j]);
    }
  }
}

/// Computes the gradient of the positions: `lanes` threads share a position. Channels come in units of 16 bytes, of
/// which each lane adds up every lanes-th, so that the layout changes no order.
template <class T, bool packed>
VESTA_KERNEL void grid_sample_slopes_kernel(GridArgs<T> a, unsigned lanes) {
  using C = compute_of<T>;
  constexpr int N = kGridPack<T>;
  using Pack = Elements<T, N>;
  VESTA_SHARED(C, parts, 2 * kGridThreads);
  const unsigned width = kGridThreads / lanes, lane = threadIdx.x / width, own = threadIdx.x - lane * width;
  const int64_t number = int64_t(blockIdx.x) * width + own;
  const bool exists = number < a.total;
  const GridNeighbours<T> p(a, exists ? number : a.total - 1);
  const T* const x = static_cast<const T*>(a.l.input) + p.image * a.image_size();
  const T* const g = static_cast<const T*>(a.l.grad) + p.image * a.l.channels * a.l.places + p.place;
  C along_x(0), along_y(0);
  VESTA_ROLLED
  for (int64_t c = int64_t(lane) * N; exists && c < a.l.channels; c += int64_t(lanes) * N) {
    C v[4][N], slope[N];
    VESTA_UNROLL
    for (int k = 0; k < 4; ++k) {
      if constexpr (packed) {
        const Pack pack = *reinterpret_cast<const Pack*>(x + p.at[k] + c);
        widen<T, N>(pack, v[k]);
      } else {
        VESTA_UNROLL
        for (int j = 0; j < N; ++j) {
          v[k][j] = convert<C>(x[p.at[k] + (c + j < a.l.channels ? c + j : c) * a.channel_step]);
        }
      }
    }
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      slope[j] = packed || c + j < a.l.channels ? convert<C>(g[(c + j) * a.l.places]) : C(0);
    }
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      if (!packed && c + j >= a.l.channels) break;
      C e[4];
      VESTA_UNROLL
      for (int k = 0; k < 4; ++k) e[k] = p.read[k] ? v[k][j] : C(0);
      along_x = along_x + slope[j] * (p.rows[0] * (e[2] - e[0]) + p.rows[1] * (e[3] - e[1]));
      along_y = along_y +
                slope[j] * ((p.columns[0] * e[1] + p.columns[1] * e[3]) - (p.columns[0] * e[0] + p.columns[1] * e[2]));
    }
  }
  if (lanes > 1) {
    parts[threadIdx.x] = along_x, parts[kGridThreads + threadIdx.x] = along_y;
    block_barrier();
    if (lane != 0) return;
    VESTA_ROLLED
    for (unsigned k = 1; k < lanes; ++k) {
      along_x = along_x + parts[k * width + own], along_y = along_y + parts[kGridThreads + k * width + own];
    }
  }
  if (!exists) return;
  T* const to = static_cast<T*>(a.l.grid_grad) + 2 * number;
  to[0] = convert<T>(along_x * p.slope_x), to[1] = convert<T>(along_y * p.slope_y);
}

/// Numbers of 32 bits, or of 64.
struct GridNumbers {
  void* data;
  bool wide;
  VESTA_DEVICE int64_t operator[](int64_t i) const {
    return wide ? static_cast<const int64_t*>(data)[i] : int64_t(static_cast<const uint32_t*>(data)[i]);
  }
  VESTA_DEVICE void set(int64_t i, int64_t v) const {
    if (wide) static_cast<int64_t*>(data)[i] = v;
    else static_cast<uint32_t*>(data)[i] = uint32_t(v);
  }
};

/// Writes the keys of positions and the weights of their neighbours.
template <class T>
VESTA_KERNEL void grid_sample_keys_kernel(GridArgs<T> a) {
  using C = compute_of<T>;
  const int64_t q = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (q >= a.total) return;
  const GridNeighbours<T> p(a, q);
  const int64_t cells = a.l.cells();
  const int64_t cell = a.l.nearest ? p.row * a.l.width + p.column : (p.row + 1) * (a.l.width + 1) + p.column + 1;
  GridNumbers{a.l.keys, a.l.wide}.set(q, p.reaches ? p.image * cells + cell : a.l.batch * cells);
  if (a.l.nearest) return;
  Elements<C, 4> weights;
  VESTA_UNROLL
  for (int k = 0; k < 4; ++k) weights.v[k] = p.weight(k);
  static_cast<Elements<C, 4>*>(a.l.weights)[q] = weights;
}

/// Finds where the keys of each cell begin among sorted ones.
VESTA_KERNEL void grid_sample_starts_kernel(GridSampleLaunch l, int64_t count, int64_t total) {
  const int64_t key = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (key >= count) return;
  const GridNumbers keys{l.keys, l.wide};
  int64_t low = 0, high = total;
  VESTA_ROLLED
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (keys[middle] < key) low = middle + 1;
    else high = middle;
  }
  GridNumbers{l.starts, l.wide}.set(key, low);
}

/// The sums of kSummed channels of an element, `left` of which exist.
template <class T>
struct GridSums {
  using C = compute_of<T>;
  const GridArgs<T>& a;
  const T* grad;  // of channel 0 and position 0 of all images, if they had no others
  int64_t left;
  C sum[kSummed] = {};

  /// Adds the sorted positions [first, last). Up to `middle` their neighbour `one` is the element, from there on `two`.
  VESTA_DEVICE void add(int64_t first, int64_t middle, int64_t last, int one, int two) {
    const GridNumbers order{const_cast<void*>(a.l.order), a.l.wide};
    VESTA_ROLLED
    for (int64_t s = first; s < last; s += kPlacesAhead) {
      int64_t place[kPlacesAhead];
      C weight[kPlacesAhead], g[kPlacesAhead][kSummed];
      VESTA_UNROLL
      for (int k = 0; k < kPlacesAhead; ++k) place[k] = order[s + k < last ? s + k : s];
      VESTA_UNROLL
      for (int k = 0; k < kPlacesAhead; ++k) {
        if (!a.l.nearest) weight[k] = static_cast<const C*>(a.l.weights)[4 * place[k] + (s + k < middle ? one : two)];
        VESTA_UNROLL
        for (int j = 0; j < kSummed; ++j) g[k][j] = convert<C>(grad[place[k] + (j < left ? j : 0) * a.l.places]);
      }
      VESTA_UNROLL
      for (int k = 0; k < kPlacesAhead; ++k) {
        VESTA_UNROLL
        for (int j = 0; j < kSummed; ++j) {
          const C next = sum[j] + (a.l.nearest ? g[k][j] : g[k][j] * weight[k]);
          sum[j] = s + k < last ? next : sum[j];
        }
      }
    }
  }
};

/// Adds up the gradients of kSummed channels of an element, and of others as far as the blocks do not reach.
template <class T>
VESTA_KERNEL void grid_sample_sums_kernel(GridArgs<T> a, Divider plane, Divider width, int64_t elements) {
  const int64_t element = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (element >= elements) return;
  const GridNumbers starts{a.l.starts, a.l.wide};
  const int64_t image = plane.divide(element), number = element - image * plane.divisor;
  const int64_t row = width.divide(number), cells = image * a.l.cells();
  VESTA_ROLLED
  for (int64_t c = int64_t(blockIdx.y) * kSummed; c < a.l.channels; c += int64_t(gridDim.y) * kSummed) {
    const int64_t before = (image * a.l.channels + c) * a.l.places - image * a.l.places;
    GridSums<T> sums{a, static_cast<const T*>(a.l.grad) + before, a.l.channels - c};
    if (a.l.nearest) {
      sums.add(starts[cells + number], 0, starts[cells + number + 1], 0, 0);
    } else {
      const int64_t above = cells + number + row, below = above + a.l.width + 1;
      sums.add(starts[above], starts[above + 1], starts[above + 2], 3, 1);
      sums.add(starts[below], starts[below + 1], starts[below + 2], 2, 0);
    }
    T* const to = static_cast<T*>(a.l.input_grad) + image * a.image_size() + number * a.pixel_step + c * a.channel_step;
    VESTA_UNROLL
    for (int j = 0; j < kSummed; ++j) {
      if (j < sums.left) to[j * a.channel_step] = convert<T>(sums.sum[j]);
    }
  }
}

/// Returns the shape of a thread for each of n numbers, by `layers`.
LaunchShape layered_shape(int64_t n, int64_t layers, StreamHandle stream) {
  LaunchShape shape = linear_shape(uint64_t(n), kGridThreads, stream);
  shape.grid[1] = unsigned(std::min(layers, kLayers));
  return shape;
}

bool are_packs(const GridSampleLaunch& l, int64_t item) {
  return l.pixels && l.channels * item % 16 == 0 && reinterpret_cast<uintptr_t>(l.input) % 16 == 0;
}

}  // namespace

void run_grid_sample(const GridSampleLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    const GridArgs<T> a(l);
    constexpr int64_t kMost = 16, kFewest = 8, kThreads = 1 << 18;  // channels of a thread; threads
    int64_t chunk = kMost;  // a position is found anew for each
    if (a.total * ((l.channels + kMost - 1) / kMost) < kThreads) chunk = kFewest;
    chunk = std::max(chunk, ((l.channels + kLayers - 1) / kLayers + kMost - 1) / kMost * kMost);
    const LaunchShape shape = layered_shape(a.total, (l.channels + chunk - 1) / chunk, l.stream);
    if (are_packs(l, sizeof(T))) {
      launch_independent(l.name, grid_sample_kernel<T, kGridPack<T>>, shape, a, chunk);
    } else {
      launch_independent(l.name, grid_sample_kernel<T, 1>, shape, a, chunk);
    }
  });
}

void run_grid_sample_slopes(const GridSampleLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    const GridArgs<T> a(l);
    unsigned lanes = 1;
    while (int(lanes) < kMostLanes && int64_t(2 * lanes) * kGridPack<T> <= l.channels) lanes *= 2;
    const LaunchShape shape = linear_shape(uint64_t(a.total) * lanes, kGridThreads, l.stream);
    if (are_packs(l, sizeof(T))) launch_block(l.name, grid_sample_slopes_kernel<T, true>, shape, a, lanes);
    else launch_block(l.name, grid_sample_slopes_kernel<T, false>, shape, a, lanes);
  });
}

void run_grid_sample_keys(const GridSampleLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    const GridArgs<T> a(l);
    launch_independent(l.name, grid_sample_keys_kernel<T>, layered_shape(a.total, 1, l.stream), a);
  });
}

void run_grid_sample_sums(const GridSampleLaunch& l) {
  const int64_t count = l.batch * l.cells() + 1, plane = l.height * l.width, elements = l.batch * plane;
  launch_independent(l.name, grid_sample_starts_kernel, layered_shape(count, 1, l.stream), l, count,
                     l.batch * l.places);
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    launch_independent(l.name, grid_sample_sums_kernel<T>,
                       layered_shape(elements, (l.channels + kSummed - 1) / kSummed, l.stream), GridArgs<T>(l),
                       Divider(plane), Divider(l.width), elements);
  });
}

}  // namespace vesta::cuda
