// The host's half of indexing: geometry becomes a walk (kernels/walk.h), index tensors become positions. Shapes and
// checks are core/ops/index.h's, the same as on the CPU.
//
// Note [Equal positions]
// Writes happen in the order of the indices, whatever the threads do: x[i] = v keeps the value of the last of equal
// positions, and sums add in order. So keys are sorted with the numbers of their slices (kernels/radix_sort.h), and the
// thread at a run of equal keys handles it whole. Sorting is left out if positions cannot be equal: a single one, or
// those of a mask; and if the program allows sums whose bits change (vesta/core/precision.h), which are added in any
// order.
#include <algorithm>
#include <bit>
#include <numeric>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/promotion.h>
#include <vesta/core/ops/strided_iter.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/precision.h>
#include <vesta/cuda/fault.h>
#include <vesta/cuda/kernels/index.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/ops/sort_keys.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

constexpr int64_t kNarrow = int64_t(1) << 31;  // element numbers below it use 32 bits on the device

/// One dimension of a walk, with the operands' strides in bytes.
struct Dimension {
  int64_t size = 1, strides[kWalkOperands] = {};
  bool marked = false;
};
using Dimensions = std::vector<Dimension>;  // outermost first

/// Merges dimensions that are contiguous with each other in every operand, leaves out those of size 1, and reverses
/// the order. A marked dimension stays as it is; its number is returned.
int merge(const Dimensions& from, WalkDims& to, const char* op) {
  Dimensions kept;
  for (const Dimension& d : from) {
    if (d.size == 1 && !d.marked) continue;
    bool joins = !kept.empty() && !kept.back().marked && !d.marked;
    for (int k = 0; k < kWalkOperands && joins; ++k) joins = kept.back().strides[k] == d.strides[k] * d.size;
    if (!joins) {
      kept.push_back(d);
      continue;
    }
    const int64_t size = kept.back().size * d.size;
    kept.back() = d;
    kept.back().size = size;
  }
  VESTA_CHECK(kept.size() <= size_t(kWalkDims), not_implemented, op, ": expected at most ", kWalkDims,
              " dimensions that cannot be merged on a CUDA device, got ", kept.size(), ". Call .contiguous() first.");
  int marked = -1;
  to.ndim = int(kept.size());
  for (int d = 0; d < to.ndim; ++d) {
    const Dimension& k = kept[size_t(to.ndim - 1 - d)];
    to.sizes[d] = k.size;
    for (int i = 0; i < kWalkOperands; ++i) to.strides[i][d] = k.strides[i];
    if (k.marked) marked = d;
  }
  return marked;
}

int64_t total_of(const WalkDims& w) {
  int64_t n = 1;
  for (int d = 0; d < w.ndim; ++d) n *= w.sizes[d];
  return n;
}

/// Returns whether additions to equal positions may come, and come, in any order.
bool adds_in_any_order(const Tensor& self) { return kAddedInPlace.has(self.dtype()) && may_be_nondeterministic(); }

/// Moves of slices between positions of `self` and a run of `other`.
class Slices {
 public:
  Slices(const char* name, const Tensor& self, const Tensor& other)
      : self_(self), other_(other), guard_(self.device().index()) {
    m_.name = m_.places.op = name;
    m_.stream = stream_of(self);
    m_.self = self.impl()->data(), m_.other = other.impl()->data();
    m_.places.fault = fault_of(self.device().index());
  }

