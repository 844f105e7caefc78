// Fourier transforms on the device by cuFFT: plans, and a cache of them for each device.
#pragma once
#include <array>
#include <compare>

#include <vesta/core/tensor.h>
#include <vesta/cuda/lib/cufft_abi.h>

namespace vesta::cuda::cufft {

/// The most dimensions that a signal may have.
inline constexpr int kMaxRank = 3;

/// The plans that a device keeps at first. A plan may hold tables on the device; that of PyTorch, 4096, is much memory.
inline constexpr int64_t kDefaultPlanLimit = 1024;

/// What one side of a transform is made of, and where its elements are, in elements (see Functions).
struct Side {
  int type = 0;  // a DataType
  std::array<int64_t, kMaxRank> embed{};
  int64_t stride = 1, dist = 1;
  auto operator<=>(const Side&) const = default;
};

/// Transforms of one shape: `batch` signals of `rank` dimensions; of real ones `sizes` counts the real elements.
struct Shape {
  int rank = 1;
  std::array<int64_t, kMaxRank> sizes{};
  int64_t batch = 1;
  Side in, out;
  auto operator<=>(const Shape&) const = default;
};

/// Throws Refused if cuFFT cannot be used.
void expect_library();

/// Queues transforms from `in` to `out`, memory of the device, on its current stream. Complex to real, `in` is
/// overwritten. Refused if cuFFT has no such plan.
void transform(const Shape& shape, bool is_forward, Device device, void* in, void* out);

/// The plans of a device: how many there are, how many are kept (the least used one goes), and an end to all of them.
int64_t plan_count(int device);
int64_t plan_limit(int device);
/// Error(runtime) for a negative number.
void set_plan_limit(int device, int64_t limit);
void clear_plans(int device);

}  // namespace vesta::cuda::cufft
