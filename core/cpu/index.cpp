// Drivers of indexing. A tour: every op that moves whole slices (x[i, j], index_put_, index_select, index_add_,
// embedding) becomes a Grid: a list of positions in one tensor, and the dimensions moved whole. gather and scatter_add_
// have a position per element and walk a plan instead, unless all slices have the same positions.
//
// Writes to equal positions always happen in the order of the indices: work is divided only over what cannot collide.
#include <vesta/core/cpu/index.h>

#include <bit>
#include <cstring>

#include <vesta/core/cpu/convert.h>
#include <vesta/core/cpu/copy.h>
#include <vesta/core/cpu/non_temporal.h>
#include <vesta/core/cpu/isa.h>
#include <vesta/core/cpu/mask.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/tensor_memory.h>
#include <vesta/core/cpu/walker.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/promotion.h>
#include <vesta/core/ops/strided_iter.h>

VESTA_DECLARE_ON_ISA(void join_rows(const vesta::cpu::JoinedRows& j))
VESTA_DECLARE_ON_ISA(void register_index(vesta::cpu::IndexKernels& kernels))

namespace vesta::cpu {
namespace {

IndexKernels index_kernels;

[[noreturn]] void out_of_bounds(int64_t index, int64_t dim, int64_t size) {
  fail(Cause::index, "index ", index, " is out of bounds for dimension ", dim, " with size ", size);
}

/// Makes offset[i] index[i] * stride for all i, or adds that to it. An index outside of the dimension raises.
void set_offsets(bool add, int64_t* offset, const int64_t* index, int64_t n, int64_t stride, int64_t size, int64_t dim,
                 bool wraps) {
  parallel_for(n, kElementGrain, [&](int64_t begin, int64_t end) {
    uint64_t bad = 0;
    for (int64_t i = begin; i < end; ++i) {
      int64_t k = index[i] + (wraps && index[i] < 0 ? size : 0);
      bad |= uint64_t(k) >= uint64_t(size);
      const auto from = uint64_t(k) * uint64_t(stride);
      offset[i] = int64_t(add ? uint64_t(offset[i]) + from : from);
    }
    if (!bad) return;
    for (int64_t i = begin; i < end; ++i) {
      int64_t k = index[i] + (wraps && index[i] < 0 ? size : 0);
      if (uint64_t(k) >= uint64_t(size)) out_of_bounds(index[i], dim, size);
    }
  });
}

/// A set of moves between `self` at places[j] and `other` at j * other_step, both plus an offset per grid element.
class Grid {
 public:
  Grid(const Tensor& self, const Tensor& other) : self_(self), other_(other) {}

  /// Sets the positions from a checked advanced index. `other` has the result's shape.
  void set_places(const IndexPlan& plan) {
    places_ = empty_places(plan.indices[0].numel());
    for (size_t k = 0; k < plan.dims.size(); ++k) {
      size_t d = size_t(plan.dims[k]);
      set_offsets(k > 0, places(), elements<int64_t>(plan.indices[k]), count(), self_.strides()[d] * item(),
                  self_.sizes()[d], plan.dims[k], true);
    }
    size_t next = 0;
    int64_t to = 0;
    for (int64_t d = 0; d < self_.dim(); ++d) {
      if (next < plan.dims.size() && plan.dims[next] == d) {
        ++next;
        continue;
      }
      int64_t at = to < plan.place ? to : to + int64_t(plan.index_sizes.size());
      add_dim(self_.sizes()[size_t(d)], self_.strides()[size_t(d)], other_.strides()[size_t(at)]);
      ++to;
    }
    for (size_t k = plan.index_sizes.size(); k-- > 0;) {  // `other` is regular over the indices' dimensions
      if (plan.index_sizes[k] == 1) continue;
      step_ = other_.strides()[size_t(plan.place) + k] * item();
      break;
    }
  }
  /// Sets the positions from a vector of indices into one dimension, none negative. `other` has self's shape but for
  /// that dimension.
  void set_places(int64_t dim, const Tensor& index) {
    places_ = empty_places(index.numel());
    bool scalar = self_.dim() == 0;
    set_offsets(false, places(), elements<int64_t>(index), count(),
                scalar ? item() : self_.strides()[size_t(dim)] * item(), scalar ? 1 : self_.sizes()[size_t(dim)], dim,
                false);
    for (int64_t d = 0; d < self_.dim(); ++d) {
      if (d != dim) add_dim(self_.sizes()[size_t(d)], self_.strides()[size_t(d)], other_.strides()[size_t(d)]);
    }
    if (other_.dim() > dim) step_ = other_.strides()[size_t(dim)] * item();
  }
  /// Sets the positions to rows of a matrix. `other` is contiguous: [..., columns].
  void set_rows(const Tensor& index) {
    places_ = empty_places(index.numel());
    set_offsets(false, places(), elements<int64_t>(index), count(), self_.strides()[0] * item(), self_.sizes()[0], 0,
                false);
    add_dim(self_.sizes()[1], self_.strides()[1], 1);
    step_ = self_.sizes()[1] * item();
  }

