// Subscripts: x[3], x[1:3, ..., None], x[mask], x[:, idx] written in C++. Python's x[...] is built on them.
#pragma once
#include <cstddef>
#include <span>

#include <vesta/core/tensor.h>

namespace vesta {

/// A `start:stop:step`; an omitted bound means the end on its side.
struct Slice {
  MaybeInt start, stop;
  int64_t step = 1;
  Slice() = default;
  Slice(MaybeInt start_, MaybeInt stop_ = {}, int64_t step_ = 1) : start(start_), stop(stop_), step(step_) {}
};
struct NewAxis {};
struct EllipsisIndex {};
/// The index that inserts a dimension of size 1 (Python's None).
inline constexpr NewAxis newaxis;
/// The index that represents as many full slices as are missing (Python's `...`).
inline constexpr EllipsisIndex ellipsis;

/// One subscript.
struct Index {
  enum class Kind : uint8_t { newaxis, ellipsis, integer, boolean, slice, tensor };
  Kind kind;
  int64_t integer = 0;  // of `integer`, and 0 or 1 of `boolean`
  Slice slice;
  Tensor tensor;        // of integers, or a mask

  Index(NewAxis) : kind(Kind::newaxis) {}
  Index(std::nullopt_t) : kind(Kind::newaxis) {}  // Python's None
  Index(EllipsisIndex) : kind(Kind::ellipsis) {}
  Index(std::integral auto i) : kind(std::is_same_v<decltype(i), bool> ? Kind::boolean : Kind::integer), integer(i) {}
  Index(const Slice& s) : kind(Kind::slice), slice(s) {}
  /// Takes "...", the ellipsis.
  Index(const char* text) : kind(Kind::ellipsis) {
    VESTA_CHECK(std::string_view(text) == "...", value, "index: expected \"...\", got \"", text, "\".");
  }
  Index(const Tensor& t) : kind(Kind::tensor), tensor(t) {}
};

/// Returns t[at...]: a view where only integers, slices, None and `...` are used, else a copy. IndexError if an index
/// is out of range. The dimensions of index tensors replace the indexed ones, or come first if those are not adjacent.
VESTA_API Tensor get_index(const Tensor& t, std::span<const Index> at);
/// Writes `value` to t[at...]; it must broadcast. All indices are checked before anything is written; a value that
/// shares t's memory is copied first. A wrapped() number takes t's dtype.
VESTA_API void set_index(const Tensor& t, std::span<const Index> at, const Tensor& value);

}  // namespace vesta
