// The product of a CSR matrix and a dense one. A team of lanes has a row of the result, a lane a column; sums go in the
// order of the elements, as on the CPU (core/cpu/sparse.cpp). Four elements are loaded before one is added.
#include <vesta/cuda/kernels/sparse.h>

#include <vesta/cuda/kernels/rounded.cuh>
#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {
namespace {

constexpr int kAtOnce = 4;

template <class C>
VESTA_DEVICE C product(C a, C b) {
  if constexpr (std::is_integral_v<C>) {
    return C(uint64_t(a) * uint64_t(b));
  } else if constexpr (is_complex_type<C>) {
    return C(rounded::sub(rounded::mul(a.re, b.re), rounded::mul(a.im, b.im)),
             rounded::add(rounded::mul(a.re, b.im), rounded::mul(a.im, b.re)));
  } else {
    return rounded::mul(a, b);
  }
}
template <class C>
VESTA_DEVICE C total(C a, C b) {
  if constexpr (std::is_integral_v<C>) return C(uint64_t(a) + uint64_t(b));
  else if constexpr (is_complex_type<C>) return a + b;
  else return rounded::add(a, b);
}

template <class T, class Index>
VESTA_KERNEL void csr_product_kernel(CsrProduct l, unsigned width) {
  using C = compute_of<T>;
  const GroupTeam team(width);
  const int64_t row = int64_t(team.row);
  if (row >= l.rows) return;
  const Index *const ends = static_cast<const Index*>(l.ends), *const places = static_cast<const Index*>(l.places);
  const T *const values = static_cast<const T*>(l.values), *const dense = static_cast<const T*>(l.dense);
  int64_t begin = int64_t(ends[row]), end = int64_t(ends[row + 1]);
  if (begin < 0 || end < begin || end > l.count) {
    report(l.fault, FaultKind::condition, l.not_ends, end, l.count);
    begin = end = 0;
  }
  for (int64_t j = team.rank; j < l.columns; j += team.size) {
    C sum = C(0);
    VESTA_ROLLED
    for (int64_t e = begin; e < end; e += kAtOnce) {
      C factor[kAtOnce], other[kAtOnce];
      bool there[kAtOnce];
      VESTA_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        const int64_t at = e + k < end ? e + k : e;
        const int64_t place = int64_t(places[at]);
        const bool inside = place >= 0 && place < l.inner;
        if (!inside) report(l.fault, FaultKind::index, l.name, place, l.inner);
        there[k] = e + k < end && inside;
        factor[k] = convert<C>(values[at]), other[k] = convert<C>(dense[(inside ? place : 0) * l.columns + j]);
      }
      VESTA_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        const C next = total(sum, product(factor[k], other[k]));
        sum = there[k] ? next : sum;
      }
    }
    static_cast<T*>(l.out)[row * l.columns + j] = convert<T>(sum);
  }
}

}  // namespace

void run_csr_product(const CsrProduct& l) {
  unsigned width = 1;
  while (width < 32 && int64_t(width) < l.columns) width *= 2;
  visit_device<kNumbers>(l.dtype, [&]<class T>() {
    const auto run = [&]<class Index>(const Index*) {
      launch_independent("_csr_product", csr_product_kernel<T, Index>, team_shape(uint64_t(l.rows), width, l.stream), l,
                         width);
    };
    if (l.index == DType::int32) run(static_cast<const int32_t*>(nullptr));
    else run(static_cast<const int64_t*>(nullptr));
  });
}

}  // namespace vesta::cuda
