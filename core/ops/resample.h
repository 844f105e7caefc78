// Resampling along dimensions: padding, interpolation, patches of images.
#pragma once
#include <vector>

#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/resample.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_RESAMPLE)

/// A sparse matrix [size(), in], row by row: what each element of a result is made of. Most ways to change a size are
/// one such matrix per dimension.
class VESTA_API Rows {
 public:
  explicit Rows(int64_t in) : in_(in) {}
  /// Adds `weight` times element `place` of the input to the current row.
  void add(int64_t place, double weight);
  void end_row() { starts_.push_back(int64_t(places_.size())); }
  /// Writes a row: `weight` times each element of [first, last).
  void add_range(int64_t first, int64_t last, double weight);
  /// Writes a row that copies one element.
  void copy(int64_t place) { add_range(place, place + 1, 1); }

  int64_t size() const { return int64_t(starts_.size()) - 1; }
  int64_t in() const { return in_; }
  /// Returns whether every row copies one element.
  bool copies() const { return copies_ && int64_t(places_.size()) == size(); }
  IntSpan places() const { return places_; }
  Rows transposed() const;
  /// Returns size() + 1 offsets and the indices of elements, as an op takes them, and the weights.
  Tensor indices(Device device) const;
  Tensor weights(DType dtype, Device device) const;

 private:
  int64_t in_;
  bool copies_ = true;
  std::vector<int64_t> starts_{0}, places_;
  std::vector<double> weights_;
};

/// Returns a read-only copy of a CPU table on a device. Tables follow from sizes: a device that caches them copies
/// nothing from the host in later calls with the same sizes.
VESTA_API Tensor table_on(const Tensor& table, Device device);
/// A function that returns device memory with a copy of these host bytes, which it may cache until memory is short.
using KeepTable = StoragePtr (*)(const void* bytes, size_t nbytes, Device device);
/// Sets the function that caches the tables of a device type.
VESTA_API void set_table_keeper(DeviceType type, KeepTable keep);

/// Multiplies a dimension by such a matrix. Dtypes other than floats allow copies only.
VESTA_API Tensor resample(const Tensor& input, int64_t dim, const Rows& rows);

/// Multiplies dimension `dim` by one matrix and the next dimension by another in one pass over memory. Floats only;
/// those of 16 bits round once.
VESTA_API Tensor resample_planes(const Tensor& input, int64_t dim, const Rows& rows, const Rows& columns);

/// Returns whether a result of these sizes, of the dtype and on the device of `x`, has elements; raises if there is no
/// memory for it. Call it before making tables of indices, which are as long as the result.
VESTA_API bool has_elements(IntSpan sizes, const Tensor& x);
/// Returns a tensor of sizes without elements, as a result of `x`.
VESTA_API Tensor without_elements(const Tensor& x, IntSpan sizes);

/// Checks the operands of _resample; returns the wrapped dimension.
VESTA_API int64_t check_resample(const Tensor& input, int64_t dim, int64_t size, const Tensor& rows,
                                 const Tensor& weights);

/// Does the same for _resample_planes.
VESTA_API int64_t check_resample_planes(const Tensor& input, int64_t dim, IntList size, const Tensor& rows,
                                        const Tensor& weights, const Tensor& columns, const Tensor& column_weights);

}  // namespace vesta
