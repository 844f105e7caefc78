// Defines what ops.h declares. Nothing here is written by hand for a single op.
#include <vesta/core/ops/ops.h>

#include <vesta/core/backend.h>
#include <vesta/core/ops/describe.h>
#include <vesta/core/ops/pointwise/activation.h>
#include <vesta/core/ops/pointwise/arithmetic.h>
#include <vesta/core/ops/pointwise/compare.h>
#include <vesta/core/ops/pointwise/explog.h>
#include <vesta/core/ops/pointwise/select.h>
#include <vesta/core/ops/pointwise/trigonometric.h>
#include <vesta/core/ops/register.h>

namespace vesta {

VESTA_POINTWISE_DEFINE(VESTA_POINTWISE)
VESTA_OPS_DEFINE(VESTA_STRUCTURED)

void register_pointwise_ops() { VESTA_POINTWISE_DESCRIBE(VESTA_POINTWISE) }

void OpBase::refuse_layer(Layer) const {
  fail(Cause::not_implemented, name, ": expected an op with a gradient, got an input that requires grad. ", name,
       " has no gradient rule; call it under no_grad() or on x.detach().");
}
void OpBase::refuse_undefined() const { fail(Cause::type, name, ": expected a tensor, got None (input)."); }
void OpBase::load_device(DeviceType d) const { backend(d); }  // says so itself where the device is missing altogether
void OpBase::refuse_device(DeviceType d) const {
  fail(Cause::not_implemented, name, ": no ",
       d == DeviceType::cpu    ? "CPU"
       : d == DeviceType::cuda ? "CUDA"
                               : "such",
       " kernel in this build.");
}

}  // namespace vesta
