#include <vesta/core/ops/norm_backward.h>

#include <algorithm>
#include <iterator>

#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/norm_backward.h>
#include <vesta/core/ops/trigonometric.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_NORM_BACKWARD)

namespace {
/// Their gradients are computed from the input or the result alone, with at most two parameters.
const PointwiseInfo* const kActivations[] = {
    &ops::relu.info,      &ops::hardtanh.info,    &ops::leaky_relu.info, &ops::silu.info, &ops::hardswish.info,
    &ops::_gelu_erf.info, &ops::_gelu_tanh.info,  &ops::mish.info,       &ops::tanh.info, &ops::sigmoid.info,
    &ops::softplus.info,  &ops::hardsigmoid.info, &ops::threshold.info,
};
}  // namespace

int64_t number_of_activation(const PointwiseInfo* info) {
  const auto* const found = std::ranges::find(kActivations, info);
  return found == std::end(kActivations) ? -1 : found - std::begin(kActivations);
}

const PointwiseInfo& activation_of_number(int64_t number) {
  VESTA_CHECK(number >= 0 && number < int64_t(std::size(kActivations)), value,
              "_batch_norm_activation_backward: expected the number of an activation, got ", number, ".");
  return *kActivations[number];
}

}  // namespace vesta
