// The formulas of costs. Where a number of operations depends on values (a sum that stops early, a sort), the formula
// says what the usual algorithm needs; where an op reads a part of an operand only, it counts that part.
#include <vesta/core/ops/cost.h>

#include <cmath>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <vesta/core/ops/optim_step.h>

namespace vesta {

using profiler::Shape;

const Shape* OperandSizes::operand(int parameter) const {
  for (const Shape& s : trace_.operands_of(event_)) {
    if (s.parameter == parameter) return &s;
  }
  return nullptr;
}

const Shape* OperandSizes::result(size_t i) const {
  const auto all = trace_.results_of(event_);
  return i < all.size() ? &all[i] : nullptr;
}

double OperandSizes::size(const Shape* s, int dim) const {
  if (!s) return 1;
  if (dim < 0) dim += s->ndim;
  return dim >= 0 && dim < s->ndim ? double(trace_.sizes_of(*s)[size_t(dim)]) : 1;
}

double OperandSizes::numel(const Shape* s) const {
  double n = s ? 1 : 0;
  for (int i = 0; s && i < s->ndim; ++i) n *= size(s, i);
  return n;
}

double OperandSizes::all_bytes() const {
  double n = 0;
  for (const Shape& s : trace_.operands_of(event_)) n += bytes(&s);
  for (const Shape& s : trace_.results_of(event_)) n += bytes(&s);
  return n;
}

double OperandSizes::result_bytes() const {
  double n = 0;
  for (const Shape& s : trace_.results_of(event_)) n += bytes(&s);
  return n;
}

double OperandSizes::result_numel() const {
  double n = 0;
  for (const Shape& s : trace_.results_of(event_)) n += numel(&s);
  return n;
}

namespace profiler {
namespace {

using Sizes = const OperandSizes&;
using Formula = Cost (*)(Sizes);

// ---- products ----

/// [..., n, k] times [..., k, m], or vectors: each element of the result is a sum of k products.
Cost matmul(Sizes s) { return {s.all_bytes(), 2 * s.numel(s.result()) * s.size(s.operand(0), -1)}; }
Cost linear(Sizes s) { return {s.all_bytes(), 2 * s.numel(s.result()) * s.size(s.operand(1), -1)}; }
Cost linear_backward_weight(Sizes s) {
  return {s.all_bytes(), 2 * s.numel(s.operand(0)) * s.size(s.operand(1), -1) + s.numel(s.operand(0))};
}
Cost linear_backward_activation(Sizes s) { return {s.all_bytes(), 2 * s.numel(s.result()) * s.size(s.operand(0), -1)}; }
Cost bilinear(Sizes s) {
  return {s.all_bytes(), 2 * s.numel(s.result()) * s.size(s.operand(2), 1) * s.size(s.operand(2), 2)};
}

/// Products per position of the side with out_channels channels: weight is [out, in / groups, ...].
double per_channel(Sizes s, const Shape* weight) { return s.numel(weight) / s.size(weight, 0); }
Cost convolution(Sizes s) { return {s.all_bytes(), 2 * s.numel(s.result()) * per_channel(s, s.operand(1))}; }
Cost convolution_backward_input(Sizes s) {
  return {s.all_bytes(), 2 * s.numel(s.operand(0)) * per_channel(s, s.operand(1))};
}
Cost convolution_backward_weight(Sizes s) {
  return {s.all_bytes(), 2 * s.numel(s.operand(0)) * per_channel(s, s.result())};
}

/// A gate of a recurrent cell is a row of a product, which are ops of their own: what is left is element-wise.
Cost distance(Sizes s) { return {s.all_bytes(), 3 * s.numel(s.result()) * s.size(s.operand(0), -1)}; }

/// query [N, H, L, E], key [N, G, S, E] and value [N, G, S, V], the first of which is parameter `first`: `scores`
/// products that run over E and `sums` that run over V, all of them for [L, S] weights of a head. As in PyTorch, what a
/// causal mask leaves out counts.
Cost attention(Sizes s, int first, double scores, double sums) {
  const Shape *query = s.operand(first), *key = s.operand(first + 1), *value = s.operand(first + 2);
  const double weights = s.numel(query) / std::max(1.0, s.size(query, -1)) * s.size(key, -2);
  return {s.all_bytes(), 2 * weights * (scores * s.size(query, -1) + sums * s.size(value, -1))};
}
Cost fused_attention(Sizes s) { return attention(s, 0, 1, 1); }
/// The scores once more, and a product for each of the gradients of query, key, value and weights.
Cost fused_attention_backward(Sizes s) { return attention(s, 1, 3, 2); }

/// A product with the state's weight per row (x is parameter `first`); backward has two.
Cost recurrence(Sizes s, int first, double products) {
  return {s.all_bytes(), products * 2 * s.numel(s.operand(first)) * s.size(s.operand(first + 1), -1)};
}
Cost recurrence_forward(Sizes s) { return recurrence(s, 0, 1); }
Cost recurrence_backward(Sizes s) { return recurrence(s, 3, 2); }

// ---- linear algebra: the leading terms, per matrix ----

double matrices(Sizes s, const Shape* a) { return s.numel(a) / std::max(1.0, s.size(a, -1) * s.size(a, -2)); }
Cost cubic(Sizes s, double factor) {
  const Shape* a = s.operand(0);
  return {s.all_bytes(), factor * matrices(s, a) * s.size(a, -2) * std::pow(s.size(a, -1), 2)};
}
Cost cholesky(Sizes s) { return cubic(s, 1.0 / 3); }
Cost lu(Sizes s) { return cubic(s, 2.0 / 3); }
Cost qr(Sizes s) { return cubic(s, 2); }
Cost eigh(Sizes s) { return cubic(s, 9); }
Cost eig(Sizes s) { return cubic(s, 25); }
Cost svd(Sizes s) { return cubic(s, 12); }
Cost triangular(Sizes s) { return {s.all_bytes(), s.numel(s.operand(1)) * s.size(s.operand(0), -1)}; }

// ---- parts of operands ----

/// Reads as many elements as it writes, and the indices.
Cost gathered(Sizes s) {
  double n = 2 * s.bytes(s.result());
  for (const Shape& o : s.trace().operands_of(s.event())) {
    if (!is_float(o.dtype) && !is_complex(o.dtype)) n += s.bytes(&o);
  }
  return {n, 0};
}
Cost free_of_cost(Sizes) { return {}; }

// ---- several operations per element ----

/// A fused step of an optimizer reads every list, and writes all but the gradients (parameter 1).
Cost optimizer_step(Sizes s) {
  double moved = 0, count = 0;
  for (const Shape& o : s.trace().operands_of(s.event())) {
    moved += (o.parameter == 1 ? 1 : 2) * s.bytes(&o);
    count += s.numel(&o);
  }
  return {moved, 2 * count};
}

template <int n>
Cost per_element(Sizes s) {
  double most = s.numel(s.operand(0));
  return {s.all_bytes(), n * std::max(most, s.numel(s.result()))};
}
Cost fft(Sizes s) {
  const double n = std::max(s.numel(s.operand(0)), s.numel(s.result()));
  return {s.all_bytes(), 5 * n * std::log2(std::max(2.0, n / std::max(1.0, s.size(s.result(), 0))))};
}

/// n log2 n comparisons of n numbers.
Cost sorting(Sizes s) {
  const double n = s.numel(s.operand(0));
  return {s.all_bytes(), n * std::log2(std::max(2.0, s.size(s.operand(0), -1)))};
}

struct Entry {
  Formula formula;
  bool product = false;
};

const std::unordered_map<std::string_view, Entry>& table() {
  static const auto* t = new std::unordered_map<std::string_view, Entry>{
      {"matmul", {&matmul, true}},
      {"linear", {&linear, true}},
      {"_fused_linear", {&linear, true}},
      {"_linear_backward_weight", {&linear_backward_weight, true}},
      {"_linear_backward_activation", {&linear_backward_activation, true}},
      {"bilinear", {&bilinear, true}},
      {"_convolution", {&convolution, true}},
      {"_convolution_backward_input", {&convolution_backward_input, true}},
      {"_convolution_backward_weight", {&convolution_backward_weight, true}},
      {"_fused_attention", {&fused_attention, true}},
      {"_fused_attention_backward", {&fused_attention_backward, true}},
      {"_recurrence", {&recurrence_forward, true}},
      {"_recurrence_backward", {&recurrence_backward, true}},
      {"cdist", {&distance}},
      {"_distances", {&distance}},
      {"linalg_cholesky_ex", {&cholesky}},
      {"linalg_lu_factor_ex", {&lu}},
      {"linalg_qr", {&qr}},
      {"linalg_eigh", {&eigh}},
      {"linalg_eig", {&eig}},
      {"_linalg_svd", {&svd}},
      {"linalg_solve_triangular", {&triangular}},
      {"index_select", {&gathered}},
      {"embedding", {&gathered}},
      {"gather", {&gathered}},
      {"index", {&gathered}},
      {"take", {&gathered}},
      {"one_hot", {&per_element<0>}},
      {"tril", {&per_element<0>}},
      {"triu", {&per_element<0>}},
      {"sort", {&sorting}},
      {"argsort", {&sorting}},
      {"topk", {&sorting}},
      {"kthvalue", {&per_element<4>}},
      {"item", {&free_of_cost}},
      {"empty_like", {&free_of_cost}},
      {"empty", {&free_of_cost}},
      {"_softmax", {&per_element<5>}},
      {"_log_softmax", {&per_element<5>}},
      {"_softmax_backward", {&per_element<4>}},
      {"native_batch_norm", {&per_element<7>}},
      {"_batch_norm_backward", {&per_element<11>}},
      {"native_layer_norm", {&per_element<7>}},
      {"_layer_norm_backward", {&per_element<11>}},
      {"_fused_rms_norm", {&per_element<4>}},
      {"_rms_norm_backward", {&per_element<8>}},
      {"native_group_norm", {&per_element<7>}},
      {"_group_norm_backward", {&per_element<11>}},
#define VESTA_STEP_COST(op, Step) {#op, {&optimizer_step}},
      VESTA_OPTIMIZER_STEPS(VESTA_STEP_COST)
#undef VESTA_STEP_COST
          {"_fft_c2c", {&fft}},
      {"_fft_r2c", {&fft}},
      {"_fft_c2r", {&fft}},
  };
  return *t;
}

bool writes_its_operand(const Event& e) { return e.inplace || std::string_view(e.schema->name).ends_with('_'); }

/// A call without a formula of its own: reads and writes once, one operation per element; a view is for nothing.
Cost usual(Sizes s) {
  const Event& e = s.event();
  if (e.aliased && !writes_its_operand(e)) return {};
  double most = s.result_numel();
  for (const Shape& o : s.trace().operands_of(e)) most = std::max(most, s.numel(&o));
  return {s.all_bytes(), most};
}

/// A node without ops computes its gradients by a fused kernel: it reads what arrived and, usually, one saved tensor.
Cost fused_node(Sizes s) {
  if (s.event().num_results == 0) return {};
  return {s.all_bytes() + s.bytes(s.result()), 2 * s.result_numel()};
}

/// Ops that bring an operand into another layout, dtype or place, or make room for a result, for the op around them.
bool is_preparation(std::string_view name) {
  static const auto* names = new std::unordered_set<std::string_view>{
      "contiguous", "clone",      "copy_",         "to",    "_to_copy", "detach",
      "empty",      "empty_like", "empty_strided", "zeros", "full",     "zeros_like",
      "full_like",  "new_empty",  "new_zeros",     "zero_", "fill_"};
  return names->contains(name);
}

/// What a call costs: by itself (`own`), or as the sum of what it contains (`inside`).
struct Choice {
  EventCost own;
  Cost inside;
  bool contains_ops = false;
  bool inside_works = false;  // a contained op does more than to prepare operands
  bool parts = true;  // the sum counts
  Cost total() const { return parts ? inside : own; }
};

/// Determines whether the parts of an op count, or the op itself. Note [What a call costs].
bool counts_by_parts(const Event& e, const Choice& c, bool has_formula, double result_bytes) {
  if (!c.contains_ops || e.schema->cost) return false;
  if (!e.schema->composite) {
    if (has_formula) return false;
    return c.inside.bytes > c.own.bytes || c.inside.operations > c.own.operations;
  }
  if (c.inside_works) return !has_formula || c.inside.bytes >= c.own.bytes;
  return !has_formula && (c.own.bytes == 0 || (c.inside.bytes > 0 && c.inside.bytes >= result_bytes));
}

}  // namespace

// Note [What a call costs]
// An op calls others for three reasons. A composite is made of them: they have the costs. A kernel lets them bring its
// operands into the layout that it wants, often by a view or `contiguous` of what is contiguous: it costs what it would
// cost without them. A composite may have a kernel of its own too, and an event does not say which of them ran: its
// body did where the ops in it do more than to prepare operands, and move no less than its formula says. A kernel
// without a formula whose parts move or compute more than a pass over its operands is made of them.
std::vector<EventCost> costs(const Trace& trace) {
  const size_t count = trace.events.size();
  std::vector<Choice> choices(count);
  for (size_t i = count; i-- > 0;) {  // what an event contains comes after it
    const Event& e = trace.events[i];
    const OperandSizes sizes(trace, e);
    Choice& c = choices[i];
    if (e.num_operands) c.own.dtype = trace.operands_of(e)[0].dtype;
    if (e.kind == Kind::node && !c.contains_ops && !e.open && !e.failed) {
      static_cast<Cost&>(c.own) = fused_node(sizes);
      c.parts = false;
    } else if (e.kind == Kind::op && !e.open && !e.failed) {
      const auto entry = table().find(e.schema->name);
      const bool has_formula = entry != table().end();
      static_cast<Cost&>(c.own) = e.schema->cost ? e.schema->cost(sizes)
                                  : has_formula  ? entry->second.formula(sizes)
                                                 : usual(sizes);
      c.own.product = has_formula && entry->second.product;
      c.parts = counts_by_parts(e, c, has_formula, sizes.result_bytes());
    }
    if (e.parent == Event::kNone) continue;
    Choice& around = choices[e.parent];
    const Cost total = c.total();
    around.inside.bytes += total.bytes, around.inside.operations += total.operations;
    if (e.kind != Kind::op) continue;
    around.contains_ops = true;
    if (is_preparation(e.schema->name) ? c.parts && c.inside_works : total.bytes > 0) around.inside_works = true;
  }
  std::vector<EventCost> all(count);
  std::vector<char> covered(count, 0);
  for (size_t i = 0; i < count; ++i) {
    const Event& e = trace.events[i];
    covered[i] = e.parent != Event::kNone && (covered[e.parent] || !choices[e.parent].parts);
    all[i].dtype = choices[i].own.dtype;
    if (!covered[i] && !choices[i].parts) all[i] = choices[i].own;
    all[i].on_device = e.on_device;
  }
  return all;
}

}  // namespace profiler
}  // namespace vesta
