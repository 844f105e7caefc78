// What an op says when it cannot run: no gradient, no kernel, a missing tensor, two devices.
#include <vesta/core/dispatch/op.h>

#include <vesta/core/backend.h>
#include <vesta/core/dispatch/known_name.h>

namespace vesta {

void OpBase::refuse_layer(Layer l) const {
  VESTA_CHECK(l != Layer::sparse, not_implemented, known_name(name),
              ": expected dense tensors, got a sparse one. Convert it with .to_dense(), or work on its .values().");
  fail(Cause::not_implemented, known_name(name), ": expected an op with a gradient, got an input that requires grad. ",
       known_name(name), " has no gradient rule; call it under no_grad() or on x.detach().");
}

void OpBase::load_device(DeviceType d) const { backend(d); }  // says so itself where the device is missing altogether

void OpBase::refuse_device(DeviceType d) const {
  fail(Cause::not_implemented, known_name(name), ": no ",
       d == DeviceType::cpu    ? "CPU"
       : d == DeviceType::cuda ? "CUDA"
       : d == DeviceType::meta ? "meta"
                               : "such",
       " kernel in this build.");
}

DeviceType OpBase::resolve_device(std::span<const dispatch::TensorArgument> given) const {
  const std::vector<Parameter> parameters = parameters_of(schema->parameters);
  auto name_of = [&](const dispatch::TensorArgument& g) { return parameters[size_t(g.parameter)].name; };
  const dispatch::TensorArgument* first = nullptr;
  DeviceType type = DeviceType::cpu;
  for (const dispatch::TensorArgument& g : given) {
    const Tensor& t = *g.tensor;
    if (!t.defined()) {
      VESTA_CHECK(g.in_list && parameters[size_t(g.parameter)].type == "MaybeTensorList", type, known_name(name),
                  ": expected a tensor, got None (", name_of(g), ").");
      continue;
    }
    if (type == DeviceType::cpu) type = t.device().type();
    // A number in a tensor, 0-dimensional and on the CPU, joins any device.
    if (schema->any_device || (t.dim() == 0 && t.device().type() == DeviceType::cpu)) continue;
    if (!first) first = &g;
    VESTA_CHECK(t.device() == first->tensor->device(), device, known_name(name),
                ": expected all tensors on one device, got ", first->tensor->device(), " (", name_of(*first), ") and ",
                t.device(), " (", name_of(g), "). Move one with .to().");
  }
  return type;
}

}  // namespace vesta
