// The terms of losses: pointwise structs of an input and its target whose sum, or mean, is a loss. Devices that add
// terms up as they compute them have kernels for each of them; a further loss is a struct, and its rows here and in
// loss.cpp.
#pragma once
#include <vesta/core/ops/pointwise/explog.h>
#include <vesta/core/ops/pointwise_traits.h>

namespace vesta {

enum class LossTerm : int64_t {
  squared_difference,
  absolute_difference,
  huber_difference,
  binary_cross_entropy,
  binary_cross_entropy_of_score,
  divergence,
  log_divergence,
  soft_margin,
  exp_difference,
  margin_difference,
};

/// Calls `f.template operator()<Struct, Params>()` for the struct of a term and its parameters, which are numbers.
template <class F>
void visit_term(LossTerm term, F f) {
  using None = traits::Parameters<>;
  switch (term) {
    case LossTerm::squared_difference: return f.template operator()<def::SquaredDifference, None>();
    case LossTerm::absolute_difference: return f.template operator()<def::AbsoluteDifference, None>();
    case LossTerm::huber_difference:
      return f.template operator()<def::HuberDifference, traits::Parameters<double, double>>();
    case LossTerm::binary_cross_entropy: return f.template operator()<def::BinaryCrossEntropy, None>();
    case LossTerm::binary_cross_entropy_of_score: return f.template operator()<def::BinaryCrossEntropyOfScore, None>();
    case LossTerm::divergence: return f.template operator()<def::Divergence, None>();
    case LossTerm::log_divergence: return f.template operator()<def::LogDivergence, None>();
    case LossTerm::soft_margin: return f.template operator()<def::SoftMargin, None>();
    case LossTerm::exp_difference: return f.template operator()<def::ExpDifference, None>();
    case LossTerm::margin_difference: return f.template operator()<def::MarginDifference, traits::Parameters<double>>();
  }
}

/// The gradient of a term of struct D with respect to operand i, at input x and target t. No gradient of a term uses
/// its value.
template <class D, class P, int i, class T>
VESTA_HD VESTA_INLINE T gradient_of_term(const T& g, const T& x, const T& t, const double* params) {
  using G = traits::Gradient<D, 2, P, i>;
  static_assert(G::is_formula && G::mask < 4);
  if constexpr (G::mask == 3) {
    const T used[] = {x, t};
    return G::template call<T>(g, used, params);
  } else {
    return G::template call<T>(g, G::mask == 1 ? &x : &t, params);
  }
}

}  // namespace vesta
