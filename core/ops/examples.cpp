#include <vesta/core/ops/examples.h>

#include <utility>

namespace vesta {
namespace {

thread_local std::vector<std::vector<Example>> levels;

/// A range of elements in a storage: [begin, end).
struct Range {
  int64_t begin, end;
  Range(IntSpan size, IntSpan stride, int64_t offset) : begin(offset), end(offset + 1) {
    for (size_t d = 0; d < size.size(); ++d) {
      if (size[d] == 0) end = begin;
      if (end > begin) end += (size[d] - 1) * stride[d];
    }
  }
  explicit Range(const Tensor& t) : Range(t.sizes(), t.strides(), t.storage_offset()) {}
  bool holds(const Range& o) const { return begin <= o.begin && o.end <= end; }
};

/// Finds the examples of the innermost level that hold a tensor: returns the shift of the first one, none without one.
/// `several`: whether another one differs.
MaybeInt shift_of(const Tensor& t, bool& several) {
  several = false;
  const Range range(t);
  for (size_t l = levels.size(); l-- > 0;) {
    const Example* first = nullptr;
    for (const Example& e : levels[l]) {
      if (e.view.impl()->storage() != t.impl()->storage() || e.view.dtype() != t.dtype()) continue;
      if (!Range(e.view).holds(range)) continue;
      if (!first) first = &e;
      else several = several || e.shift != first->shift;
    }
    if (first) return first->shift;
  }
  return {};
}

}  // namespace

void enter_examples(std::vector<Example> examples) { levels.push_back(std::move(examples)); }
void leave_examples() noexcept {
  if (!levels.empty()) levels.pop_back();
}

int64_t shift_of_example(const Tensor& t) {
  bool several = false;
  return levels.empty() ? 0 : shift_of(t, several).value_or(0);
}

int64_t offset_in_memory(const Tensor& t, IntSpan size, IntSpan stride, MaybeInt given, const char* op) {
  const int64_t own = t.storage_offset();
  if (levels.empty()) return given.value_or(own);
  bool several = false;
  const MaybeInt found = shift_of(t, several);
  if (!found) return given.value_or(own);
  VESTA_CHECK(!several || !given, runtime, op,
              ": expected examples with memory of their own, got two arguments of vmap over one ",
              "memory, in which an offset has two meanings (storage_offset). Clone one of them.");
  const int64_t shift = *found, offset = given ? *given + shift : own;
  VESTA_CHECK(Range(t).holds(Range(size, stride, offset)), runtime, op, ": expected a view within the example, whose ",
              "elements are [", own - shift, ", ", Range(t).end - shift, "), got sizes ", size, ", strides ", stride,
              " and offset ", offset - shift, ", which can access memory outside of it.");
  return offset;
}

}  // namespace vesta