  /// Sets the positions from a checked advanced index. `other` has the result's shape.
  void set_places(const IndexPlan& plan) {
    m_.count = plan.indices[0].numel();
    m_.places.wraps = true;
    for (size_t k = 0; k < plan.dims.size(); ++k) add_index(plan.indices[k], plan.dims[k]);
    int64_t step = 0;
    for (size_t k = plan.index_sizes.size(); k-- > 0;) {  // `other` is regular over the indices' dimensions
      if (plan.index_sizes[k] == 1) continue;
      step = other_.strides()[size_t(plan.place) + k];
      break;
    }
    size_t next = 0;
    int64_t to = 0;
    for (int64_t d = 0; d < self_.dim(); ++d) {
      if (next < plan.dims.size() && plan.dims[next] == d) {
        ++next;
        continue;
      }
      if (to == plan.place) mark(step);
      const int64_t at = to < plan.place ? to : to + int64_t(plan.index_sizes.size());
      add_dim(self_.sizes()[size_t(d)], self_.strides()[size_t(d)], other_.strides()[size_t(at)]);
      ++to;
    }
    if (to == plan.place) mark(step);
  }
  /// Sets the positions from a vector of indices into one dimension, none negative. `other` has self's shape but for
  /// that dimension.
  void set_places(int64_t dim, const Tensor& index) {
    m_.count = index.numel();
    add_index(index, dim);
    for (int64_t d = 0; d < self_.dim(); ++d) {
      if (d == dim) mark(other_.strides()[size_t(d)]);
      else add_dim(self_.sizes()[size_t(d)], self_.strides()[size_t(d)], other_.strides()[size_t(d)]);
    }
    if (self_.dim() == 0) mark(0);
  }
  /// Sets the positions to rows of a matrix. `other` is contiguous: [..., columns].
  void set_rows(const Tensor& index) {
    m_.count = index.numel();
    add_index(index, 0);
    mark(self_.sizes()[1]);
    add_dim(self_.sizes()[1], self_.strides()[1], 1);
  }

  void take() {
    if (!finish(false)) return;
    run_take(m_, widen());
  }
  void put(bool distinct) {
    if (!finish(true)) return;
    const Keys keys = sorted(distinct);
    run_put(m_, widen());
  }
  void add(double alpha, bool distinct) {
    if (!finish(true)) return;
    if (!distinct && adds_in_any_order(self_)) return run_add_in_any_order(m_, self_.dtype(), alpha);
    const Keys keys = sorted(distinct);
    const int64_t unit = added_together(item());
    run_add(m_, self_.dtype(), alpha, !m_.wide && widen_to(unit) ? unit : item());
  }

 private:
  int64_t item() const { return itemsize(self_.dtype()); }
  void add_dim(int64_t size, int64_t self_stride, int64_t other_stride) {
    dims_.push_back({size, {self_stride * item(), other_stride * item()}, false});
  }
  void mark(int64_t step) { dims_.push_back({m_.count, {0, step * item()}, true}); }
  void add_index(const Tensor& index, int64_t dim) {
    Places& p = m_.places;
    VESTA_CHECK(p.n < kWalkDims, not_implemented, m_.name, ": expected at most ", kWalkDims,
                " index tensors on a CUDA device.");
    const bool scalar = self_.dim() == 0;
    p.index[p.n] = static_cast<const int64_t*>(index.data_ptr());
    p.size[p.n] = scalar ? 1 : self_.sizes()[size_t(dim)];
    p.stride[p.n] = scalar ? item() : self_.strides()[size_t(dim)] * item();
    p.dim[p.n++] = int(dim);
  }
  /// Completes the walk; returns false if there is nothing to move.
  bool finish(bool writes) {
    m_.marked = merge(dims_, m_.walk, m_.name);
    m_.total = total_of(m_.walk);
    if (m_.total == 0) return false;
    m_.unit = place_step();
    m_.bad_key = 1;
    for (int k = 0; k < m_.places.n; ++k) {
      if (m_.places.size[k] <= 1) continue;
      m_.bad_key += uint64_t(m_.places.size[k] - 1) * uint64_t(m_.places.stride[k] / m_.unit);
    }
    m_.wide = m_.total >= kNarrow || (writes && m_.bad_key > UINT32_MAX);
    return true;
  }
  /// Returns the bytes that all positions are apart by some multiple of: those of a row where rows are indexed. So keys
  /// count rows, and have few bits to sort.
  int64_t place_step() const {
    int64_t step = 0;
    for (int k = 0; k < m_.places.n; ++k) {
      if (m_.places.size[k] > 1) step = std::gcd(step, m_.places.stride[k]);
    }
    return step > 0 ? step : item();
  }
  Keys sorted(bool distinct) {
    Keys keys(m_.count, std::bit_width(m_.bad_key), m_.wide, self_.device());
    run_keys(m_, keys.input());
    if (!distinct && m_.count > 1) keys.sort();
    m_.keys = keys.keys(), m_.order = keys.order();
    return keys;
  }
  /// Makes units of several elements where rows are dense and aligned; returns the bytes of a unit.
  int64_t widen() {
    for (int64_t wide = 16; wide > item(); wide /= 2) {
      if (widen_to(wide)) return wide;
    }
    return item();
  }
  /// Makes units of `wide` bytes if it can.
  bool widen_to(int64_t wide) {
    WalkDims& w = m_.walk;
    const int64_t one = item();
    if (w.ndim == 0 || m_.marked == 0 || w.strides[0][0] != one || w.strides[1][0] != one) return false;
    int64_t all = w.sizes[0] * one | int64_t(reinterpret_cast<uintptr_t>(m_.self)) |
                  int64_t(reinterpret_cast<uintptr_t>(m_.other));
    for (int d = 1; d < w.ndim; ++d) all |= w.strides[0][d] | w.strides[1][d];
    for (int k = 0; k < m_.places.n; ++k) all |= m_.places.stride[k];
    if (all % wide != 0) return false;
    w.sizes[0] = w.sizes[0] * one / wide;
    w.strides[0][0] = w.strides[1][0] = wide;
    m_.total = total_of(w);
    return true;
  }