  void gather() { run(false, 0, false); }
  void put() { run(true, 0, false); }
  void add(double alpha) { run(true, alpha, true); }

 private:
  static Tensor empty_places(int64_t n) { return empty_tensor({{n}}, DType::int64); }
  int64_t* places() const { return reinterpret_cast<int64_t*>(places_.impl()->data()); }
  int64_t count() const { return places_.numel(); }
  int64_t item() const { return itemsize(self_.dtype()); }
  void add_dim(int64_t size, int64_t self_stride, int64_t other_stride) {
    sizes_.push_back(size);
    self_strides_.push_back(self_stride * item());
    other_strides_.push_back(other_stride * item());
  }
  void merge();
  void run(bool write, double alpha, bool add);
  bool run_by_parts(double alpha, bool add) const;
  void rows(int64_t begin, int64_t end, bool write, double alpha, bool add) const;
  void outer_offsets(int64_t o, int64_t& self, int64_t& other) const;
  void rows_at(char* self, const int64_t* places, char* other, int64_t count, int64_t n, bool write, double alpha,
               bool add, const int64_t* order = nullptr) const;

  const Tensor &self_, &other_;
  Tensor places_;
  int64_t step_ = 0;
  Dims sizes_, self_strides_, other_strides_;  // outermost first; after merge() the row is taken out
  int64_t row_ = 1, self_row_ = 0, other_row_ = 0;
  int64_t outer_ = 1;
};

/// Merges dimensions that are contiguous with each other in both tensors, and makes the innermost one the row where
/// rows are denser than positions.
void Grid::merge() {
  Dims s, a, b;
  for (size_t d = 0; d < sizes_.size(); ++d) {
    if (sizes_[d] == 1) continue;
    if (!s.empty() && a.back() == self_strides_[d] * sizes_[d] && b.back() == other_strides_[d] * sizes_[d]) {
      s.back() *= sizes_[d];
      a.back() = self_strides_[d], b.back() = other_strides_[d];
    } else {
      s.push_back(sizes_[d]);
      a.push_back(self_strides_[d]);
      b.push_back(other_strides_[d]);
    }
  }
  if (!s.empty() && (count() == 1 || b.back() <= step_ || step_ == 0) && a.back() <= 4 * item()) {
    row_ = s.back(), self_row_ = a.back(), other_row_ = b.back();
    s.pop_back();
    a.pop_back();
    b.pop_back();
  }
  sizes_ = s, self_strides_ = a, other_strides_ = b;
  outer_ = 1;
  for (int64_t n : sizes_) outer_ *= n;
}

void Grid::outer_offsets(int64_t o, int64_t& self, int64_t& other) const {
  self = other = 0;
  for (size_t d = sizes_.size(); d-- > 0;) {
    self += o % sizes_[d] * self_strides_[d];
    other += o % sizes_[d] * other_strides_[d];
    o /= sizes_[d];
  }
}

/// Processes a row of n elements at each of `count` positions, or at those whose numbers `order` has.
void Grid::rows_at(char* self, const int64_t* places, char* other, int64_t count, int64_t n, bool write, double alpha,
                   bool add, const int64_t* order) const {
  const DType d = self_.dtype();
  if (self_row_ == item() && other_row_ == item()) {
    RowsAtPlaces at{self, places, other, step_, count, n, alpha, order};
    if (add) return index_kernels.add_rows[int(d)](at);
    at.n *= item();
    return (write ? index_kernels.put_rows : index_kernels.take_rows)(at);
  }
  const Convert same = convert(d, d);
  for (int64_t k = 0; k < count; ++k) {
    const int64_t number = order != nullptr ? order[k] : k;
    char *const to = self + places[number], *const from = other + number * step_;
    if (add) index_kernels.add_row[int(d)]({to, self_row_, from, other_row_, n, alpha});
    else if (write) same(from, other_row_, to, self_row_, n);
    else same(to, self_row_, from, other_row_, n);
  }
}

/// Processes pieces [begin, end) of the (outer element, position) pairs of a gather: no two write the same element.
void Grid::rows(int64_t begin, int64_t end, bool write, double alpha, bool add) const {
  char *self = self_.impl()->data(), *other = other_.impl()->data();
  int size = std::countr_zero(uint64_t(item()));
  while (begin < end) {
    int64_t o = begin / count(), j = begin % count(), n = std::min(end - begin, count() - j), a, b;
    outer_offsets(o, a, b);
    if (row_ == 1) {
      AtPlaces at{self + a, places() + j, other + b + j * step_, step_, n, alpha};
      if (add) index_kernels.add_at[int(self_.dtype())](at);
      else (write ? index_kernels.put : index_kernels.take)[size](at);
    } else {
      rows_at(self + a, places() + j, other + b + j * step_, n, row_, write, alpha, add);
    }
    begin += n;
  }
}

/// Writes rows, each thread those whose positions lie in some part of the memory: it is likely to have just filled or
/// copied that part, and lines that another core has changed are slow to come (benchmarks/compare_torch.py --only
/// scatter_add: 0.39 ms by columns). Positions of a part keep their order. Returns whether it did: not for short rows,
/// to which the order of positions costs more than it gives, nor where one part has most of the positions.
bool Grid::run_by_parts(double alpha, bool add) const {
  constexpr int64_t kLeastRow = 256, kPartsOfThread = 4;
  const int64_t threads = num_threads(), parts = kPartsOfThread * threads, n = count();
  if (threads == 1 || outer_ != 1 || row_ < kLeastRow || n * row_ <= kElementGrain || n < 8 * parts) return false;
  const auto [low, high] = std::minmax_element(places(), places() + n);
  const int64_t first = *low;
  const int shift = std::bit_width(uint64_t(*high - first) / uint64_t(parts));  // of a part: a power of two
  std::vector<int64_t> next(size_t(parts + 1)), order(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) ++next[size_t(((places()[k] - first) >> shift) + 1)];
  if (*std::ranges::max_element(next) > n / threads) return false;
  for (int64_t part = 1; part <= parts; ++part) next[size_t(part)] += next[size_t(part - 1)];
  const std::vector<int64_t> begin = next;
  for (int64_t k = 0; k < n; ++k) order[size_t(next[size_t((places()[k] - first) >> shift)]++)] = k;
  char *const self = self_.impl()->data(), *const other = other_.impl()->data();
  parallel_for(parts, 1, [&](int64_t b, int64_t e) {
    const int64_t at = begin[size_t(b)];
    rows_at(self, places(), other, begin[size_t(e)] - at, row_, true, alpha, add, order.data() + at);
  });
  return true;
}

void Grid::run(bool write, double alpha, bool add) {
  for (int64_t n : sizes_) {
    if (n == 0) return;
  }
  if (count() == 0) return;
  merge();
  if (!write) {
    parallel_for(outer_ * count(), std::max<int64_t>(1, kElementGrain / row_),
                 [&](int64_t begin, int64_t end) { rows(begin, end, false, 0, false); });
    return;
  }
  if (run_by_parts(alpha, add)) return;
  // Positions may be equal: an outer element, and a piece of the rows, belong to one thread for all positions.
  int64_t total = outer_ * count() * row_;
  int64_t pieces = total > kElementGrain ? std::clamp<int64_t>(row_ / 64, 1, 16) : 1;
  int64_t width = (row_ + pieces - 1) / pieces;
  int64_t grain = std::max<int64_t>(1, kElementGrain / (count() * width));
  parallel_for(outer_ * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (pieces == 1) {
        rows(i * count(), (i + 1) * count(), true, alpha, add);
        continue;
      }
      int64_t first = i % pieces * width, n = std::min(width, row_ - first), a, b;
      if (n <= 0) continue;
      outer_offsets(i / pieces, a, b);
      char* self = self_.impl()->data() + a + first * self_row_;
      char* other = other_.impl()->data() + b + first * other_row_;
      rows_at(self, places(), other, count(), n, true, alpha, add);
    }
  });
}

