// scatter_add_ of lines that fit into shared memory, without a sort. A tour: a warp takes a line of the result, adds 32
// elements at a time, and writes it back. Lanes with the same position find each other and take turns, so that equal
// positions are added in the order of the line: the bits are those of one thread that adds them all.
#include <vesta/cuda/kernels/add_scaled.cuh>
#include <vesta/cuda/kernels/index.h>
#include <vesta/cuda/kernels/items.cuh>
#include <vesta/cuda/kernels/lines.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kAhead = 8;  // elements that a lane loads before it adds them

/// A line's bytes in shared memory.
template <class C>
VESTA_HD unsigned line_bytes(int64_t size) {
  return (unsigned(size) * unsigned(sizeof(C)) + 15) / 16 * 16;
}

/// Converts elements between memory and sums; those that are put stay what they are.
template <class To, class From>
VESTA_DEVICE To to_line(From v) {
  if constexpr (std::is_same_v<To, From>) return v;
  else return convert<To>(v);
}

template <class T, class Index, bool puts>
VESTA_KERNEL void scatter_rows_kernel(Walk<Index, 3> walk, ElementMoves m) {
  using C = std::conditional_t<puts, T, compute_of<T>>;
  VESTA_DYNAMIC_SHARED(char, memory);
  const unsigned lane = lane_index(), size = unsigned(m.size), length = unsigned(m.length);
  const Index line = Index(blockIdx.x) * (blockDim.x / 32) + warp_index();
  if (line >= Index(m.total)) return;
  C* const sums = reinterpret_cast<C*>(memory + warp_index() * line_bytes<C>(m.size));
  int64_t offset[3];
  walk.offsets(line, offset);
  char* const self = m.self + offset[0];
  VESTA_ROLLED
  for (unsigned first = lane; first < size; first += 32 * kAhead) {
    T v[kAhead];
    VESTA_UNROLL
    for (unsigned u = 0; u < kAhead; ++u) {
      const unsigned i = first + u * 32;
      if (i < size) v[u] = *reinterpret_cast<const T*>(self + int64_t(i) * m.stride);
    }
    VESTA_UNROLL
    for (unsigned u = 0; u < kAhead; ++u) {
      if (first + u * 32 < size) sums[first + u * 32] = to_line<C>(v[u]);
    }
  }
  warp_barrier();
  VESTA_ROLLED
  for (unsigned first = 0; first < length; first += 32 * kAhead) {
    int64_t at[kAhead];
    T v[kAhead];
    VESTA_UNROLL
    for (unsigned u = 0; u < kAhead; ++u) {
      const unsigned i = first + u * 32 + lane;
      at[u] = i < length ? *reinterpret_cast<const int64_t*>(m.index + offset[1] + int64_t(i) * m.index_step) : 0;
      v[u] = i < length ? *reinterpret_cast<const T*>(m.other + offset[2] + int64_t(i) * m.other_step) : T{};
    }
    VESTA_UNROLL
    for (unsigned u = 0; u < kAhead; ++u) {
      if (first + u * 32 >= length) break;
      const bool exists = first + u * 32 + lane < length, good = exists && uint64_t(at[u]) < uint64_t(size);
      if (exists && !good) report(m.fault, FaultKind::element_index, m.name, at[u], m.size, m.dim);
      const unsigned place = good ? unsigned(at[u]) : size + lane;
      const unsigned equal = match_lanes(place);
      if constexpr (puts) {
        if (good && equal >> lane == 1) sums[place] = v[u];
        warp_barrier();
      } else {
        unsigned before = count_bits(equal & ((1u << lane) - 1));  // of the same position, yet to be added
        VESTA_ROLLED
        for (bool mine = true, more = true; more;) {
          if (mine && before == 0) {
            if (good) sums[place] = add_scaled(sums[place], v[u], 1.0);
            mine = false;
          } else {
            --before;
          }
          warp_barrier();
          more = any_lane(mine);
        }
      }
    }
  }
  VESTA_ROLLED
  for (unsigned i = lane; i < size; i += 32) *reinterpret_cast<T*>(self + int64_t(i) * m.stride) = to_line<T>(sums[i]);
}

/// Puts along short lines, one thread per line.
template <class T, class Index>
VESTA_KERNEL void put_lines_kernel(Walk<Index, 3> walk, ElementMoves m) {
  const Index i = thread_number<Index>();
  if (i >= Index(m.total)) return;
  each_along_line<T>(walk, m, i, [](T& to, T v) { to = v; });
}

template <class T, class C, bool puts>
void launch_rows(const ElementMoves& m) {
  const unsigned bytes = line_bytes<C>(m.size), fit = unsigned(kScatterRoom) / bytes, warps = fit < 8 ? fit : 8;
  LaunchShape shape = linear_shape(uint64_t(m.total) * 32, warps * 32, m.stream);
  shape.shared_bytes = warps * bytes;
  if (m.wide) launch_block(m.name, scatter_rows_kernel<T, uint64_t, puts>, shape, Walk<uint64_t, 3>(m.walk), m);
  else launch_block(m.name, scatter_rows_kernel<T, uint32_t, puts>, shape, Walk<uint32_t, 3>(m.walk), m);
}

constexpr DTypeSet kAll{0xfff};

}  // namespace

void run_scatter_rows(const ElementMoves& m, DType dtype) {
  visit_device<kAll>(dtype, [&]<class T>() { launch_rows<T, compute_of<T>, false>(m); });
}

void run_put_rows(const ElementMoves& m, int64_t item) {
  visit_item(item, [&]<class T>(T) { launch_rows<T, T, true>(m); });
}

void run_put_lines(const ElementMoves& m, int64_t item) {
  visit_item(item, [&]<class T>(T) {
    const LaunchShape shape = linear_shape(uint64_t(m.total), 256, m.stream);
    if (m.wide) launch_independent(m.name, put_lines_kernel<T, uint64_t>, shape, Walk<uint64_t, 3>(m.walk), m);
    else launch_independent(m.name, put_lines_kernel<T, uint32_t>, shape, Walk<uint32_t, 3>(m.walk), m);
  });
}

}  // namespace vesta::cuda