  const Tensor &self_, &other_;
  DeviceGuard guard_;
  Dimensions dims_;
  Moves m_;
};

bool is_mask(const Tensor& t) { return t.dtype() == DType::bool_ || t.dtype() == DType::uint8; }

/// Copies indices that lie on the CPU to self's device, as PyTorch does. Error(device) for any other device.
TensorVector on_device_of(const Tensor& self, TensorList indices, const char* op) {
  TensorVector r;
  for (const Tensor& t : indices) {
    if (!t.defined() || t.device() == self.device()) {
      r.push_back(t);
      continue;
    }
    VESTA_CHECK(t.device().type() == DeviceType::cpu, device, op,
                ": expected indices on the CPU or on the indexed tensor's device ", self.device(), ", got ", t.device(),
                " (index ", r.size(), "). Move it with .to().");
    r.push_back(ops::_to_copy.kernel(t, {}, self.device(), false));
  }
  return r;
}

/// Returns whether the positions of these indices are all different, as those of a single mask are.
bool all_distinct(const TensorVector& indices) {
  int masks = 0, others = 0;
  for (const Tensor& t : indices) {
    if (t.defined()) ++(is_mask(t) ? masks : others);
  }
  return masks == 1 && others == 0;
}

Tensor contiguous_copy(const Tensor& t) {
  Tensor r = empty_tensor(t.sizes(), t.dtype(), t.device());
  copy_values(r, t);
  return r;
}

/// The true elements of a mask, counted: waits for the device, for they are the shape of a result.
struct TrueElements {
  explicit TrueElements(const Tensor& input) : mask(input) {
    if (input.dtype() != DType::bool_ || !input.is_contiguous()) {
      mask = empty_tensor(input.sizes(), DType::bool_, input.device());
      copy_values(mask, input);
    }
    launch.stream = stream_of(input);
    launch.mask = static_cast<const uint8_t*>(mask.data_ptr());
    launch.n = mask.numel(), launch.ndim = int(mask.dim());
    for (int d = 0; d < launch.ndim; ++d) launch.sizes[d] = mask.sizes()[size_t(d)];
    if (launch.n == 0) return;
    const int64_t tiles = nonzero_tiles(launch.n), groups = nonzero_groups(launch.n);
    counts = empty_tensor({{tiles + groups + 1}}, DType::int64, input.device());
    launch.counts = static_cast<uint64_t*>(counts.data_ptr()), launch.groups = launch.counts + tiles;
    run_nonzero_count(launch);
    launch.total = ops::select.kernel(counts, 0, tiles + groups).item<int64_t>();
  }
  Tensor mask, counts;
  NonzeroLaunch launch;
};

/// Returns whether the only index is a mask of all elements, as in x[x > 0].
bool selects_by_mask(const Tensor& input, const TensorVector& indices) {
  return indices.size() == 1 && indices[0].defined() && indices[0].dtype() == DType::bool_ && input.dim() > 0 &&
         std::ranges::equal(indices[0].sizes(), input.sizes()) && input.is_contiguous();
}

Tensor masked_take(const Tensor& input, const Tensor& mask) {
  DeviceGuard guard(input.device().index());
  const TrueElements found(mask);
  Tensor r = empty_tensor({{found.launch.total}}, input.dtype(), input.device());
  if (found.launch.total) run_masked_take(found.launch, input.data_ptr(), r.data_ptr(), input.element_size());
  return r;
}