Tensor _index(const Tensor& input, TensorList indices) {
  if (indices.size() == 1 && indices[0].defined() && is_mask_of(indices[0], input)) {
    return elements_of_mask(input, indices[0]);
  }
  IndexPlan plan = index_plan(input, indices, "index");
  Tensor r = empty_tensor(plan.result_sizes, input.dtype());
  Grid g(input, r);
  g.set_places(plan);
  g.gather();
  return r;
}

Tensor index_put_(const Tensor& self, TensorList indices, const Tensor& values, bool accumulate) {
  check_defined(values, "index_put_", "values");
  IndexPlan plan = index_plan(self, indices, "index_put_");
  Tensor other = check_put_values(self, plan, values);
  check_writable(self, "index_put_");
  if (overlap(self, values) != Overlap::none || !steps_regularly(other, plan)) {
    Tensor copy = empty_tensor(other.sizes(), other.dtype());
    copy_values(copy, other);
    other = copy;
  }
  Grid g(self, other);
  g.set_places(plan);
  if (accumulate) g.add(1);
  else g.put();
  self.impl()->bump("index_put_");
  return self;
}

Tensor index_select(const Tensor& input, int64_t dim, const Tensor& index) {
  int64_t d = check_index_vector(input, dim, index, "index_select");
  Tensor places = index_as_int64(index, "index_select", "index");
  Dims sizes(input.sizes());
  if (input.dim()) sizes[size_t(d)] = index.numel();
  Tensor r = result_tensor(sizes, input.dtype());
  Grid g(input, r);
  g.set_places(d, places);
  g.gather();
  return r;
}

