// Matrix products. With C = A B and G the gradient of C: that of A is G B^H, that of B is A^H G. Batch dimensions that
// were broadcast are summed by the engine.
#include <tuple>

#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/sparse.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/torch_rules.h>

namespace vesta::autograd::rules {
namespace {

Tensor conj_mT(const Tensor& m) { return transpose(m.is_complex() ? conj(m) : m, -2, -1); }
Tensor rows(const Tensor& t) {
  if (t.dim() == 2) return t;
  int64_t n = 1;  // counted, not numel / size(-1): rows may have no elements
  for (int64_t d = 0; d + 1 < t.dim(); ++d) n *= t.size(d);
  return reshape(t, {n, t.size(-1)});
}

struct MatmulRule {
  Saved a, b;
  int64_t a_dim = 2, b_dim = 2;
  bool sparse = false;  // a is, and b is not
  static MatmulRule save(const Tensor&, const Tensor& a, const Tensor& b, Needs needs) {
    const bool sparse = needs[0] && a.is_sparse() && !b.is_sparse();
    return {needs[1] || sparse ? Saved(a) : Saved(), needs[0] ? Saved(b) : Saved(), a.dim(), b.dim(), sparse};
  }
  Grads<2> operator()(const Tensor& grad, Needs needs) const {
    Tensor g = grad;  // vectors are matrices with a dimension of 1
    if (a_dim == 1) g = unsqueeze(g, b_dim == 1 ? -1 : -2);
    if (b_dim == 1) g = unsqueeze(g, -1);
    return {needs[0] ? of_a(g) : Tensor{}, needs[1] ? of_b(g) : Tensor{}};
  }
  /// The gradient of a sparse a is wanted at its places only.
  static Tensor of_sparse(const Tensor& a, const Tensor& g, const Tensor& b) {
    const SparseParts& p = sparse_parts(a, "matmul");
    const Tensor left = index_select(g, 0, select(p.indices, 0, 0));
    const Tensor right = index_select(conj(b), 0, select(p.indices, 0, 1));
    Tensor values = sum(left * right, -1);
    if (!p.coalesced && p.layout == SparseLayout::coo) values = values * first_of_place(p, a.sizes(), values.dtype());
    return sparse_like(p, values, a.sizes());
  }
  Tensor of_a(const Tensor& g) const {
    if (sparse) return of_sparse(a(), g, b_dim == 1 ? unsqueeze(b(), -1) : b());
    Tensor r = matmul(g, conj_mT(b_dim == 1 ? unsqueeze(b(), -1) : b()));
    return a_dim == 1 ? squeeze(r, -2) : r;
  }
  Tensor of_b(const Tensor& g) const {
    Tensor left = a_dim == 1 ? unsqueeze(a(), 0) : a();
    if (a_dim > 2 && b_dim == 2) return matmul(conj_mT(rows(left)), rows(g));  // one product, not a sum over the batch
    Tensor r = matmul(conj_mT(left), g);
    return b_dim == 1 ? squeeze(r, -1) : r;
  }
};

struct LinearRule {
  Saved input, weight;
  bool vector = false;  // a weight [in] gives results [*]
  static LinearRule save(const Tensor&, const Tensor& input, const Tensor& weight, const Tensor&, Needs needs) {
    return {needs[1] ? Saved(input) : Saved(), needs[0] ? Saved(weight) : Saved(), weight.dim() == 1};
  }
  Grads<3> operator()(const Tensor& g, Needs needs) const {
    if (needs[0] && !vector) return with_input(matmul(g, conj(weight())), g, needs);
    return with_input(Tensor(), g, needs);
  }
  /// A product takes relu's gradient along where relu's own product has kept its form of it, and that of gelu's tanh.
  bool fuses_previous(const LeadingActivation& before) const {
    const bool is_relu = before.activation == &ops::relu.info && before.kept;
    return !vector && (is_relu || before.activation == &ops::_gelu_tanh.info);
  }
  Grads<3> operator()(const Tensor& g, Needs needs, const PendingGradient& before) const {
    const bool use_gelu = before.info == &ops::_gelu_tanh.info;
    return with_input(_linear_backward_activation(g, weight(), before.used, use_gelu, before.kept), g, needs);
  }
  /// Returns all gradients, given that of the input.
  Grads<3> with_input(const Tensor& of_input, const Tensor& g, Needs needs) const {
    if (vector) {
      Tensor column = unsqueeze(g, -1);
      return {needs[0] ? column * conj(weight()) : Tensor{}, needs[1] ? column * conj(input()) : Tensor{}, g};
    }
    Tensor of_weight, of_bias;
    if (needs[1] && needs[2]) std::tie(of_weight, of_bias) = _linear_backward_weight(g, input());
    else if (needs[1]) of_weight = matmul(transpose(rows(g), 0, 1), conj(rows(input())));
    else if (needs[2]) of_bias = g;
    return {of_input, of_weight, of_bias};
  }
};

/// The gradient of an activation after a linear layer. Relu's is told from its result, gelu's from its operand, which
/// the layer computes anew where it must be recorded itself.
struct FusedLinearRule {
  LinearRule layer;
  Saved told_from, bits;  // `bits`: what relu's product has kept for that of the layer behind
  Tensor bias;  // of gelu: for its history alone, so that a program may write to it, as it may behind a linear layer
  bool use_gelu = false, kept = false;
  static constexpr unsigned results = 0b01;
  static FusedLinearRule save(const TensorPair& r, const Tensor& input, const Tensor& weight, MaybeTensor bias,
                              bool use_gelu, bool keep, Needs needs) {
    const bool has_bias = bias.defined(), kept = !use_gelu || keep;
    const auto& [result, operand] = r;
    if (!use_gelu) {
      LinearRule layer = LinearRule::save(result, input, weight, has_bias ? *bias : Tensor(), needs);
      return {std::move(layer), Saved::result(result, 0), keep ? Saved(operand) : Saved(), Tensor(), false, true};
    }
    return {{Saved(input), Saved(weight), weight.dim() == 1},
            keep ? Saved(operand) : Saved(),
            Saved(),
            has_bias ? *bias : Tensor(),
            true,
            kept};
  }
  /// Returns gelu's operand with its history. The values are those that were kept, if they were.
  Tensor operand() const {
    Tensor x = linear(layer.input(), layer.weight(), bias);
    if (kept) copy_(x.detach(), told_from().detach());
    return x;
  }
  static const char* known_op() { return "linear"; }
  Tensor through_activation(const Tensor& g) const {
    using recording::gradient_of_unary, recording::pointwise_rule;
    if (!use_gelu) return gradient_of_unary(pointwise_rule<ops::relu>, g, told_from()).to(g.dtype());
    const bool again = GradMode::enabled() || !kept;
    const Tensor x = again ? operand() : told_from();
    return gradient_of_unary(pointwise_rule<ops::_gelu_tanh>, g, x).to(g.dtype());
  }
  Grads<3> operator()(const GradList& g, Needs needs) const {
    if (!g[0].defined()) return {};
    return layer(through_activation(g[0]), needs);
  }
  LeadingActivation leading() const {
    if (!kept) return {};
    return {use_gelu ? &ops::_gelu_tanh.info : &ops::relu.info, bits.defined()};
  }
  PendingGradient leading_operands() const { return {leading().activation, {}, told_from(), bits(), {}}; }
  Grads<3> rest(const Tensor& g, Needs needs, const PendingGradient* before) const {
    return before ? layer(g, needs, *before) : layer(g, needs);
  }
  bool fuses_previous(const LeadingActivation& before) const { return layer.fuses_previous(before); }
  Grads<3> operator()(const Tensor& g, Needs needs, const PendingGradient& before) const {
    return layer(through_activation(g), needs, before);
  }
};

/// Records linear. PyTorch multiplies rows and views them as a batch, or adds the bias to the batch afterwards.
Tensor recorded_linear(const Tensor& input, const Tensor& weight, MaybeTensor bias) {
  if (input.is_sparse() || weight.is_sparse()) return linear_sparse(input, weight, bias);
  Tensor r = recording::call<ops::linear, LinearRule, recording::Kind::fresh, Tensor, const Tensor&, const Tensor&,
                             MaybeTensor>(input, weight, bias);
  if (r.dim() <= 2) return r;
  return named_step(std::move(r), bias.defined() && !input.is_contiguous() ? "AddBackward0" : "UnsafeViewBackward0");
}

/// The gradient through an activation in ops, for what is recorded.
Tensor linear_activation_backward_formula(const Tensor& g, const Tensor& weight, const Tensor& used, bool use_gelu,
                                          MaybeTensor) {
  using recording::gradient_of_unary, recording::pointwise_rule;
  const Tensor of_result = matmul(g, conj(weight));
  return gradient_of_unary(use_gelu ? pointwise_rule<ops::_gelu_tanh> : pointwise_rule<ops::relu>, of_result, used)
      .to(g.dtype());
}

}  // namespace

void register_matmul() {
  record<ops::matmul, MatmulRule>();
  ops::linear.set_layer(Layer::autograd, &recorded_linear);
  record<ops::_fused_linear, FusedLinearRule>();
  record_composite<ops::_linear_backward_activation, &linear_activation_backward_formula>();
}

}  // namespace vesta::autograd::rules