Tensor _index(const Tensor& input, TensorList given) {
  const TensorVector indices = on_device_of(input, given, "index");
  if (selects_by_mask(input, indices)) return masked_take(input, indices[0]);
  IndexPlan plan = index_plan(input, indices, "index");
  Tensor r = empty_tensor(plan.result_sizes, input.dtype(), input.device());
  Slices s("index", input, r);
  s.set_places(plan);
  s.take();
  return r;
}

Tensor index_put_(const Tensor& self, TensorList given, const Tensor& values, bool accumulate) {
  check_defined(values, "index_put_", "values");
  const TensorVector indices = on_device_of(self, given, "index_put_");
  Tensor from = values;  // a number may lie on the CPU
  if (values.device() != self.device() && values.device().type() == DeviceType::cpu && values.dim() == 0) {
    from = ops::_to_copy.kernel(values, {}, self.device(), false);
  }
  VESTA_CHECK(from.device() == self.device(), device, "index_put_: expected all tensors on one device, got ",
              self.device(), " (argument 1) and ", from.device(), " (argument 3). Move one with .to().");
  IndexPlan plan = index_plan(self, indices, "index_put_");
  Tensor other = check_put_values(self, plan, from);
  check_writable(self, "index_put_");
  if (overlap(self, from) != Overlap::none || !steps_regularly(other, plan)) {
    other = contiguous_copy(other);
  }
  Slices s("index_put_", self, other);
  s.set_places(plan);
  if (accumulate) s.add(1, all_distinct(indices));
  else s.put(all_distinct(indices));
  self.impl()->bump("index_put_");
  return self;
}

Tensor index_select(const Tensor& input, int64_t dim, const Tensor& index) {
  int64_t d = check_index_vector(input, dim, index, "index_select");
  check_one_device("index_select", {&input, &index});
  Tensor places = index_as_int64(index, "index_select", "index");
  Dims sizes(input.sizes());
  if (input.dim()) sizes[size_t(d)] = index.numel();
  Tensor r = result_tensor(sizes, input.dtype(), input.device());
  Slices s("index_select", input, r);
  s.set_places(d, places);
  s.take();
  return r;
}

Tensor index_add_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, double alpha) {
  int64_t d = check_index_vector(self, dim, index, "index_add_");
  check_index_add(self, d, index, source, alpha);
  check_one_device("index_add_", {&self, &index, &source});
  Tensor places = index_as_int64(index, "index_add_", "index");
  check_writable(self, "index_add_");
  Tensor other = overlap(self, source) == Overlap::none ? source : contiguous_copy(source);
  Slices s("index_add_", self, other);
  s.set_places(d, places);
  s.add(alpha, false);
  self.impl()->bump("index_add_");
  return self;
}

Tensor index_fill_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  const FillPlan plan = fill_plan(self, dim, index, value);
  Slices s("index_fill_", plan.self, plan.value);
  s.set_places(plan.places);
  s.put(true);  // equal positions get equal values, in any order
  self.impl()->bump("index_fill_");
  return self;
}

Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  const Tensor places = check_embedding(weight, indices);
  check_one_device("embedding", {&weight, &indices});
  Dims sizes(indices.sizes());
  sizes.push_back(weight.sizes()[1]);
  Tensor r = empty_tensor(sizes, weight.dtype(), weight.device());
  Slices s("embedding", weight, r);
  s.set_rows(places);
  s.take();
  return r;
}

/// Returns the stride of dimension `d` in bytes; 0 for a 0-d tensor.
int64_t step_of(const Tensor& t, int64_t d) { return t.dim() ? t.strides()[size_t(d)] * t.element_size() : 0; }

/// Returns the walk of `sizes` over self (with stride 0 along `dim`), index and other.
WalkDims element_walk(const char* op, const Dims& sizes, int64_t dim, const Tensor& self, const Tensor& index,
                      const Tensor& other) {
  Dimensions dims;
  for (int64_t d = 0; d < int64_t(sizes.size()); ++d) {
    const int64_t self_step = d == dim ? 0 : step_of(self, d);
    dims.push_back({sizes[size_t(d)], {self_step, step_of(index, d), step_of(other, d)}, false});
  }
  WalkDims w;
  merge(dims, w, op);
  return w;
}