Tensor index_add_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, double alpha) {
  int64_t d = check_index_vector(self, dim, index, "index_add_");
  check_index_add(self, d, index, source, alpha);
  Tensor places = index_as_int64(index, "index_add_", "index");
  check_writable(self, "index_add_");
  Tensor other = source;
  if (overlap(self, source) != Overlap::none) {
    other = empty_tensor(source.sizes(), source.dtype());
    copy_values(other, source);
  }
  Grid g(self, other);
  g.set_places(d, places);
  g.add(alpha);
  self.impl()->bump("index_add_");
  return self;
}

Tensor index_fill_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  const FillPlan plan = fill_plan(self, dim, index, value);
  Grid g(plan.self, plan.value);
  g.set_places(plan.places);
  g.put();
  self.impl()->bump("index_fill_");
  return self;
}

Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t, bool, bool) {
  Tensor places = check_embedding(weight, indices);
  Dims sizes(indices.sizes());
  sizes.push_back(weight.sizes()[1]);
  Tensor r = empty_tensor(sizes, weight.dtype());
  Grid g(weight, r);
  g.set_rows(places);
  g.gather();
  return r;
}

/// Writes rows of `count` zeros with a 1 at the class of each, a block of rows at a time: while it lies in the first
/// cache, be it the result's memory or, of a non_temporal result, a buffer (benchmarks/compare_torch.py --only
/// one_hot).
void write_classes(const int64_t* classes, int64_t rows, int64_t count, int64_t* to, bool non_temporal) {
  constexpr int64_t kBlock = 2048;  // elements
  alignas(64) int64_t buffer[kBlock];
  const int64_t most = std::max<int64_t>(1, kBlock / count);
  non_temporal = non_temporal && count <= kBlock;
  if (non_temporal) std::memset(buffer, 0, sizeof buffer);
  for (int64_t row = 0; row < rows; row += most, to += most * count) {
    const int64_t n = std::min(most, rows - row);
    int64_t* const block = non_temporal ? buffer : to;
    const auto write = [&](int64_t value) {
      for (int64_t i = 0; i < n; ++i) block[i * count + classes[row + i]] = value;
    };
    if (!non_temporal) std::memset(block, 0, size_t(n * count) * sizeof(int64_t));
    write(1);
    if (!non_temporal) continue;
    write_non_temporal(reinterpret_cast<char*>(to), reinterpret_cast<const char*>(buffer),
                       n * count * int64_t(sizeof(int64_t)));
    write(0);
  }
  if (non_temporal) finish_non_temporal();
}

