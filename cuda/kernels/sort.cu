#include <vesta/cuda/kernels/sort.h>

#include <vesta/core/ops/sort_key.h>
#include <vesta/cuda/kernels/radix_pass.cuh>
#include <vesta/cuda/kernels/radix_sort.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 256;

/// Returns the offset of an element.
VESTA_DEVICE int64_t offset_of(const LineSort& l, int64_t line, int64_t place) {
  return (line / l.inner * l.length + place) * l.inner + line % l.inner;
}

template <class T>
VESTA_DEVICE SortKey<T> key_at(const LineSort& l, int64_t offset) {
  const SortKey<T> key = sort_key(static_cast<const T*>(l.in)[offset]);
  return l.descending ? SortKey<T>(~key) : key;
}

template <class T>
VESTA_DEVICE void write(const LineSort& l, int64_t line, int64_t to, int64_t from) {
  const int64_t at = offset_of(l, line, to);
  static_cast<T*>(l.values)[at] = static_cast<const T*>(l.in)[offset_of(l, line, from)];
  l.places[at] = from;
}

/// Sorts up to `lines` lines by value, and then, for they have become mixed, by line.
template <class T>
VESTA_KERNEL void sort_lines_kernel(LineSort l, unsigned lines) {
  using Key = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  VESTA_SHARED(Key, tile_keys, kSortTile);
  VESTA_SHARED(unsigned, tile_elements, kSortTile);
  const int64_t first = int64_t(blockIdx.x) * lines, left = l.outer * l.inner - first;
  const unsigned length = unsigned(l.length), here = left < int64_t(lines) ? unsigned(left) : lines;
  const unsigned n = here * length, begin = threadIdx.x * kSortItems;
  const unsigned count = begin >= n ? 0 : n - begin < kSortItems ? n - begin : kSortItems;
  Key key[kSortItems];
  unsigned element[kSortItems];
#pragma unroll
  for (unsigned k = 0; k < kSortItems; ++k) {
    if (k >= count) continue;
    element[k] = begin + k;
    key[k] = key_at<T>(l, offset_of(l, first + element[k] / length, element[k] % length));
  }
  sort_tile(key, element, count, 8 * int(sizeof(T)), tile_keys, tile_elements);
  int bits = 0;
  while (here > 1u << bits) ++bits;
  if (bits > 0) {
#pragma unroll
    for (unsigned k = 0; k < kSortItems; ++k) {
      if (k < count) key[k] = Key(element[k] / length);
    }
    sort_tile(key, element, count, bits, tile_keys, tile_elements);
  }
#pragma unroll
  for (unsigned k = 0; k < kSortItems; ++k) {
    if (k < count) write<T>(l, first + (begin + k) / length, (begin + k) % length, element[k] % length);
  }
}

template <class T, class Index>
VESTA_KERNEL void value_keys_kernel(LineSort l, int64_t n, Index* keys) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) keys[i] = Index(key_at<T>(l, offset_of(l, i / l.length, i % l.length)));
}

template <class Index>
VESTA_KERNEL void line_keys_kernel(int64_t length, int64_t n, const Index* order, Index* keys) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) keys[i] = Index(int64_t(order[i]) / length);
}

/// Returns the element that has a key; false where several do: zeros, and NaNs.
template <class T>
VESTA_DEVICE bool element_of(SortKey<T> key, T& v) {
  using Key = SortKey<T>;
  constexpr Key kSign = Key(Key(1) << (8 * sizeof(Key) - 1));
  if constexpr (std::is_same_v<T, bool>) {
    v = key != 0;
    return true;
  } else if constexpr (std::is_integral_v<T>) {
    v = T(std::is_signed_v<T> ? Key(key ^ kSign) : key);
    return true;
  } else {
    if (key == kSign || key == Key(~Key(0))) return false;
    v = __builtin_bit_cast(T, key & kSign ? Key(key ^ kSign) : Key(~key));
    return true;
  }
}