ElementMoves element_moves(const char* op, int64_t dim, const Tensor& self, const Tensor& index, const Tensor& other) {
  ElementMoves m;
  m.name = op;
  m.stream = stream_of(self);
  m.walk = element_walk(op, Dims(index.sizes()), dim, self, index, other);
  m.total = total_of(m.walk);
  m.self = self.impl()->data(), m.index = index.impl()->data(), m.other = other.impl()->data();
  m.size = self.dim() ? self.sizes()[size_t(dim)] : 1;
  m.stride = step_of(self, dim);
  m.dim = int(dim);
  m.fault = fault_of(self.device().index());
  m.wide = m.total >= kNarrow;
  return m;
}

Tensor gather(const Tensor& input, int64_t dim, const Tensor& index, bool) {
  int64_t d = check_gather(input, dim, index);
  check_one_device("gather", {&input, &index});
  Tensor places = index_as_int64(index, "gather", "index");
  Tensor r = result_tensor(index.sizes(), input.dtype(), input.device());
  if (r.numel() == 0) return r;
  DeviceGuard guard(input.device().index());
  run_gather(element_moves("gather", d, input, places, r), input.element_size());
  return r;
}

/// Makes the walk one over lines of the indexed dimension.
ElementMoves by_lines(ElementMoves m, int64_t dim, const Tensor& self, const Tensor& index, const Tensor& other) {
  Dims lines(index.sizes());
  m.length = index.dim() ? lines[size_t(dim)] : 1;
  if (index.dim()) lines[size_t(dim)] = 1;
  m.walk = element_walk(m.name, lines, dim, self, index, other);
  m.total = total_of(m.walk);
  m.index_step = step_of(index, dim), m.other_step = step_of(other, dim);
  return m;
}

/// Adds, or puts, by sorted keys, for long lines whose destinations may be equal. `src` is contiguous, of index's
/// shape.
void scatter_sorted(ElementMoves m, const Tensor& self, const Tensor& src, bool puts = false) {
  m.unit = self.element_size();
  m.bad_key = uint64_t(std::max<int64_t>(m.size - 1, 0)) * uint64_t(m.stride / m.unit) + 1;
  for (int d = 0; d < m.walk.ndim; ++d) {
    m.bad_key += uint64_t(m.walk.sizes[d] - 1) * uint64_t(m.walk.strides[0][d] / m.unit);
  }
  m.wide = m.wide || m.bad_key > UINT32_MAX;
  Keys keys(m.total, std::bit_width(m.bad_key), m.wide, self.device());
  run_scatter_keys(m, keys.input());
  keys.sort();
  Moves a;
  a.name = m.name, a.stream = m.stream, a.total = a.count = m.total, a.wide = m.wide;
  a.walk.ndim = 1, a.walk.sizes[0] = m.total, a.walk.strides[1][0] = m.unit;
  a.self = m.self, a.other = src.impl()->data();
  a.unit = m.unit, a.bad_key = m.bad_key;
  a.keys = keys.keys(), a.order = keys.order();
  if (puts) run_put(a, a.unit);
  else run_add(a, self.dtype(), 1, a.unit);
}

/// Returns whether a warp should take a whole line: it has elements, fits into shared memory, the lines are short or
/// many enough, and there is an index for every 4 elements, or for every 16 where these lie side by side: to read and
/// write 16 takes as many bytes as the sort of an index, some 130. Other lines are sorted.
bool scatters_rows(const ElementMoves& m, int64_t length, DType dtype) {
  const int64_t bytes = m.size * std::max<int64_t>(itemsize(dtype), 4);  // 16-bit floats are summed in float
  const int64_t lines = m.total / length, rest = m.stride == itemsize(dtype) ? 16 : 4;
  return bytes > 0 && bytes + 16 <= kScatterRoom && m.size <= rest * length && (length <= 1 << 14 || lines >= 64);
}

constexpr int64_t kShortLine = 32;  // indices that a thread adds one by one; longer lines are sorted