Tensor one_hot(const Tensor& input, int64_t num_classes) {
  const int64_t count = check_one_hot(input, num_classes);
  Dims sizes(input.sizes());
  sizes.push_back(count);
  Tensor r = empty_tensor(sizes, DType::int64);
  if (r.numel() == 0) return r;
  const Tensor places = contiguous_values(input);
  const int64_t* const classes = elements<int64_t>(places);
  int64_t* const to = elements<int64_t>(r);
  const bool non_temporal = bypasses_caches(r.numel() * r.element_size());
  parallel_for(places.numel(), std::max<int64_t>(1, kElementGrain / count), [&](int64_t begin, int64_t end) {
    write_classes(classes + begin, end - begin, count, to + begin * count, non_temporal);
  });
  return r;
}

/// Makes a tensor over t's memory with another geometry, for plans only.
Tensor geometry(const Tensor& t, IntSpan sizes, IntSpan strides) {
  return Tensor(TensorImpl::make(t.impl()->storage(), sizes, strides, t.storage_offset(), t.dtype(), "gather"));
}

/// Returns t's strides, at least one, with that of dimension `dim` replaced by 0.
Dims strides_without(const Tensor& t, int64_t dim) {
  Dims s(t.strides());
  if (s.empty()) s.push_back(0);
  s[size_t(dim)] = 0;
  return s;
}

/// Raises unless every index lies in [0, size); a RuntimeError, as PyTorch's gather and scatter raise.
void check_range(const Tensor& index, int64_t size, int64_t dim, const char* op) {
  const int64_t* p = elements<int64_t>(index);
  parallel_for(index.numel(), kElementGrain, [&](int64_t begin, int64_t end) {
    uint64_t bad = 0;
    for (int64_t i = begin; i < end; ++i) bad |= uint64_t(p[i]) >= uint64_t(size);
    for (int64_t i = begin; bad && i < end; ++i) {
      VESTA_CHECK(uint64_t(p[i]) < uint64_t(size), runtime, op, ": index ", p[i], " is out of bounds for dimension ",
                  dim, " with size ", size, ".");
    }
  });
}

/// Returns the indices along dimension d as a vector if they are the same at every other position, as those of
/// index.view(-1, 1).expand_as(x): then whole slices move. Otherwise an undefined tensor.
Tensor common_index(const Tensor& index, int64_t d) {
  if (index.dim() < 2 || index.numel() == 0) return {};
  int64_t others = 1;
  for (int64_t i = 0; i < index.dim(); ++i) {
    if (i == d || index.sizes()[size_t(i)] == 1) continue;
    if (index.strides()[size_t(i)] != 0) return {};
    others *= index.sizes()[size_t(i)];
  }
  if (others == 1) return {};
  return geometry(index, {{index.sizes()[size_t(d)]}}, {{index.strides()[size_t(d)]}});
}

/// Returns t cut to `sizes`, but whole along dimension d.
Tensor cut_to(const Tensor& t, IntSpan sizes, int64_t d, int64_t size) {
  Dims s(sizes);
  s[size_t(d)] = size;
  return geometry(t, s, t.strides());
}

