// Op<R(A...)>: an op as an object: a function pointer per layer and one kernel per device type.
//
// A call looks at (thread's included | bits of the operands) & ~thread's excluded & slots of this op. Nothing set: one
// indirect call and it is in the kernel. Otherwise the highest active layer runs; it calls the op again under `Below`.
//
// Note [The default is refusal]
// Every op has its autograd bit present from the start. A null slot raises when an operand wants recording; an op
// without a gradient must say so (set_not_differentiable). A null kernel raises too. Forgetting is never silent.
#pragma once
#include <array>
#include <bit>

#include <vesta/core/tensor.h>

namespace vesta {

/// Is the part of an op that does not depend on its signature.
struct OpBase {
  const char* name;
  uint8_t present = bit(Layer::autograd);
  bool differentiable = true;
  constexpr explicit OpBase(const char* n) : name(n) {}
  [[noreturn]] VESTA_API void refuse_layer(Layer l) const;
  [[noreturn]] VESTA_API void refuse_device(DeviceType d) const;
  /// Loads the backend of a device if that was not done; raises where there is none.
  VESTA_API void load_device(DeviceType d) const;
  [[noreturn]] VESTA_API void refuse_undefined() const;
};

namespace dispatch {
// The bits an argument contributes, one overload per argument type and no catch-all: a forgotten type must not compile,
// because a catch-all that answers 0 detaches silently.
inline uint8_t bits(const Tensor& t) { return t.defined() ? t.impl()->layers : uint8_t(0); }
inline uint8_t bits(const TensorList& l) {
  uint8_t b = 0;
  for (const Tensor& t : l) b |= bits(t);
  return b;
}
inline uint8_t bits(const Out& o) { return o.tensor ? bits(*o.tensor) : uint8_t(0); }
template <class T>
concept Plain =
    std::is_arithmetic_v<T> || std::is_same_v<T, Scalar> || std::is_same_v<T, IntList> ||
    std::is_same_v<T, MaybeDims> || std::is_same_v<T, MaybeDType> || std::is_same_v<T, MaybeDevice> ||
    std::is_same_v<T, MaybeText> || std::is_same_v<T, MaybeInt> || std::is_same_v<T, MaybeScalar> ||
    std::is_same_v<T, DType> || std::is_same_v<T, Device> || std::is_same_v<T, Generator*> || std::is_same_v<T, Text>;
template <Plain T>
constexpr uint8_t bits(const T&) {
  return 0;
}

/// Tells whether a call's first argument is a tensor that is missing (Python's None): no op has an optional first
/// tensor.
inline bool lacks_first(const Tensor& t, const auto&...) { return !t.defined(); }
inline bool lacks_first(const auto&...) { return false; }

/// Finds the device a call belongs to: the first that is not the CPU, so that 0-d CPU operands may join.
struct DeviceOf {
  DeviceType type = DeviceType::cpu;
  void see(const Tensor& t) {
    if (t.defined() && t.device().type != DeviceType::cpu) type = t.device().type;
  }
  void see(const TensorList& l) {
    for (const Tensor& t : l) see(t);
  }
  void see(const MaybeDevice& d) {
    if (d) type = d->type;
  }
  void see(const Device& d) { type = d.type; }
  void see(const Out&) {}
  template <Plain T>
    requires(!std::is_same_v<T, MaybeDevice> && !std::is_same_v<T, Device>)
  void see(const T&) {}
};
}  // namespace dispatch

template <class Signature>
class Op;

/// Is an op of signature R(A...); objects live in namespace vesta::ops, one per line of the roll call.
template <class R, class... A>
class Op<R(A...)> : public OpBase {
 public:
  using Fn = R (*)(A...);
  using Signature = R(A...);
  constexpr explicit Op(const char* n) : OpBase(n) {}

  R operator()(A... a) const {
    uint8_t active = (layer_state.included | (dispatch::bits(a) | ... | 0)) & uint8_t(~layer_state.excluded) & present;
    if (active) [[unlikely]] {
      Layer l = Layer(7 - std::countl_zero(active));
      if (Fn f = layers_[unsigned(l)]) return f(static_cast<A>(a)...);
      refuse_layer(l);
    }
    return kernel(static_cast<A>(a)...);
  }
  /// Calls the kernel of the operands' device, below every layer.
  R kernel(A... a) const {
    if (dispatch::lacks_first(a...)) [[unlikely]]
      refuse_undefined();
    dispatch::DeviceOf d;
    (d.see(a), ...);
    if (Fn f = kernels_[int(d.type)]) [[likely]]
      return f(static_cast<A>(a)...);
    load_device(d.type);
    if (Fn f = kernels_[int(d.type)]) return f(static_cast<A>(a)...);
    refuse_device(d.type);
  }
  void set_layer(Layer l, Fn f) {
    layers_[unsigned(l)] = f;
    present |= bit(l);
  }
  void set_kernel(DeviceType d, Fn f) { kernels_[int(d)] = f; }
  /// Registers one function for all devices: an op whose kernel is made of geometry only (views).
  void set_kernel(Fn f) { kernels_.fill(f); }
  /// Declares that results carry no gradient; recording passes over this op.
  void set_not_differentiable() {
    differentiable = false;
    present &= uint8_t(~bit(Layer::autograd));
  }
  bool has_rule() const { return layers_[unsigned(Layer::autograd)] != nullptr; }

 private:
  std::array<Fn, kNumDeviceTypes> kernels_{};
  std::array<Fn, kNumLayers> layers_{};
};

}  // namespace vesta
