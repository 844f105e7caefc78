// The argument types of ops: lists that accept braces, optional lists, tensor lists, and the destination of an op.
#pragma once
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include <vesta/core/base/small_vector.h>

namespace vesta {

class Tensor;

/// Views a list of integers: accepts `{2, 3}`, one number, Dims, a vector or a span. Valid during the call only.
class IntList : public IntSpan {
 public:
  IntList() = default;
  IntList(IntSpan s) : IntSpan(s) {}
  IntList(const Dims& d) : IntSpan(d.data(), d.size()) {}
  IntList(const std::vector<int64_t>& v) : IntSpan(v) {}
  IntList(std::initializer_list<int64_t> l) : IntSpan(l.begin(), l.size()) {}
  IntList(const int64_t& one) : IntSpan(&one, 1) {}
};

/// Is a list of dimensions or none: `sum()` and `sum({0, 1})` and `sum(1)`. Keeps its own copy.
class MaybeDims {
 public:
  MaybeDims() = default;
  MaybeDims(std::nullopt_t) {}
  MaybeDims(int64_t one) : given_(true), dims_{one} {}
  MaybeDims(int one) : MaybeDims(int64_t(one)) {}
  MaybeDims(std::initializer_list<int64_t> l) : given_(true), dims_(l) {}
  MaybeDims(IntSpan s) : given_(true), dims_(s) {}
  MaybeDims(const Dims& d) : given_(true), dims_(d) {}
  explicit operator bool() const { return given_; }
  const Dims& operator*() const { return dims_; }

 private:
  bool given_ = false;
  Dims dims_;
};

/// Views tensors: accepts `{a, b}`, a vector or a span. Valid during the call only.
class TensorList : public std::span<const Tensor> {
 public:
  using Span = std::span<const Tensor>;
  TensorList() = default;
  TensorList(Span s) : Span(s) {}
  TensorList(const std::vector<Tensor>& v);
  TensorList(std::initializer_list<Tensor> l);
};

/// Is where an op writes: fresh memory, a tensor given as out=, or its own first operand.
struct Out {
  enum Kind : uint8_t { fresh, given, inplace };
  const Tensor* tensor = nullptr;
  Kind kind = fresh;
};

}  // namespace vesta
