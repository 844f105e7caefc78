// Means and squares around them: a team for each row, which is read once if it can be kept.
#include <vesta/cuda/kernels/moments.h>
#include <vesta/cuda/kernels/norm_sums.cuh>

namespace vesta::cuda {
namespace {

template <class T>
struct MomentsArgs {
  using C = compute_of<T>;
  const T* x;
  C *mean, *squares;
  int64_t rows, n;
  unsigned width;
};

// The deviations from a first mean are small numbers, whose own mean corrects the first: a large mean costs no digits.
template <class T, class Row, class Team>
VESTA_KERNEL void moments_kernel(MomentsArgs<T> a) {
  using C = compute_of<T>;
  const Team team(a.width);
  const bool exists = int64_t(team.row) < a.rows;
  const int64_t at = exists ? int64_t(team.row) * a.n : 0, n = exists ? a.n : 0;
  Row held(team, a.x + at, n, C(0), exists);
  const C mean = row_mean(held, team, a.x + at, n, a.n);
  const Pair<C> s = row_deviations(held, team, a.x + at, n, mean);
  if (!exists || team.rank != 0) return;
  const C rest = s.a / C(a.n);
  a.mean[team.row] = math::isfinite(mean) ? mean + rest : mean;  // beside an infinity the rest is NaN
  const C less = s.a * rest;  // beyond the range of the type the squares are infinite, and not NaN
  a.squares[team.row] = math::isfinite(less) || less != less ? math::maximum(s.b - less, C(0)) : s.b;
}

}  // namespace

void moments(const MomentsLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    using C = compute_of<T>;
    with_rows<T>(uint64_t(l.rows), l.n, l.packed, l.stream,
                 [&]<class Row, class Team>(const LaunchShape& shape, unsigned width) {
                   const MomentsArgs<T> a{reinterpret_cast<const T*>(l.x),
                                          reinterpret_cast<C*>(l.mean),
                                          reinterpret_cast<C*>(l.squares),
                                          l.rows,
                                          l.n,
                                          width};
                   launch_block(l.name, moments_kernel<T, Row, Team>, shape, a);
                 });
  });
}

}  // namespace vesta::cuda
