// tril and triu. A thread has 16 bytes of a row where rows consist of such packs, else an element; a pack of which
// nothing is kept is not read.
#include <vesta/cuda/kernels/triangle.h>

#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 256;

struct TriangleArgs {
  Divider packs, rows;  // of a row, of a matrix
  int64_t count;        // packs in all
  int64_t diagonal;
  bool lower;
};

template <class Pack, class T, int N>
VESTA_KERNEL void triangle_kernel(const T* from, T* to, TriangleArgs a) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= a.count) return;
  const int64_t row = a.packs.divide(i), column = (i - row * a.packs.divisor) * N;
  const int64_t cut = row - a.rows.divide(row) * a.rows.divisor + a.diagonal;  // of the row: the diagonal's column
  const int64_t first = a.lower ? column : column + N - 1;  // the element that is kept if any is
  Pack pack{};
  if (a.lower ? first <= cut : first >= cut) pack = *reinterpret_cast<const Pack*>(from + i * N);
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) {
    if (a.lower ? column + j > cut : column + j < cut) pack.v[j] = T{};
  }
  *reinterpret_cast<Pack*>(to + i * N) = pack;
}

struct alignas(16) Item16 {
  uint64_t low, high;
};

template <class T>
void run(const TriangleLaunch& l) {
  constexpr int N = 16 / int(sizeof(T));
  const auto queue = [&]<int n>() {
    const TriangleArgs a{Divider(l.columns / n), Divider(l.rows), l.all / n, l.diagonal, l.lower};
    launch_independent(l.name, triangle_kernel<Elements<T, n>, T, n>,
                       linear_shape(uint64_t(a.count), kThreads, l.stream), reinterpret_cast<const T*>(l.from),
                       reinterpret_cast<T*>(l.to), a);
  };
  const bool packed =
      l.columns % N == 0 && (reinterpret_cast<uintptr_t>(l.from) | reinterpret_cast<uintptr_t>(l.to)) % 16 == 0;
  if (packed) queue.template operator()<N>();
  else queue.template operator()<1>();
}

}  // namespace

void triangle(const TriangleLaunch& l) {
  switch (l.item) {
    case 1: return run<uint8_t>(l);
    case 2: return run<uint16_t>(l);
    case 4: return run<uint32_t>(l);
    case 8: return run<uint64_t>(l);
    default: return run<Item16>(l);
  }
}

}  // namespace vesta::cuda