/// A line's elements as the pairs of a sort.
template <class T, class Key>
struct LineIn {
  static constexpr unsigned N = sizeof(T) == 8 ? 2 : 4;
  using Pack = Elements<T, N>;
  const T* elements;
  SortKey<T> flip;  // all bits, for a descending sort
  VESTA_DEVICE void use(unsigned) const {}
  VESTA_DEVICE bool aligned() const { return reinterpret_cast<uintptr_t>(elements) % alignof(Pack) == 0; }
  VESTA_DEVICE Pack pack(int64_t i) const { return *reinterpret_cast<const Pack*>(elements + i); }
  VESTA_DEVICE Key key_of(T v) const { return SortKey<T>(sort_key(v) ^ flip); }
  VESTA_DEVICE Key key(Key i) const { return key_of(elements[i]); }
  VESTA_DEVICE Key value(Key i) const { return i; }
};
/// A sort's results; most elements are known by their keys, so that they need not be read, in no order.
template <class T, class Key>
struct LineOut {
  const T* elements;
  T* values;
  int64_t* places;
  SortKey<T> flip;
  VESTA_DEVICE void leave(unsigned) const {}
  VESTA_DEVICE bool write_key(Key to, Key key) const {
    T v;
    if (!element_of(SortKey<T>(key ^ flip), v)) return true;
    values[to] = v;
    return false;
  }
  VESTA_DEVICE void write_value(Key to, Key value, bool waits) const {
    if (waits) values[to] = elements[value];
    places[to] = int64_t(value);
  }
};

template <class T, class Key>
void sort_line(const LineSort& l, const SortLaunch& s) {
  const T* in = static_cast<const T*>(l.in);
  const auto flip = SortKey<T>(l.descending ? -1 : 0);
  const LineIn<T, Key> from{in, flip};
  const LineOut<T, Key> to{in, static_cast<T*>(l.values), l.places, flip};
  const int last = sort_pass_count(s.bits) - 1;
  if constexpr (sizeof(T) == 1) {
    run_pass<Key>(s, 0, from, to);
  } else {
    const PairBuffers<Key> buffers(s);
    run_pass<Key>(s, 0, from, PairsOut<Key>{buffers});
    run_sort_passes(s, 1, last);
    run_pass<Key>(s, last, PairsIn<Key>{buffers, false}, to);
  }
}

template <class T, class Index>
VESTA_KERNEL void sort_results_kernel(LineSort l, int64_t n, const Index* order, const Index* lines) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) write<T>(l, i / l.length, i % l.length, int64_t(order[lines[i]]) % l.length);
}

int64_t elements(const LineSort& l) { return l.outer * l.length * l.inner; }
LaunchShape shape_of(const LineSort& l) { return linear_shape(uint64_t(elements(l)), kThreads, l.stream); }

/// Calls `f(number)` with a number of the type that indexes have.
template <class F>
void with_index(bool wide, F f) {
  if (wide) f(uint64_t());
  else f(uint32_t());
}

}  // namespace

void run_sort_lines(const LineSort& l) {
  const auto lines = unsigned(kSortTile / l.length);
  const uint64_t blocks = (uint64_t(l.outer * l.inner) + lines - 1) / lines;
  visit_device<kReals | kBool>(l.dtype, [&]<class T>() {
    launch_block("sort_lines", sort_lines_kernel<T>, linear_shape(blocks * kSortThreads, kSortThreads, l.stream), l,
                 lines);
  });
}

void run_value_keys(const LineSort& l, void* keys, bool wide) {
  visit_device<kReals | kBool>(l.dtype, [&]<class T>() {
    with_index(wide, [&]<class Index>(Index) {
      launch_independent("value_keys", value_keys_kernel<T, Index>, shape_of(l), l, elements(l),
                         static_cast<Index*>(keys));
    });
  });
}

void run_line_keys(const LineSort& l, const void* order, void* keys, bool wide) {
  with_index(wide, [&]<class Index>(Index) {
    launch_independent("line_keys", line_keys_kernel<Index>, shape_of(l), l.length, elements(l),
                       static_cast<const Index*>(order), static_cast<Index*>(keys));
  });
}

void run_sort_results(const LineSort& l, const void* order, const void* lines, bool wide) {
  visit_device<kReals | kBool>(l.dtype, [&]<class T>() {
    with_index(wide, [&]<class Index>(Index) {
      launch_independent("sort_results", sort_results_kernel<T, Index>, shape_of(l), l, elements(l),
                         static_cast<const Index*>(order), static_cast<const Index*>(lines));
    });
  });
}

void run_sort_line(const LineSort& l, const SortLaunch& s) {
  visit_device<kReals | kBool>(l.dtype, [&]<class T>() {
    if constexpr (sizeof(T) == 8) sort_line<T, uint64_t>(l, s);
    else sort_line<T, uint32_t>(l, s);
  });
}

}  // namespace vesta::cuda
