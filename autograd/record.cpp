// Recording of pointwise ops: one function and one node type for all of them.
#include <vesta/autograd/record.h>

#include <algorithm>
#include <bit>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/view.h>

namespace vesta::autograd::recording {
namespace {

/// Returns x in the type that it computes in.
Tensor widened(const Tensor& x) { return compute_type(x.dtype()) == x.dtype() ? x : x.to(DType::float32); }

/// Returns an operand of a formula in ops, in the type that its gradient g computes in: a Python number, too, which
/// would be rounded to the default dtype where a step of the formula meets no tensor.
Tensor formula_operand(const Tensor& x, const Tensor& g) {
  if (!x.impl()->wrapped_number || x.dtype() == DType::bool_ || (x.is_complex() && !g.is_complex())) return widened(x);
  const DType computes = compute_type(g.dtype());
  return x.dtype() == computes ? clone(x) : x.to(computes);
}

/// Returns the part of an incoming gradient that belongs to the real or the imaginary part of a complex result.
Tensor part_of(const Tensor& g, bool imaginary) {
  if (!imaginary) return real(g);
  return g.is_complex() ? imag(g) : zeros_like(g);
}

/// Computes the gradient of input i by the fused kernel, or by ops if it is recorded or there is no kernel for the
/// dtype; that of a step is 0. `saved` are the inputs and the result, as far as the gradient uses them.
Tensor slope_of(const PointwiseRule& rule, int i, const Tensor& g, const Tensor* saved, const double* params) {
  const PointwiseInfo& info = *rule.info;
  if (info.zero[i]) return zeros_like(g);
  const Tensor* operands[1 + kMaxInputs] = {&g};
  int count = 1;
  bool fused = !GradMode::enabled() && !g.is_complex() && !g.is_sparse();
  const Tensor* whole = nullptr;  // a second result that is no float: it goes into the formula as one
  const int all = info.inputs + info.values + info.slopes - 1;
  for (int k = 0; k < all; ++k) {
    if ((info.uses[i] >> k & 1) == 0) continue;
    if (k > info.inputs && !is_differentiable(saved[k].dtype())) whole = &saved[k];
    operands[count++] = &saved[k];
    fused = fused && !saved[k].is_complex() && !saved[k].is_sparse();
  }
  if (fused) {
    Tensor r = pointwise_backward(info, i, operands, count, params);
    if (r.defined()) return r;
  }
  // In ops, 16-bit floats would be rounded after every step of the formula; the engine casts the gradient back.
  Tensor used[kMaxInputs];
  for (int k = 1; k < count; ++k) {
    if (operands[k] == whole) used[k - 1] = whole->to(compute_type(g.dtype()));
    else used[k - 1] = formula_operand(*operands[k], g);
  }
  return rule.formula[i](widened(g), used, params);
}

/// The node of a pointwise op. What is saved follows from the struct's signatures (PointwiseInfo::uses).
class PointwiseNode final : public Node {
 public:
  PointwiseNode(const PointwiseRule& rule, const double* params, uint8_t wanted) : rule_(&rule), wanted_(wanted) {
    const PointwiseInfo& info = *rule.info;
    for (int i = 0; i < info.inputs; ++i) {
      if ((wanted >> i & 1) != 0 && !passes(i, params)) uses_ |= info.uses[i];
    }
    for (int p = 0; p < info.params; ++p) params_[p] = params[p];
    set_num_edges(info.inputs);
    if (info.inputs == 1 && info.values == 1 && info.slopes == 1 && std::has_single_bit(uses_)) postponable_ = &info;
  }
  bool uses_input(int k) const { return (uses_ >> k & 1) != 0; }
  /// Returns whether a gradient uses a result, or a part of it.
  bool uses_result(int which) const {
    const int first = rule_->info->inputs + which;
    return uses_input(first) || (parts() && uses_input(first + 1));
  }
  void save(int k, Saved s) {
    saved_[k] = std::move(s);
    keeps_state_ = true;
  }
  void link(const Tensor* const* in) {
    for (int i = 0; i < rule_->info->inputs; ++i) {
      if ((wanted_ >> i & 1) != 0) edge(size_t(i)) = gradient_edge(*in[i]);
    }
  }

