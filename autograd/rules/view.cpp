// Views: the gradient of a view is the incoming gradient in the view's place, and zeros elsewhere.
#include <algorithm>

#include <vesta/autograd/engine.h>
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/as_strided.h>
#include <vesta/autograd/rules/dense_gradient.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/shape.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/torch_rules.h>

namespace vesta::autograd::rules {

namespace {

/// Returns zeros of `sizes` with `g` in the place that `view` shows of them; or adds it there to the sum of gradients
/// in progress, and returns nothing.
template <class View>
Tensor embedded(const Tensor& g, IntSpan sizes, View view) {
  Tensor* const sum = sum_in_progress();
  if (sum && std::ranges::equal(sum->sizes(), sizes) && sum->dtype() == g.dtype() && sum->device() == g.device()) {
    const Tensor place = view(*sum);
    ops::add(place, g, 1, Out{&place, Out::inplace});
    return {};
  }
  Tensor r = zeros(IntList(sizes), g.dtype(), g.device());
  copy_(view(r), g);
  return r;
}

struct ReshapeRule {
  Dims sizes;
  static ReshapeRule save(const Tensor&, const Tensor& x, const auto&, Needs) { return {Dims(x.sizes())}; }
  Tensor operator()(const Tensor& g, Needs) const { return reshape(dense_gradient(g), sizes); }
};

struct ExpandRule {
  Tensor operator()(const Tensor& g, Needs) const { return g; }  // the engine sums
};

struct PermuteRule {
  Dims back;
  static PermuteRule save(const Tensor&, const Tensor& x, IntList dims, Needs) {
    PermuteRule r{Dims(dims.size())};
    for (size_t i = 0; i < dims.size(); ++i) r.back[size_t(wrap_dim(dims[i], x.dim(), "permute"))] = int64_t(i);
    return r;
  }
  Tensor operator()(const Tensor& g, Needs) const { return permute(g, back); }
};

struct TransposeRule {
  int64_t dim0 = 0, dim1 = 0;
  static TransposeRule save(const Tensor&, const Tensor&, int64_t dim0, int64_t dim1, Needs) { return {dim0, dim1}; }
  Tensor operator()(const Tensor& g, Needs) const { return transpose(g, dim0, dim1); }
};

struct SelectRule {
  Dims sizes;
  int64_t dim = 0, index = 0;
  static SelectRule save(const Tensor&, const Tensor& x, int64_t dim, int64_t index, Needs) {
    return {Dims(x.sizes()), dim, index};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    const bool alone = held_only_here(g);
    const int64_t d = wrap_dim(dim, int64_t(sizes.size()), "select"), n = sizes[size_t(d)];
    if (keep_piece(unsqueeze(g, d), alone, sizes, d, index < 0 ? index + n : index)) return {};
    const Tensor part = dense_gradient(g);
    return embedded(part, sizes, [&](const Tensor& t) { return select(t, dim, index); });
  }
};

struct SliceRule {
  Dims sizes;
  int64_t dim = 0;
  MaybeInt start, end;
  int64_t step = 1;
  static SliceRule save(const Tensor&, const Tensor& x, int64_t dim, MaybeInt start, MaybeInt end, int64_t step,
                        Needs) {
    return {Dims(x.sizes()), dim, start, end, step};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    if (step == 1) {
      const int64_t d = wrap_dim(dim, int64_t(sizes.size()), "slice"), n = sizes[size_t(d)], s = start.value_or(0);
      if (keep_piece(g, held_only_here(g), sizes, d, std::clamp<int64_t>(s < 0 ? s + n : s, 0, n))) return {};
    }
    return embedded(g, sizes, [&](const Tensor& t) { return slice(t, dim, start, end, step); });
  }
};

struct DiagonalRule {
  Dims sizes;
  int64_t offset = 0, dim1 = 0, dim2 = 1;
  static DiagonalRule save(const Tensor&, const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2, Needs) {
    return {Dims(x.sizes()), offset, dim1, dim2};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    return embedded(g, sizes, [&](const Tensor& t) { return diagonal(t, offset, dim1, dim2); });
  }
};

struct AsStridedRule {
  Geometry from, to;
  static AsStridedRule save(const Tensor& y, const Tensor& x, IntList, IntList, MaybeInt, Needs) {
    return {Geometry(x), Geometry(y)};
  }
  Tensor operator()(const Tensor& g, Needs) const { return as_strided_backward(g, from, to); }
};

struct ViewAsRealRule {
  Tensor operator()(const Tensor& g, Needs) const { return as_complex(g); }
};

struct ViewAsComplexRule {
  Tensor operator()(const Tensor& g, Needs) const { return view_as_real(g); }
};

/// The part of a matrix below or above a diagonal: no view, but linear, so the rule is the op itself.
template <bool lower>
struct TriangleRule {
  int64_t diagonal = 0;
  static TriangleRule save(const Tensor&, const Tensor&, int64_t diagonal, Needs) { return {diagonal}; }
  Tensor operator()(const Tensor& g, Needs) const { return lower ? tril(g, diagonal) : triu(g, diagonal); }
};

/// Records squeeze; PyTorch's names of the step count its forms: all dimensions, one, several.
Tensor recorded_squeeze(const Tensor& t, const MaybeDims& dim) {
  Tensor r =
      recording::call<ops::_squeeze, ReshapeRule, recording::Kind::view, Tensor, const Tensor&, const MaybeDims&>(t,
                                                                                                                  dim);
  if (!dim) return r;
  return named_step(std::move(r), (*dim).size() == 1 ? "SqueezeBackward1" : "SqueezeBackward2");
}

}  // namespace

void register_view() {
  record_view<ops::view, ReshapeRule>();
  ops::_squeeze.set_layer(Layer::autograd, &recorded_squeeze);
  record_view<ops::unsqueeze, ReshapeRule>();
  record_view<ops::expand, ExpandRule>();
  record_view<ops::permute, PermuteRule>();
  record_view<ops::transpose, TransposeRule>();
  record_view<ops::select, SelectRule>();
  record_view<ops::slice, SliceRule>();
  record_view<ops::diagonal, DiagonalRule>();
  record_view<ops::as_strided, AsStridedRule>();
  record_view<ops::view_as_real, ViewAsRealRule>();
  record_view<ops::view_as_complex, ViewAsComplexRule>();
  record<ops::tril, TriangleRule<true>>();
  record<ops::triu, TriangleRule<false>>();
}

}  // namespace vesta::autograd::rules
