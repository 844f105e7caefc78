// Reductions of segments: pieces of a dimension, one after another.
#include <cmath>
#include <limits>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/scan.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/sort.h>
#include <vesta/core/ops/view.h>

namespace vesta {
namespace {

constexpr const char* kOp = "segment_reduce";

enum class Reduction : uint8_t { sum, mean, largest, smallest, product };

Reduction reduction_of(Text reduce) {
  if (reduce == "sum") return Reduction::sum;
  if (reduce == "mean") return Reduction::mean;
  if (reduce == "max" || reduce == "amax") return Reduction::largest;
  if (reduce == "min" || reduce == "amin") return Reduction::smallest;
  VESTA_CHECK(reduce == "prod", runtime, kOp, ": reduce argument must be either sum, prod, mean, max or min, got '",
              reduce, "'.");
  return Reduction::product;
}

/// Checks lengths or offsets, whose last dimension goes along `axis`, and returns them as int64.
Tensor marks_of(const Tensor& data, const Tensor& marks, int64_t axis, const char* name) {
  VESTA_CHECK(marks.dtype() == DType::int64 || marks.dtype() == DType::int32, type, kOp, ": expected ", name,
              " of dtype int64 or int32, got ", marks.dtype(), ".");
  VESTA_CHECK(axis == marks.dim() - 1, runtime, kOp, ": Expected axis to be the last dimension of ", name, " but got ",
              axis, " for ", name, " ", marks.sizes(), ".");
  for (int64_t d = 0; d < axis; ++d) {
    VESTA_CHECK(marks.size(d) == data.size(d), runtime, kOp, ": expected ", name, " to have data's sizes before axis ",
                axis, ", got ", name, " ", marks.sizes(), " and data ", data.sizes(), ".");
  }
  return marks.to(DType::int64);
}

Tensor offsets_from(const Tensor& data, const Tensor& lengths, int64_t axis, bool checks) {
  const Tensor steps = marks_of(data, lengths, axis, "lengths");
  if (checks) {  // reads values: waits for a device
    VESTA_CHECK(all(ge(steps, 0)).item<bool>(), runtime, kOp, ": lengths contains negative value!");
    const int64_t n = data.size(axis);  // each is at most that: a sum may wrap
    VESTA_CHECK(all(le(steps, n)).item<bool>() && all(eq(sum(steps, -1), n)).item<bool>(), runtime, kOp,
                ": Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1), ", n,
                ", when !unsafe.");
  }
  Dims first(steps.sizes());
  first.back() = 1;
  return cat({zeros(first, DType::int64, steps.device()), cumsum(steps, -1)}, -1);
}

Tensor checked_offsets(const Tensor& data, const Tensor& offsets, int64_t axis, bool checks) {
  Tensor o = marks_of(data, offsets, axis, "offsets");
  const int64_t n = o.size(-1);
  VESTA_CHECK(n > 0, runtime, kOp, ": expected offsets of at least one element along axis ", axis, ".");
  if (checks && o.numel() > 0) {  // reads values: waits for a device
    const Tensor inside = logical_and(ge(o, 0), le(o, data.size(axis)));
    const Tensor rises = ge(slice(o, -1, 1, n, 1), slice(o, -1, 0, n - 1, 1));
    VESTA_CHECK(all(inside).item<bool>() && all(rises).item<bool>(), runtime, kOp, ": expected offsets that do not ",
                "fall, from 0 to data.size(axis), ", data.size(axis), ", when !unsafe.");
  }
  return o;
}

/// Data as rows, a row for each element along the axis of each batch, and where each row goes: to its batch's segments,
/// with a place before them and one after them for rows that are in none.
struct Segments {
  Tensor rows, places;
  int64_t batches, count;
  Dims shape;  // of a tensor with all places
  Segments(const Tensor& data, const Tensor& offsets, int64_t axis);
  Tensor filled(Scalar value) const { return full(IntSpan(shape), value, rows.dtype(), rows.device()); }
};

Segments::Segments(const Tensor& data, const Tensor& offsets, int64_t axis) : batches(1), count(offsets.size(-1) - 1) {
  const int64_t n = data.size(axis);
  for (int64_t d = 0; d < axis; ++d) batches *= data.size(d);
  const Tensor lines = contiguous(reshape(offsets, {batches, count + 1}));
  const Tensor order = contiguous(expand(arange(0, n, 1, DType::int64, data.device()), {batches, n}));
  const Tensor first = mul(arange(0, batches, 1, DType::int64, data.device()), count + 2);
  places = reshape(add(_searchsorted(lines, order, true), unsqueeze(first, 1)), -1);
  shape = Dims{batches * (count + 2)};
  Dims of_rows{batches * n};
  for (int64_t d = axis + 1; d < data.dim(); ++d) shape.push_back(data.size(d)), of_rows.push_back(data.size(d));
  rows = reshape(data, of_rows);
}

/// Reduces each segment to one row; what is in no segment is reduced as well, beside them.
Tensor reduced(const Segments& s, Reduction how, const MaybeScalar& initial) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (how == Reduction::sum || how == Reduction::mean) {
    return index_add(s.filled(initial.value_or(Scalar(0.0))), 0, s.places, s.rows);
  }
  if (how == Reduction::product) {
    return index_reduce(s.filled(initial.value_or(Scalar(1.0))), 0, s.places, s.rows, "prod", true);
  }
  const bool largest = how == Reduction::largest;
  const Tensor none = s.filled(largest ? -inf : inf);
  Tensor r = index_reduce(none, 0, s.places, s.rows, largest ? "amax" : "amin", false);
  if (!initial) return r;
  const Tensor start = s.filled(*initial);  // takes no part of the gradient where it equals an element
  return where(logical_or(isnan(r), largest ? ge(r, start) : le(r, start)), r, start);
}

}  // namespace

