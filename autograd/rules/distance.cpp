// Distances between points.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/distance.h>
#include <vesta/core/ops/view.h>

namespace vesta::autograd::rules {
namespace {

struct DistancesRule {
  Saved x1, x2, distances;
  double p = 2;
  static DistancesRule save(const Tensor& r, const Tensor& x1, const Tensor& x2, double p, Needs) {
    return {Saved(x1), Saved(x2), Saved::result(r), p};
  }
  Grads<2> operator()(const Tensor& g, Needs needs) const {
    const Tensor a = x1(), b = x2(), d = distances();
    return {needs[0] ? _distances_backward(g, a, b, p, d) : Tensor(),
            b.defined() && needs[1] ? _distances_backward(mT(g), b, a, p, mT(d)) : Tensor()};
  }
};

}  // namespace

void register_distance() { record<ops::_distances, DistancesRule>(); }

}  // namespace vesta::autograd::rules
