// Pooling.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/pool.h>
#include <vesta/core/ops/view.h>

namespace vesta::autograd::rules {
namespace {

struct MaxPoolRule {
  Saved indices;
  Dims input_size, kernel, stride, padding, dilation;
  static constexpr unsigned results = 0b01;
  static MaxPoolRule save(const TensorPair& r, const Tensor& input, IntList kernel, IntList stride, IntList padding,
                          IntList dilation, bool, Needs) {
    return {Saved(std::get<1>(r)), Dims(input.sizes()), Dims(kernel), Dims(stride), Dims(padding), Dims(dilation)};
  }
  Tensor operator()(const GradList& g, Needs) const {
    if (!g[0].defined()) return {};
    return _max_pool_backward(g[0], indices(), input_size, kernel, stride, padding, dilation);
  }
};

struct FractionalMaxPoolRule {
  Saved indices;
  Dims input_size;
  static constexpr unsigned results = 0b01;
  static FractionalMaxPoolRule save(const TensorPair& r, const Tensor& input, const Tensor&, IntList, IntList, Needs) {
    return {Saved(std::get<1>(r)), Dims(input.sizes())};
  }
  Grads<2> operator()(const GradList& g, Needs) const {
    if (!g[0].defined()) return {};
    return {_max_pool_backward(g[0], indices(), input_size), Tensor{}};
  }
};

struct MaxPoolGradientRule {  // reads what _max_pool_backward wrote to, plane by plane
  Saved indices;
  static MaxPoolGradientRule save(const Tensor&, const Tensor&, const Tensor& indices, IntList, IntList, IntList,
                                  IntList, IntList, Needs) {
    return {Saved(indices)};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    Tensor at = indices();
    return reshape(gather(flatten(g, 2), -1, flatten(at, 2)), at.sizes());
  }
};

}  // namespace

void register_pool() {
  record<ops::_max_pool, MaxPoolRule>();
  record<ops::_max_pool_backward, MaxPoolGradientRule>();
  record<ops::_fractional_max_pool, FractionalMaxPoolRule>();
}

}  // namespace vesta::autograd::rules