Tensor scatter_add_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  int64_t d = check_scatter(self, dim, index, src);
  check_one_device("scatter_add_", {&self, &index, &src});
  Tensor places = index_as_int64(index, "scatter_add_", "index");
  check_writable(self, "scatter_add_");
  if (index.numel() == 0) return self;
  DeviceGuard guard(self.device().index());
  Tensor other = alias(src, index.sizes(), src.strides(), src.storage_offset(), "scatter_add_");
  if (overlap(self, src) != Overlap::none) other = contiguous_copy(other);
  ElementMoves m = element_moves("scatter_add_", d, self, places, other);
  const int64_t length = index.dim() ? index.sizes()[size_t(d)] : 1;
  const bool short_lines = length == 1 || (length <= kShortLine && itemsize(self.dtype()) >= 4);  // else sums in float
  if (short_lines || scatters_rows(m, length, self.dtype())) {
    m = by_lines(m, d, self, places, other);
    if (short_lines) run_scatter_lines(m, self.dtype());
    else run_scatter_rows(m, self.dtype());
  } else if (adds_in_any_order(self)) {
    run_scatter_in_any_order(m, self.dtype());
  } else {
    scatter_sorted(m, self, other.is_contiguous() ? other : contiguous_copy(other));
  }
  self.impl()->bump("scatter_add_");
  return self;
}

Tensor scatter_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  const ScatterPlan plan = scatter_plan(self, dim, index, src, "scatter_");
  check_one_device("scatter_", {&self, &index, &plan.src});
  Tensor places = index_as_int64(index, "scatter_", "index");
  check_writable(self, "scatter_");
  if (index.numel() == 0) return self;
  DeviceGuard guard(self.device().index());
  Tensor other = alias(plan.src, index.sizes(), plan.src.strides(), plan.src.storage_offset(), "scatter_");
  if (overlap(self, plan.src) != Overlap::none) other = contiguous_copy(other);
  const ElementMoves m = element_moves("scatter_", plan.dim, self, places, other);
  const int64_t length = index.dim() ? index.sizes()[size_t(plan.dim)] : 1;
  if (length <= kShortLine) {
    run_put_lines(by_lines(m, plan.dim, self, places, other), self.element_size());
  } else if (scatters_rows(m, length, self.dtype())) {
    run_put_rows(by_lines(m, plan.dim, self, places, other), self.element_size());
  } else {
    other = contiguous_copy(other);
    scatter_sorted(element_moves("scatter_", plan.dim, self, places, other), self, other, true);
  }
  self.impl()->bump("scatter_");
  return self;
}

Tensor _scatter_combine_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, Text reduce) {
  constexpr const char* op = "scatter_reduce";
  const ScatterPlan plan = scatter_plan(self, dim, index, src, op);
  const ScatterOp how = scatter_op(reduce);
  check_one_device(op, {&self, &index, &src});
  Tensor places = index_as_int64(index, op, "index");
  check_writable(self, op);
  if (index.numel() == 0) return self;
  DeviceGuard guard(self.device().index());
  Tensor other = alias(src, index.sizes(), src.strides(), src.storage_offset(), op);
  if (overlap(self, src) != Overlap::none) other = contiguous_copy(other);
  ElementMoves m = element_moves(op, plan.dim, self, places, other);
  m = by_lines(m, plan.dim, self, places, other);
  run_combine_lines(m, self.dtype(), Combine(int(how)));
  self.impl()->bump(op);
  return self;
}

Tensor nonzero(const Tensor& input) {
  DeviceGuard guard(input.device().index());
  TrueElements found(input);
  NonzeroLaunch& l = found.launch;
  // The indices of one dimension lie together, as x[mask] needs them.
  Tensor columns = empty_tensor({{l.ndim, l.total}}, DType::int64, input.device());
  l.out = static_cast<int64_t*>(columns.data_ptr());
  if (l.total && l.ndim) run_nonzero_write(l);
  return alias(columns, {{l.total, l.ndim}}, {{1, std::max<int64_t>(l.total, 1)}}, 0, "nonzero");
}

}  // namespace

void register_index() {
  ops::_index.set_kernel(DeviceType::cuda, &_index);
  ops::index_put_.set_kernel(DeviceType::cuda, &index_put_);
  ops::index_select.set_kernel(DeviceType::cuda, &index_select);
  ops::index_add_.set_kernel(DeviceType::cuda, &index_add_);
  ops::index_fill_.set_kernel(DeviceType::cuda, &index_fill_);
  ops::embedding.set_kernel(DeviceType::cuda, &embedding);
  ops::gather.set_kernel(DeviceType::cuda, &gather);
  ops::scatter_add_.set_kernel(DeviceType::cuda, &scatter_add_);
  ops::scatter_.set_kernel(DeviceType::cuda, &scatter_);
  ops::_scatter_combine_.set_kernel(DeviceType::cuda, &_scatter_combine_);
  ops::nonzero.set_kernel(DeviceType::cuda, &nonzero);
}

}  // namespace vesta::cuda