  GradList apply(GradList grads, Needs needs) override {
    const PointwiseInfo& info = *rule_->info;
    GradList result(info.inputs);
    Tensor saved[1 + kMaxInputs];
    for (int k = 0; k <= info.inputs; ++k) {
      if (uses_input(k)) saved[k] = saved_[k]();
    }
    Tensor g = info.values == 1 ? std::move(grads[0]) : unpack_values(grads, saved);
    int last = info.inputs - 1;
    while (last >= 0 && !wants(last, needs)) --last;
    for (int i = 0; i <= last; ++i) {
      if (!wants(i, needs)) continue;
      // NOLINTNEXTLINE(bugprone-use-after-move): it is moved in the last turn
      if (passes(i, params_)) result[size_t(i)] = i == last ? std::move(g) : g;
      else result[size_t(i)] = slope_of(*rule_, i, g, saved, params_);
    }
    return result;
  }
  PendingGradient postpone(Tensor grad) const override {
    PendingGradient pending{rule_->info, std::move(grad), saved_[uses_input(0) ? 0 : 1](), {}, {}};
    std::ranges::copy(params_, pending.params);
    return pending;
  }
  std::string name() const override { return node_name(rule_->info->name); }
  std::string op() const override { return std::string(known_name(rule_->info->name)); }
  void release_saved() override {
    for (Saved& s : saved_) s.reset();
  }

 private:
  /// Returns whether the two values of the formula are the parts of one complex result.
  bool parts() const { return rule_->info->result == Result::complex; }

  /// Adds to what is saved the second value of the formula and its gradient; returns that of the first. A gradient that
  /// did not come is zero.
  Tensor unpack_values(GradList& grads, Tensor* saved) const {
    const int first = rule_->info->inputs;
    Tensor& second = saved[first + 2];
    if (parts()) {
      if (uses_result(0)) {
        const Tensor z = uses_input(first) ? saved[first] : saved_[first]();
        saved[first] = real(z), saved[first + 1] = imag(z);
      }
      second = part_of(grads[0], true);
      return part_of(grads[0], false);
    }
    if (uses_input(first + 1)) saved[first + 1] = saved_[first + 1]();
    if (rule_->info->slopes == 1) return std::move(grads[0]);
    grads.grow(2);
    const Tensor& given = grads[0].defined() ? grads[0] : grads[1];
    second = grads[1].defined() ? grads[1] : zeros_like(given);
    return grads[0].defined() ? grads[0] : zeros_like(given);
  }

  bool wants(int i, Needs needs) const { return (wanted_ >> i & 1) != 0 && needs[size_t(i)]; }
  bool passes(int i, const double* params) const {
    const PointwiseInfo& info = *rule_->info;
    return info.pass[i] || (info.pass_if[i] && info.pass_if[i](params));
  }