Tensor gather(const Tensor& input, int64_t dim, const Tensor& index, bool) {
  int64_t d = check_gather(input, dim, index);
  if (const Tensor line = common_index(index, d); line.defined()) {
    const Tensor places = index_as_int64(line, "gather", "index"),
                 source = cut_to(input, index.sizes(), d, input.sizes()[size_t(d)]);
    check_range(places, input.sizes()[size_t(d)], d, "gather");
    Tensor r = result_tensor(index.sizes(), input.dtype());
    Grid g(source, r);
    g.set_places(d, places);
    g.gather();
    return r;
  }
  Tensor places = index.numel() ? index_as_int64(index, "gather", "index") : index;  // an empty one may have any dtype
  int64_t item = itemsize(input.dtype()), stride = input.dim() ? input.strides()[size_t(d)] * item : 0;
  if (index.numel()) check_range(places, input.dim() ? input.sizes()[size_t(d)] : 1, d, "gather");
  Tensor r = result_tensor(index.sizes(), input.dtype());
  if (r.numel() == 0) return r;
  Dims strides = strides_without(input, d);
  if (index.dim() == 0) strides.clear();
  Tensor source = geometry(input, index.sizes(), strides);
  PlanBuilder builder(index.sizes(), {});
  builder.set_out(r);
  builder.add_input(places);
  builder.add_input(source);
  const PointwisePlan& p = builder.finish();
  auto take = [&]<class T>(T) {
    parallel_for(p.numel, kElementGrain, [&](int64_t begin, int64_t end) {
      Walker w(p, begin);
      int64_t so = row_stride(p, p.out), si = row_stride(p, p.in[0]), ss = row_stride(p, p.in[1]);
      while (begin < end) {
        int64_t n = std::min(end - begin, w.left_in_row());
        char* to = p.out.data + w.offset[0];
        const char *at = p.in[0].data + w.offset[1], *from = p.in[1].data + w.offset[2];
        for (int64_t i = 0; i < n; ++i) {
          std::memcpy(to + i * so, from + i * ss + *reinterpret_cast<const int64_t*>(at + i * si) * stride, sizeof(T));
        }
        w.step(n);
        begin += n;
      }
    });
  };
  switch (item) {
    case 1: take(uint8_t()); break;
    case 2: take(uint16_t()); break;
    case 4: take(uint32_t()); break;
    case 8: take(uint64_t()); break;
    default: take(complex128()); break;
  }
  return r;
}

/// The writes of a scatter, after its checks. The elements of one line along the indexed dimension belong to one thread
/// and are written in the order of the indices, so that writes to equal positions have a fixed order.
class Scatter {
 public:
  Scatter(const char* op, const Tensor& self, int64_t d, const Tensor& index, const Tensor& src) : self_(self) {
    const int64_t size = self.dim() ? self.sizes()[size_t(d)] : 1;
    const Tensor line = common_index(index, d);
    slices_ = line.defined();
    places_ = slices_ ? line : index;
    if (index.numel()) {  // an empty one: of any dtype
      places_ = index_as_int64(places_, op, "index");
      check_range(places_, size, d, op);
    }
    check_writable(self, op);
    other_ = src;
    if (overlap(self, src) != Overlap::none) {
      other_ = empty_tensor(src.sizes(), src.dtype());
      copy_values(other_, src);
    }
    sizes_ = Dims(index.sizes());
    dim_ = d;
  }

  /// Calls write(AtPlaces) until all elements are written.
  template <class Write>
  void run(Write write) const {
    if (places_.numel() == 0) return;
    const Tensor all = slices_ ? geometry(places_, sizes_, common_strides()) : places_;
    Dims sizes = sizes_;
    if (sizes.empty()) sizes.push_back(1);
    const auto step = [&](const Tensor& t) { return t.dim() ? t.strides()[size_t(dim_)] * t.element_size() : 0; };
    const int64_t n = sizes[size_t(dim_)], to_step = step(self_), at_step = step(all), from_step = step(other_);
    sizes[size_t(dim_)] = 1;
    const Tensor lines[] = {geometry(self_, sizes, strides_without(self_, dim_)),
                            geometry(all, sizes, strides_without(all, dim_)),
                            geometry(other_, sizes, strides_without(other_, dim_))};
    PlanBuilder builder(sizes, {});
    builder.set_out(lines[0]);
    builder.add_input(lines[1]);
    builder.add_input(lines[2]);
    const PointwisePlan& p = builder.finish();
    const int64_t to_row = row_stride(p, p.out), at_row = row_stride(p, p.in[0]), from_row = row_stride(p, p.in[1]);
    // Neighbouring lines are written together where that is the order of memory.
    const bool together = p.ndim > 0 && p.sizes[0] >= 8 && std::abs(from_row) < std::abs(from_step);
    const int64_t grain = std::max<int64_t>(together ? 64 : 1, kElementGrain / n);
    parallel_for(p.numel, grain, [&](int64_t begin, int64_t end) {
      int64_t offset[kBatch];
      Walker w(p, begin);
      while (begin < end) {
        char* const to = p.out.data + w.offset[0];
        const char* const at = p.in[0].data + w.offset[1];
        char* const from = const_cast<char*>(p.in[1].data + w.offset[2]);
        const auto index = [](const char* place) { return *reinterpret_cast<const int64_t*>(place); };
        const int64_t count = together ? std::min({end - begin, w.left_in_row(), kBatch}) : 1;
        if (together) {
          for (int64_t i = 0; i < n; ++i) {
            const char* const row = at + i * at_step;
            for (int64_t l = 0; l < count; ++l) offset[l] = l * to_row + index(row + l * at_row) * to_step;
            write(AtPlaces{to, offset, from + i * from_step, from_row, count});
          }
        } else {
          for (int64_t i = 0; i < n; i += kBatch) {
            const int64_t some = std::min(kBatch, n - i);
            for (int64_t l = 0; l < some; ++l) offset[l] = index(at + (i + l) * at_step) * to_step;
            write(AtPlaces{to, offset, from + i * from_step, from_step, some});
          }
        }
        w.step(count);
        begin += count;
      }
    });
  }

