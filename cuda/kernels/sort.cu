#include <vesta/cuda/kernels/sort.h>

#include <vesta/cuda/kernels/radix_pass.cuh>
#include <vesta/cuda/kernels/radix_sort.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 256;

/// Returns the offset of an element.
VESTA_DEVICE int64_t offset_of(const LineSort& l, int64_t line, int64_t place) {
  return (line / l.inner * l.length + place) * l.inner + line % l.inner;
}

/// The order of a dtype's elements, of which a kernel has the bits: one kernel for each size of elements. Makes the
/// keys of sort_key(), in the sort's direction.
template <class Bits>
struct Order {
  static constexpr Bits kSign = Bits(Bits(1) << (8 * sizeof(Bits) - 1)), kAll = Bits(~Bits(0));
  Bits infinity;  // of floats; of integers 0
  Bits turned;    // of integers, the bits that are turned in their keys
  Bits flip;      // all, for a descending sort

  explicit Order(const LineSort& l) : infinity(0), turned(0), flip(l.descending ? kAll : Bits(0)) {
    switch (l.dtype) {
      case DType::bool_:
      case DType::uint8: break;
      case DType::float16: infinity = Bits(0x7c00); break;
      case DType::bfloat16: infinity = Bits(0x7f80); break;
      case DType::float32: infinity = Bits(0x7f800000); break;
      case DType::float64: infinity = Bits(0x7ff0000000000000); break;
      default: turned = kSign;
    }
  }
  VESTA_DEVICE Bits key_of(Bits v) const {
    if (infinity == 0) return Bits(v ^ turned ^ flip);
    const Bits size = Bits(v & Bits(~kSign)), finite = v & kSign ? Bits(~v) : Bits(v | kSign);
    return Bits((size == 0 ? kSign : size > infinity ? kAll : finite) ^ flip);
  }
  /// Returns the element that has a key; false where several do: zeros, and NaNs.
  VESTA_DEVICE bool element_of(Bits key, Bits& v) const {
    const Bits ascending = Bits(key ^ flip);
    v = Bits(ascending ^ turned);
    if (infinity == 0) return true;
    v = ascending & kSign ? Bits(ascending ^ kSign) : Bits(~ascending);
    return ascending != kSign && ascending != kAll;
  }
};

/// Calls `f.template operator()<Bits>()` with the unsigned type of a dtype's size.
template <class F>
void visit_size(DType d, F f) {
  switch (itemsize(d)) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    default: return f.template operator()<uint64_t>();
  }
}

template <class T>
VESTA_DEVICE void write(const LineSort& l, int64_t line, int64_t to, int64_t from) {
  const int64_t at = offset_of(l, line, to);
  static_cast<T*>(l.values)[at] = static_cast<const T*>(l.in)[offset_of(l, line, from)];
  l.places[at] = from;
}

/// Sorts up to `lines` lines by value, and then, for they have become mixed, by line.
template <class T>
VESTA_KERNEL void sort_lines_kernel(LineSort l, Order<T> order, unsigned lines) {
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
    const int64_t at = offset_of(l, first + element[k] / length, element[k] % length);
    key[k] = order.key_of(static_cast<const T*>(l.in)[at]);
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
VESTA_KERNEL void value_keys_kernel(LineSort l, Order<T> order, int64_t n, Index* keys) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) keys[i] = Index(order.key_of(static_cast<const T*>(l.in)[offset_of(l, i / l.length, i % l.length)]));
}

template <class Index>
VESTA_KERNEL void line_keys_kernel(int64_t length, int64_t n, const Index* order, Index* keys) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) keys[i] = Index(int64_t(order[i]) / length);
}

/// A line's elements as the pairs of a sort.
template <class T, class Key>
struct LineIn {
  static constexpr unsigned N = sizeof(T) == 8 ? 2 : 4;
  using Pack = Elements<T, N>;
  const T* elements;
  Order<T> order;
  VESTA_DEVICE void use(unsigned) const {}
  VESTA_DEVICE bool aligned() const { return reinterpret_cast<uintptr_t>(elements) % alignof(Pack) == 0; }
  VESTA_DEVICE Pack pack(int64_t i) const { return *reinterpret_cast<const Pack*>(elements + i); }
  VESTA_DEVICE Key key_of(T v) const { return order.key_of(v); }
  VESTA_DEVICE Key key(Key i) const { return key_of(elements[i]); }
  VESTA_DEVICE Key value(Key i) const { return i; }
};
/// A sort's results; most elements are known by their keys, so that they need not be read, in no order.
template <class T, class Key>
struct LineOut {
  const T* elements;
  T* values;
  int64_t* places;
  Order<T> order;
  VESTA_DEVICE void leave(unsigned) const {}
  VESTA_DEVICE bool write_key(Key to, Key key) const {
    T v;
    if (!order.element_of(T(key), v)) return true;
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
  const Order<T> order(l);
  const LineIn<T, Key> from{in, order};
  const LineOut<T, Key> to{in, static_cast<T*>(l.values), l.places, order};
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
  visit_size(l.dtype, [&]<class T>() {
    launch_block("sort_lines", sort_lines_kernel<T>, linear_shape(blocks * kSortThreads, kSortThreads, l.stream), l,
                 Order<T>(l), lines);
  });
}

void run_value_keys(const LineSort& l, void* keys, bool wide) {
  visit_size(l.dtype, [&]<class T>() {
    with_index(wide, [&]<class Index>(Index) {
      launch_independent("value_keys", value_keys_kernel<T, Index>, shape_of(l), l, Order<T>(l), elements(l),
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
  visit_size(l.dtype, [&]<class T>() {
    with_index(wide, [&]<class Index>(Index) {
      launch_independent("sort_results", sort_results_kernel<T, Index>, shape_of(l), l, elements(l),
                         static_cast<const Index*>(order), static_cast<const Index*>(lines));
    });
  });
}

void run_sort_line(const LineSort& l, const SortLaunch& s) {
  visit_size(l.dtype, [&]<class T>() {
    if constexpr (sizeof(T) == 8) sort_line<T, uint64_t>(l, s);
    else sort_line<T, uint32_t>(l, s);
  });
}

}  // namespace vesta::cuda