  const PointwiseRule* rule_;
  Saved saved_[kMaxInputs];  // input k; after the inputs the result
  double params_[kMaxParams] = {};
  uint8_t wanted_;
  uint8_t uses_ = 0;
};

bool same_memory(const Tensor& a, const Tensor& b) { return a.impl()->storage() == b.impl()->storage(); }

/// Runs a call below the tape: by the kernels, or by what the op has for sparse operands.
Tensor run_below(const PointwiseRule& rule, const Tensor* const* in, const double* params, Out out) {
  Below autograd(Layer::autograd);
  bool sparse = false;
  for (int i = 0; i < rule.info->inputs; ++i) sparse = sparse || (in[i]->defined() && in[i]->is_sparse());
  return sparse ? rule.call(in, params, out) : pointwise(*rule.info, in, params, out);
}

/// Records `x.op_()`: saves inputs before they are overwritten, the result after.
Tensor call_inplace(const PointwiseRule& rule, const Tensor* const* in, const double* params, Out out, uint8_t wanted) {
  const PointwiseInfo& info = *rule.info;
  const Tensor& self = *out.tensor;
  VESTA_ASSERT(in[0]->is_same(self));  // the node's first gradient is that of the value before
  const bool stands_in = info.result_stands_in && info.result_stands_in(params);
  intrusive_ptr<PointwiseNode> node;
  if (is_differentiable(self.dtype())) {
    node = intrusive_ptr<PointwiseNode>::first(new PointwiseNode(rule, params, wanted));
    for (int k = 0; k < info.inputs; ++k) {
      if (node->uses_input(k) && !stands_in) {
        node->save(k, Saved(same_memory(*in[k], self) ? clone(*in[k]) : *in[k]));
      }
    }
  }
  run_below(rule, in, params, out);
  if (!node) return self;
  if (stands_in) node->save(0, Saved::result(self));
  if (node->uses_result(0)) node->save(info.inputs, Saved::result(self));
  node->link(in);
  node->set_input_meta(0, 1, self);
  rebase_history(self, std::move(node));
  return self;
}

}  // namespace

Tensor gradient_of_unary(const PointwiseRule& rule, const Tensor& g, const Tensor& used) {
  Tensor saved[1 + kMaxInputs];
  for (int k = 0; k <= rule.info->inputs; ++k) {
    if ((rule.info->uses[0] >> k & 1) != 0) saved[k] = used;
  }
  return slope_of(rule, 0, g, saved, nullptr);
}

Tensor call_pointwise(const PointwiseRule& rule, const Tensor* const* in, const double* params, Out out) {
  const PointwiseInfo& info = *rule.info;
  uint8_t wanted = 0;
  for (int i = 0; i < info.inputs; ++i) wanted |= uint8_t(requires_grad(*in[i]) << i);
  if (out.kind == Out::given) {
    check_out_not_recorded(wanted || requires_grad(*out.tensor), info.name);
  } else if (out.kind == Out::inplace) {
    check_inplace(*out.tensor, wanted != 0, info.name);
    if (wanted) return call_inplace(rule, in, params, out, wanted);
  }
  Tensor result = run_below(rule, in, params, out);
  if (!wanted || !is_differentiable(result.dtype())) return result;
  auto* node = new PointwiseNode(rule, params, wanted);
  auto owner = NodePtr::first(node);
  for (int k = 0; k < info.inputs; ++k) {
    if (node->uses_input(k)) node->save(k, Saved(*in[k]));
  }
  if (node->uses_result(0)) node->save(info.inputs, Saved::result(result));
  node->link(in);
  node->set_input_meta(0, 1, result);
  set_history(result, std::move(owner));
  return result;
}

TensorPair call_pointwise_pair(const PointwiseRule& rule, const Tensor* const* in, const double* params) {
  const PointwiseInfo& info = *rule.info;
  uint8_t wanted = 0;
  for (int i = 0; i < info.inputs; ++i) wanted |= uint8_t(requires_grad(*in[i]) << i);
  TensorPair results = [&] {
    Below autograd(Layer::autograd);
    return pointwise_pair(info, in, params);
  }();
  auto& [first, second] = results;
  if (!wanted || !is_differentiable(first.dtype())) return results;
  auto owner = NodePtr::first(new PointwiseNode(rule, params, wanted));
  auto& node = static_cast<PointwiseNode&>(*owner);
  for (int k = 0; k < info.inputs; ++k) {
    if (node.uses_input(k)) node.save(k, Saved(*in[k]));
  }
  if (node.uses_result(0)) node.save(info.inputs, Saved::result(first, 0));
  // A second result without a gradient has no history to get back.
  if (node.uses_result(1)) node.save(info.inputs + 1, info.slopes == 2 ? Saved::result(second, 1) : Saved(second));
  node.link(in);
  node.set_input_meta(0, 2, first);
  node.set_input_meta(1, 2, second);
  if (info.slopes == 2) set_history(second, owner, 1);
  set_history(first, std::move(owner), 0);
  return results;
}

}  // namespace vesta::autograd::recording