  /// Writes whole slices if the indices are the same in all of them: puts, or adds. Returns whether it did.
  bool run_slices(bool add) const {
    if (!slices_) return false;
    const Tensor to = cut_to(self_, sizes_, dim_, self_.sizes()[size_t(dim_)]);
    const Tensor from = cut_to(other_, sizes_, dim_, sizes_[size_t(dim_)]);
    Grid g(to, from);
    g.set_places(dim_, places_);
    if (add) g.add(1);
    else g.put();
    return true;
  }

 private:
  static constexpr int64_t kBatch = 256;

  Dims common_strides() const {
    Dims s(sizes_);
    std::fill(s.begin(), s.end(), 0);
    s[size_t(dim_)] = 1;
    return s;
  }

  const Tensor& self_;
  Tensor places_, other_;  // slices_: a vector
  Dims sizes_;
  int64_t dim_ = 0;
  bool slices_ = false;
};

Tensor scatter_add_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  const int64_t d = check_scatter(self, dim, index, src);
  const Scatter scatter("scatter_add_", self, d, index, src);
  if (index.numel() == 0) return self;
  if (!scatter.run_slices(true)) scatter.run(index_kernels.add_at[int(self.dtype())]);
  self.impl()->bump("scatter_add_");
  return self;
}

Tensor scatter_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  const ScatterPlan plan = scatter_plan(self, dim, index, src, "scatter_");
  const Scatter scatter("scatter_", self, plan.dim, index, plan.src);
  if (index.numel() == 0) return self;
  const int size = std::countr_zero(uint64_t(itemsize(self.dtype())));
  if (!scatter.run_slices(false)) scatter.run(index_kernels.put[size]);
  self.impl()->bump("scatter_");
  return self;
}

/// Combines two elements: a product, or the larger or smaller one; NaN wins.
template <class T>
T combined(T a, T b, ScatterOp op) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return T(combined<float>(float(a), float(b), op));
  } else if constexpr (std::is_same_v<T, bool>) {
    return op == ScatterOp::larger ? a || b : a && b;
  } else {
    if (op == ScatterOp::product) {
      if constexpr (std::is_integral_v<T>) return T(uint64_t(a) * uint64_t(b));
      else return T(a * b);
    }
    if (a != a) return a;
    return b != b || (op == ScatterOp::larger ? b > a : b < a) ? b : a;
  }
}

Tensor _scatter_combine_(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, Text reduce) {
  const ScatterPlan plan = scatter_plan(self, dim, index, src, "scatter_reduce");
  const ScatterOp op = scatter_op(reduce);
  const Scatter scatter("scatter_reduce", self, plan.dim, index, plan.src);
  if (index.numel() == 0) return self;
  visit<kReals | kBool>(self.dtype(), [&]<class T>() {
    scatter.run([op](const AtPlaces& at) {
      for (int64_t i = 0; i < at.n; ++i) {
        T& a = *reinterpret_cast<T*>(at.base + at.offset[i]);
        a = combined(a, *reinterpret_cast<const T*>(at.run + i * at.run_stride), op);
      }
    });
  });
  self.impl()->bump("scatter_reduce");
  return self;
}