Tensor segment_reduce_composite(const Tensor& data, Text reduce, MaybeTensor lengths, MaybeTensor indices,
                                MaybeTensor offsets, int64_t axis, bool unsafe, MaybeScalar initial) {
  const Reduction how = reduction_of(reduce);
  VESTA_CHECK(is_float(data.dtype()), type, kOp, ": expected data of a floating-point dtype, got ", data.dtype(), ".");
  VESTA_CHECK(!initial || !initial->is_complex(), type, kOp, ": expected a real number (initial).");
  const int64_t d = wrap_dim(axis, data.dim(), kOp);
  VESTA_CHECK(lengths.defined() || offsets.defined() || !indices.defined(), runtime, kOp,
              ": indices based reduction is not supported yet. Give lengths or offsets.");
  VESTA_CHECK(lengths.defined() || offsets.defined(), runtime, kOp, ": Either lengths or offsets must be defined.");
  const Tensor& marks = offsets.defined() ? *offsets : *lengths;
  VESTA_CHECK(data.dim() > 0, runtime, kOp, ": expected data of at least one dimension.");
  VESTA_CHECK(marks.device() == data.device(), device, kOp, ": expected data and segments on one device, got ",
              data.device(), " and ", marks.device(), ".");
  const bool checks = !unsafe && has_values(data);
  const Tensor bounds =
      offsets.defined() ? checked_offsets(data, marks, d, checks) : offsets_from(data, marks, d, checks);
  const bool small = itemsize(data.dtype()) == 2;  // computed in float32
  const Segments segments(small ? data.to(DType::float32) : data, bounds, d);
  Dims shape{segments.batches, segments.count + 2}, result(data.sizes());
  for (int64_t k = d + 1; k < data.dim(); ++k) shape.push_back(data.size(k));
  result[size_t(d)] = segments.count;
  Tensor r = reshape(narrow(reshape(reduced(segments, how, initial), shape), 1, 1, segments.count), result);
  if (how == Reduction::mean) {
    Dims ones(size_t(data.dim()), 1);
    for (int64_t k = 0; k <= d; ++k) ones[size_t(k)] = result[size_t(k)];
    const Tensor count = reshape(diff(bounds, 1, -1), ones), empty = eq(count, 0);
    const Tensor mean = div(r, where(empty, wrapped(int64_t(1)), count).to(r.dtype()));
    r = initial ? mean : where(empty, wrapped(std::nan("")), mean);
  }
  return small ? r.to(data.dtype()) : r;
}

}  // namespace vesta
