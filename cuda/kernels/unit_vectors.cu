// Vectors divided by their lengths (normalize, cosine_similarity). A team of threads has a vector, and reads it twice.
#include <vesta/cuda/kernels/unit_vectors.h>

#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {
namespace {

struct Plus {
  template <class C>
  VESTA_DEVICE C operator()(C a, C b) const {
    return a + b;
  }
};

template <class T, bool gradient>
VESTA_KERNEL void unit_vectors_kernel(UnitVectors l, int64_t vectors, unsigned width) {
  using C = compute_of<T>;
  const GroupOrBlock team(width);
  const bool exists = int64_t(team.row) < vectors;
  const int64_t number = exists ? int64_t(team.row) : 0, n = exists ? l.length : 0, step = l.inner;
  const int64_t first = number / l.inner * l.length * l.inner + number % l.inner;
  const T* const x = static_cast<const T*>(l.x) + first;
  const T* const g = gradient ? static_cast<const T*>(l.grad) + first : x;
  T* const out = static_cast<T*>(l.out) + first;
  C* const size = static_cast<C*>(l.size) + number;
  C sum = 0;
  for (int64_t i = team.rank; i < n; i += team.size) {
    sum = sum + convert<C>(x[i * step]) * convert<C>(g[i * step]);
  }
  sum = team.reduce(sum, Plus());
  const C eps = C(l.eps), length = gradient ? *size : math::sqrt(sum);
  const C raised = length < eps ? eps : length;  // NaN stays
  if constexpr (gradient) {
    const bool counts = l.raises_value ? length > C(0) : length > eps;
    const C part = counts ? sum / raised / length : C(0);
    for (int64_t i = team.rank; i < n; i += team.size) {
      out[i * step] = convert<T>((convert<C>(g[i * step]) - part * convert<C>(x[i * step])) / raised);
    }
  } else {
    if (exists && team.rank == 0) *size = length;
    for (int64_t i = team.rank; i < n; i += team.size) out[i * step] = convert<T>(convert<C>(x[i * step]) / raised);
  }
}

template <bool gradient>
void run(const char* name, const UnitVectors& l) {
  const int64_t vectors = l.outer * l.inner;
  // Beside each other, many vectors have a thread each: neighbours read neighbours.
  const bool beside = l.inner > 1 && (l.length <= 32 || vectors >= 4096);
  const unsigned width = beside ? 1 : team_width(l.length, 1);
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    launch_block(name, unit_vectors_kernel<T, gradient>, team_shape(uint64_t(vectors), width, l.stream), l, vectors,
                 width);
  });
}

}  // namespace

void run_unit_vectors(const UnitVectors& l) { run<false>("_unit_vectors", l); }
void run_unit_vectors_gradient(const UnitVectors& l) { run<true>("_unit_vectors_backward", l); }

}  // namespace vesta::cuda
