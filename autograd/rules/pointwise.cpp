// Pointwise ops: their gradients stand in the structs; nothing is written by hand for a single op.
#include <vesta/autograd/rules/tensor_math.h>

#include <vesta/autograd/flat_gradient.h>
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/autograd/views.h>
#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/explog.h>
#include <vesta/core/ops/numbers.h>
#include <vesta/core/ops/pointwise/activation.h>
#include <vesta/core/ops/pointwise/arithmetic.h>
#include <vesta/core/ops/pointwise/compare.h>
#include <vesta/core/ops/pointwise/explog.h>
#include <vesta/core/ops/pointwise/numbers.h>
#include <vesta/core/ops/pointwise/select.h>
#include <vesta/core/ops/pointwise/special.h>
#include <vesta/core/ops/pointwise/trigonometric.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/special.h>
#include <vesta/core/ops/topics.h>
#include <vesta/core/ops/trigonometric.h>

namespace vesta::autograd::rules {
namespace {

/// Lets the gradients of a piecewise linear op with respect to its first input have a gradient of zero with respect to
/// what they were computed from, as in PyTorch: by their formulas they would have none, and a parameter that only
/// decides between the pieces would get none either.
template <auto& op>
void connect_pieces() {
  static const auto formula = recording::pointwise_rule<op>.formula[0];
  recording::pointwise_rule<op>.formula[0] = [](const Tensor& g, const Tensor* used, const double* params) -> Tensor {
    const Tensor slope = formula(g, used, params);
    if (!GradMode::enabled() || !used[0].defined() || !used[0].requires_grad()) return slope;
    return flat_gradient(slope, gradient_edge(used[0]));
  };
}

}  // namespace

void register_pointwise() {
#define VESTA_RECORD(kind, ...) VESTA_LINE_##kind(VESTA_RECORD, __VA_ARGS__)
#define VESTA_RECORD_POINTWISE(name, Struct, ...) record_pointwise<ops::name, def::Struct>();
#define VESTA_RECORD_POINTWISE_PAIR(...) VESTA_RECORD_POINTWISE(__VA_ARGS__)
#define VESTA_RECORD_OP(...)
#define VESTA_RECORD_OUT(...)
#define VESTA_RECORD_TWIN(...)
#define VESTA_RECORD_COPIED(...)
#define VESTA_RECORD_IN(...)
#define VESTA_RECORD_FORM(...)
#define VESTA_RECORD_PYTHON_FORM(...)
#define VESTA_RECORD_ALIAS(...)
#define VESTA_X(topic, LIST) LIST(VESTA_RECORD)
  VESTA_POINTWISE_TOPICS(VESTA_X)
#undef VESTA_X
  connect_pieces<ops::hardshrink>();
  connect_pieces<ops::hardtanh>();
  connect_pieces<ops::leaky_relu>();
  connect_pieces<ops::_prelu>();
  connect_pieces<ops::relu>();
  connect_pieces<ops::softshrink>();
  connect_pieces<ops::threshold>();
}

}  // namespace vesta::autograd::rules