// ---- cat: rows of the result are written whole, each concatenated from a piece of every tensor, in one pass ----

constexpr int64_t kJoinGrain = 1 << 17;  // bytes a thread takes at a time (benchmarks/compare_torch.py, cat)

/// Describes the pieces that t gives to the rows of a cat along dimension `dim`: what lies inside of it is dense, and
/// all dimensions outside of it are one. Returns whether t lies so.
bool describe_piece(const Tensor& t, int64_t dim, RowPiece& piece) {
  int64_t dense = 1;
  for (int64_t d = t.dim(); d-- > dim;) {
    if (t.sizes()[size_t(d)] != 1 && t.strides()[size_t(d)] != dense) return false;
    dense *= t.sizes()[size_t(d)];
  }
  int64_t step = 0, next = -1;  // of the outer dimensions together, and what the next one continues with
  for (int64_t d = dim; d-- > 0;) {
    const int64_t size = t.sizes()[size_t(d)], stride = t.strides()[size_t(d)];
    if (size == 1) continue;
    if (next < 0) step = stride;
    else if (stride != next) return false;
    next = stride * size;
  }
  const int64_t item = t.element_size();
  piece = {t.impl()->data(), step * item, dense * item};
  return true;
}

Tensor cat_kernel_in_rows(TensorList tensors, int64_t dim) {
  const CatPlan plan = cat_plan(tensors, dim);
  Tensor r = image_result(plan.sizes, plan.channels_last, plan.dtype);
  int64_t rows = 1;
  for (int64_t d = 0; d < plan.dim; ++d) rows *= plan.sizes[size_t(d)];
  SmallVector<RowPiece, 8> pieces;
  bool in_rows = rows > 1 && r.is_contiguous();
  for (size_t k = 0; in_rows && k < plan.used.size(); ++k) {
    const Tensor& t = tensors[size_t(plan.used[k])];
    pieces.push_back({});
    in_rows = t.dtype() == plan.dtype && describe_piece(t, plan.dim, pieces[k]);
  }
  if (!in_rows || r.numel() == 0) {
    copy_parts(r, plan, tensors);
    return r;
  }
  const int64_t row = r.numel() / rows * r.element_size();
  char* const to = r.impl()->data();
  const bool non_temporal = bypasses_caches(rows * row);
  parallel_for(rows, std::max<int64_t>(1, kJoinGrain / row), [&](int64_t begin, int64_t end) {
    SmallVector<RowPiece, 8> own(pieces);
    for (RowPiece& piece : own) piece.from += begin * piece.step;
    VESTA_ON_AVX2_AT_MOST(join_rows, {own.data(), int64_t(own.size()), end - begin, to + begin * row, non_temporal});
  });
  return r;
}

}  // namespace

void register_index() {
  VESTA_ON_AVX2_AT_MOST(register_index, index_kernels);
  ops::_index.set_kernel(DeviceType::cpu, &_index);
  ops::index_put_.set_kernel(DeviceType::cpu, &index_put_);
  ops::index_select.set_kernel(DeviceType::cpu, &index_select);
  ops::index_add_.set_kernel(DeviceType::cpu, &index_add_);
  ops::index_fill_.set_kernel(DeviceType::cpu, &index_fill_);
  ops::embedding.set_kernel(DeviceType::cpu, &embedding);
  ops::one_hot.set_kernel(DeviceType::cpu, &one_hot);
  ops::cat.set_kernel(DeviceType::cpu, &cat_kernel_in_rows);
  ops::gather.set_kernel(DeviceType::cpu, &gather);
  ops::scatter_add_.set_kernel(DeviceType::cpu, &scatter_add_);
  ops::scatter_.set_kernel(DeviceType::cpu, &scatter_);
  ops::_scatter_combine_.set_kernel(DeviceType::cpu, &_scatter_combine_);
}

}  // namespace vesta::cpu
