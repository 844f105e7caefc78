// The interface between distances of points and their kernels.
#pragma once
#include <cstdint>

#include <vesta/core/cpu/isa.h>

namespace vesta::cpu {

/// The points that a kernel takes at a time.
inline constexpr std::int64_t kDistanceRows = 4;
/// The coordinates that a kernel of gradients takes at a time, at most.
inline constexpr std::int64_t kDistanceColumns = 256;

/// Some rows of a matrix of gradients: those of points x1 by their distances to `points` points x2.
struct DistanceGradient {
  const void* x1[kDistanceRows];  // a repeated point fills the place of one that is missing
  const void* grad[kDistanceRows];  // [points]
  const void* distances[kDistanceRows];  // [points]
  void* out[kDistanceRows];
  int rows;
  const void* x2;  // its rows are x2_step elements apart
  std::int64_t x2_step, points, columns;
  double p;
};

/// The kernels of one dtype for one norm.
struct DistanceKernels {
  std::int64_t lanes;  // points of a panel
  /// Computes the distances of 1 point of x1, or of kDistanceRows, to the points of a panel: coordinate m of point j
  /// stands at panel[m * lanes + j], and its distance to point k at out[k * lanes + j].
  void (*one)(const void* const* x1, const void* panel, std::int64_t columns, double p, void* out);
  void (*rows)(const void* const* x1, const void* panel, std::int64_t columns, double p, void* out);
  void (*gradient)(const DistanceGradient& g);  // null where it is 0: p = 0
};

/// The kernels of an instruction set.
struct DistanceTable {
  enum Norm { zero, one, two, infinity, other, count };
  DistanceKernels of_float[count], of_double[count];
};

}  // namespace vesta::cpu

VESTA_DECLARE_ON_ISA(void register_distance_kernels(vesta::cpu::DistanceTable& table))
