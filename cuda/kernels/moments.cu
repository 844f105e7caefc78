// Means and squares around them: a team for each row, which is read once if it can be kept.
#include <vesta/cuda/kernels/moments.h>
#include <vesta/cuda/kernels/norm_sums.cuh>

namespace vesta::cuda {
namespace {

template <class T>
struct MomentsArgs {
  using C = compute_of<T>;
  const T* x;
  C* mean;  // null: of pieces, in double
  double* piece_mean;
  C* squares;
  int64_t rows, n, pieces, piece;
  unsigned width;
};

// The deviations from a first mean are small numbers, whose own mean corrects the first: a large mean costs no digits.
template <class T, class Row, class Team>
VESTA_KERNEL void moments_kernel(MomentsArgs<T> a) {
  using C = compute_of<T>;
  const Team team(a.width);
  const bool exists = int64_t(team.row) < a.rows;
  const int64_t row = a.pieces > 1 ? int64_t(team.row) / a.pieces : int64_t(team.row);
  const int64_t begin = (int64_t(team.row) - row * a.pieces) * a.piece;
  const int64_t count = a.n - begin < a.piece ? a.n - begin : a.piece;
  const int64_t at = exists ? row * a.n + begin : 0, n = exists ? count : 0;
  Row held(team, a.x + at, n, C(0), exists);
  const C mean = row_mean(held, team, a.x + at, n, count);
  const Pair<C> s = row_deviations(held, team, a.x + at, n, mean);
  if (!exists || team.rank != 0) return;
  const C rest = s.a / C(count);
  const bool corrects = math::isfinite(mean);  // beside an infinity the rest is NaN
  if (a.mean) a.mean[team.row] = corrects ? mean + rest : mean;
  else a.piece_mean[team.row] = corrects ? double(mean) + double(rest) : double(mean);
  const C less = s.a * rest;  // beyond the range of the type the squares are infinite, and not NaN
  a.squares[team.row] = math::isfinite(less) || less != less ? math::maximum(s.b - less, C(0)) : s.b;
}

/// Joins the moments of pieces: a team has a row (Chan, Golub and LeVeque, "Algorithms for computing the sample
/// variance", 1983).
template <class C>
VESTA_KERNEL void join_moments_kernel(const double* means, const C* squares, C* mean, C* square, JoinedMoments l,
                                      int64_t pieces, unsigned width) {
  const GroupOrBlock team(width);
  const bool exists = int64_t(team.row) < l.rows;
  const int64_t first = exists ? int64_t(team.row) * pieces : 0, n = exists ? pieces : 0;
  const auto count = [&](int64_t i) { return double(i + 1 < pieces ? l.piece : l.n - i * l.piece); };
  const auto plus = [](double a, double b) { return a + b; };
  double sum = 0, around = 0;
  for (int64_t i = team.rank; i < n; i += team.size) sum += count(i) * means[first + i];
  const double center = team.reduce(sum, plus) / double(l.n);
  for (int64_t i = team.rank; i < n; i += team.size) {
    const double d = math::isfinite(center) ? means[first + i] - center : 0;  // else the squares tell
    around += double(squares[first + i]) + count(i) * d * d;
  }
  around = team.reduce(around, plus);
  if (!exists || team.rank != 0) return;
  mean[team.row] = C(center), square[team.row] = C(around);
}

}  // namespace

void join_moments(const JoinedMoments& l) {
  const int64_t pieces = (l.n + l.piece - 1) / l.piece;
  const unsigned width = team_width(pieces, 1);
  const auto run = [&]<class C>(C) {
    launch_block("var", join_moments_kernel<C>, team_shape(uint64_t(l.rows), width, l.stream), l.piece_mean,
                 reinterpret_cast<const C*>(l.piece_squares), reinterpret_cast<C*>(l.mean),
                 reinterpret_cast<C*>(l.squares), l, pieces, width);
  };
  if (l.dtype == DType::float64) run(double());
  else run(float());
}

void moments(const MomentsLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    using C = compute_of<T>;
    const int64_t piece = l.piece > 0 ? l.piece : l.n, pieces = l.piece > 0 ? (l.n + piece - 1) / piece : 1;
    with_rows<T>(uint64_t(l.rows * pieces), piece, l.packed, l.stream,
                 [&]<class Row, class Team>(const LaunchShape& shape, unsigned width) {
                   const MomentsArgs<T> a{reinterpret_cast<const T*>(l.x),
                                          reinterpret_cast<C*>(l.mean),
                                          l.piece_mean,
                                          reinterpret_cast<C*>(l.squares),
                                          l.rows * pieces,
                                          l.n,
                                          pieces,
                                          piece,
                                          width};
                   launch_block(l.name, moments_kernel<T, Row, Team>, shape, a);
                 });
  });
}

}  // namespace vesta::cuda
