// The arguments of distances between points, of their gradient, and of cross products.
#pragma once
#include <vesta/core/dtype_set.h>

#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// The distances of points x1 [batches, n, columns] to x2 [batches, m, columns], all float or all double, contiguous.
struct DistanceLaunch {
  DType dtype = DType::float32;
  StreamHandle stream = nullptr;
  int64_t batches = 1, n = 0, m = 0, columns = 0;
  double p = 2;
  bool pairs = false;  // of every two of x1: x2 is x1, and distances are the upper triangle of [n, n], row by row
  const void *x1 = nullptr, *x2 = nullptr;
  void* out = nullptr;  // distances; of a gradient, that of x1
};

/// Numbers of a matrix [batches, n, m] in any strides, counted in elements; those of pairs are contiguous.
struct DistanceNumbers {
  const void* data = nullptr;
  int64_t batch = 0, row = 0, column = 1;
};

/// Queues the distances.
void run_distances(const DistanceLaunch& l);
/// Queues the gradient of x1 by that of the distances; p is not 0.
void run_distances_gradient(const DistanceLaunch& l, const DistanceNumbers& grad, const DistanceNumbers& distances);

/// Queues cross products of contiguous [vectors / inner, 3, inner].
void run_cross(DType dtype, const void* a, const void* b, void* out, int64_t vectors, int64_t inner,
               StreamHandle stream);

}  // namespace vesta::cuda
