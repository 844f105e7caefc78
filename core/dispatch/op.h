// Op<R(A...)>: an op as an object: a function pointer per layer and one kernel per device type.
//
// A call looks at (thread's included | bits of the operands) & ~thread's excluded & slots of this op. Nothing set: one
// indirect call and it is in the kernel. Otherwise the highest active layer runs; it calls the op again under `Below`.
//
// Note [The default is refusal]
// Every op has its autograd bit present from the start. A null slot raises when an operand needs recording; an op
// without a gradient must declare it (no_gradient in its line). A null kernel raises too. Forgetting is never silent.
// The sparse bit is present in the same way: an op without a function for sparse tensors refuses them.
//
// Note [A composite is an op with a default body]
// A composite's body, made of other ops, takes the place of the kernel of every device, and its autograd bit is not
// present: the parts record themselves. A kernel that is entered for a device makes the bit present; without a gradient
// rule of its own the op then decomposes into its body where an operand requires grad, and runs the kernel where none
// does. The bit alone does not tell: every view carries it, because its base may come to require grad.
//
// Note [Switching the profiler]
// Every thread's `included` has the profiler's bit from the start, and no op's `present` has it until a profile begins:
// then OpBase::show_profiler sets it in all ops at once, so that every thread's calls are seen, also those of threads
// that start later, and a call pays nothing while no profile runs. Calls under way in other threads read the byte by a
// relaxed atomic load, which is a plain load of the processor: each sees the old value or the new one, and both are
// correct.
#pragma once
#include <array>
#include <bit>
#include <span>

#include <vesta/core/dispatch/layer.h>
#include <vesta/core/dispatch/schema.h>
#include <vesta/core/tensor.h>

namespace vesta {

class Generator;

namespace dispatch {
/// A tensor among the arguments of a call, and the number of its parameter.
struct TensorArgument {
  const Tensor* tensor;
  int parameter;
  bool in_list;
};
}  // namespace dispatch

/// The part of an op that does not depend on its signature.
struct OpBase {
  const Schema* schema;
  const char* name;  // the schema's
  uint8_t present;
  constexpr explicit OpBase(const Schema& s, bool has_body)
      : schema(&s),
        name(s.name),
        present(uint8_t(bit(Layer::sparse) | (s.differentiable && !has_body ? bit(Layer::autograd) : 0u))) {}
  /// Returns the layers that have a slot in this op, for a call in any thread (Note [Switching the profiler]).
  uint8_t slots() const { return __atomic_load_n(&present, __ATOMIC_RELAXED); }
  void add_slot(Layer l) { __atomic_fetch_or(&present, bit(l), __ATOMIC_RELAXED); }
  /// Lets calls start at the profiler's slot, or at the next one below (Note [Switching the profiler]).
  void show_profiler(bool on) {
    if (on) add_slot(Layer::profiler);
    else __atomic_fetch_and(&present, uint8_t(~bit(Layer::profiler)), __ATOMIC_RELAXED);
  }
  [[noreturn]] VESTA_API void refuse_layer(Layer l) const;
  [[noreturn]] VESTA_API void refuse_device(DeviceType d) const;
  /// Loads the backend of a device if that was not done; raises where there is none.
  VESTA_API void load_device(DeviceType d) const;
  /// Handles a call with a missing tensor or with tensors on several devices: raises with the names of the arguments
  /// unless the schema allows it. Returns the device type of the call: the first that is not the CPU.
  VESTA_API DeviceType resolve_device(std::span<const dispatch::TensorArgument> given) const;
};

namespace dispatch {
// The bits an argument contributes, one overload per argument type and no catch-all: a forgotten type must not compile,
// because a catch-all that answers 0 detaches silently.
inline uint8_t bits(const Tensor& t) { return t.defined() ? uint8_t(t.impl()->layers) : uint8_t(0); }
inline uint8_t bits(const TensorList& l) {
  uint8_t b = 0;
  for (const Tensor& t : l) b |= bits(t);
  return b;
}
inline uint8_t bits(const Out& o) { return o.tensor ? bits(*o.tensor) : uint8_t(0); }
template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_same_v<T, Scalar> || std::is_same_v<T, IntList> ||
                std::is_same_v<T, MaybeDims> || std::is_same_v<T, MaybeDType> || std::is_same_v<T, MaybeDevice> ||
                std::is_same_v<T, MaybeText> || std::is_same_v<T, MaybeInt> || std::is_same_v<T, MaybeScalar> ||
                std::is_same_v<T, MaybeDouble> || std::is_same_v<T, MaybeBool> || std::is_same_v<T, DType> ||
                std::is_same_v<T, Device> || std::is_same_v<T, Generator*> || std::is_same_v<T, Text> ||
                std::is_same_v<T, TextOnly>;
template <Plain T>
constexpr uint8_t bits(const T&) {
  return 0;
}

// Returns whether an argument has a tensor that requires grad; asks autograd if the layer bit is set.
inline bool wants_gradient(const Tensor& t) { return (bits(t) & bit(Layer::autograd)) != 0 && t.requires_grad(); }
inline bool wants_gradient(const TensorList& l) {
  for (const Tensor& t : l) {
    if (wants_gradient(t)) return true;
  }
  return false;
}
inline bool wants_gradient(const Out& o) { return o.tensor && wants_gradient(*o.tensor); }
template <Plain T>
constexpr bool wants_gradient(const T&) {
  return false;
}

/// The devices of a call's arguments: whether all are present and on one device, and which.
struct Devices {
  static constexpr unsigned kNone = ~0u;
  unsigned first = kNone;  // type and index of the tensors' device
  bool irregular = false;  // a tensor is missing, or lies on another device
  DeviceType requested = DeviceType::cpu;  // by a parameter
  void see(const Tensor& t) {
    if (!t.impl()) {
      irregular = true;
      return;
    }
    const Device d = t.impl()->device();
    const unsigned code = unsigned(d.type()) << 8 | uint8_t(d.index());
    irregular = irregular | (first != kNone && code != first);
    first = code;
  }
  void see(const MaybeTensor& t) {
    if (t.defined()) see(*t);
  }
  void see(const TensorList& l) {
    for (const Tensor& t : l) see(t);
  }
  void see(const MaybeDevice& d) {
    if (d) requested = d->type();
  }
  void see(const Device& d) { requested = d.type(); }
  void see(const Out&) {}
  template <Plain T>
    requires(!std::is_same_v<T, MaybeDevice> && !std::is_same_v<T, Device>)
  void see(const T&) {}
};

/// A visitor that collects the tensors of a call, for the error path.
struct Collect {
  std::vector<TensorArgument>& to;
  int parameter = 0;
  void see(const Tensor& t) { to.push_back({&t, parameter++, false}); }
  void see(const MaybeTensor& t) {
    if (t.defined()) to.push_back({&*t, parameter, false});
    ++parameter;
  }
  void see(const TensorList& l) {
    for (const Tensor& t : l) to.push_back({&t, parameter, true});
    ++parameter;
  }
  void see(const Out&) {}
  template <Plain T>
  void see(const T&) {
    ++parameter;
  }
};
}  // namespace dispatch

template <class Signature>
class Op;

/// An op of signature R(A...). Objects live in namespace vesta::ops, one per line of the op list that makes one.
template <class R, class... A>
class Op<R(A...)> : public OpBase {
 public:
  using Fn = R (*)(A...);
  using Signature = R(A...);
  /// Makes the object of a schema. A body, a rule of autocast and the function of the profiler are a Fn each, or
  /// nullptr. The type shows which one is missing, because under UBSan a constant expression cannot compare an address
  /// with null.
  template <class Body = std::nullptr_t, class Casts = std::nullptr_t, class Profiled = std::nullptr_t>
  constexpr explicit Op(const Schema& s, Body body = {}, Casts casts = {}, Profiled profiled = {})
      : OpBase(s, !std::is_null_pointer_v<Body>) {
    body_ = body;
    kernels_.fill(body);
    layers_[unsigned(Layer::profiler)] = profiled;  // its bit is not present until a profile begins
    if constexpr (!std::is_null_pointer_v<Casts>) {
      layers_[unsigned(Layer::autocast)] = casts;
      present |= bit(Layer::autocast);
    }
  }

  R operator()(A... a) const { return call(std::forward<A>(a)...); }
  /// Runs the op as operator() does, always inline: for the operators of C++.
  [[gnu::always_inline]] R call(A... a) const {
    uint8_t active = (layer_state.included | (dispatch::bits(a) | ... | 0)) & uint8_t(~layer_state.excluded) & slots();
    if (active) [[unlikely]]
      return layer(active, static_cast<A>(a)...);
    return kernel(static_cast<A>(a)...);
  }
  /// Continues a call that the profiler has seen, without hiding what it calls from the profiler.
  R below_profiler(A... a) const {
    const uint8_t active = (layer_state.included | (dispatch::bits(a) | ... | 0)) & uint8_t(~layer_state.excluded) &
                           slots() & uint8_t(bit(Layer::profiler) - 1);
    return active ? layer(active, static_cast<A>(a)...) : kernel(static_cast<A>(a)...);
  }
  /// Calls the kernel of the operands' device, below every layer.
  R kernel(A... a) const {
    const DeviceType d = device_of(a...);
    if (Fn f = kernels_[int(d)]) [[likely]]
      return f(static_cast<A>(a)...);
    load_device(d);
    if (Fn f = kernels_[int(d)]) return f(static_cast<A>(a)...);
    refuse_device(d);
  }
  /// Raises for a missing tensor and for tensors on several devices, unless the schema allows them.
  void check_operands(const std::remove_cvref_t<A>&... a) const {
    dispatch::Devices d;
    (d.see(a), ...);
    if (d.irregular) [[unlikely]]
      resolve(a...);
  }
  void set_layer(Layer l, Fn f) {
    layers_[unsigned(l)] = f;
    add_slot(l);
  }
  /// Enters the kernel of a device. A composite without a gradient rule runs it only where no operand requires grad.
  void set_kernel(DeviceType d, Fn f) {
    kernels_[int(d)] = f;
    if (body_ && schema->differentiable) add_slot(Layer::autograd);
  }
  /// Enters one function for all devices: an op whose kernel is made of geometry only (views).
  constexpr void set_kernel(Fn f) { kernels_.fill(f); }
  /// Returns whether a device has a kernel of its own for a composite.
  bool is_fused_on(DeviceType d) const { return kernels_[int(d)] != body_; }
  bool has_rule() const { return layers_[unsigned(Layer::autograd)] != nullptr; }
  /// Returns the default body; null for an op that is no composite.
  Fn body() const { return body_; }

 private:
  // A pointwise op (it has an Out) checks its operands itself and has one kernel for all devices; a composite with an
  // Out is checked in front of its body.
  static constexpr bool kPointwise = (std::is_same_v<A, Out> || ...);

  /// Calls the highest of the active layers.
  [[gnu::always_inline]] inline R layer(uint8_t active, A... a) const {
    Layer l = Layer(7 - std::countl_zero(active));
    if (Fn f = layers_[unsigned(l)]) return f(static_cast<A>(a)...);
    if (!body_) refuse_layer(l);
    return decompose(l, static_cast<A>(a)...);
  }
  /// Runs the body of a composite that has no function for an active layer (Note [A composite is an op with a default
  /// body]).
  [[gnu::noinline]] R decompose(Layer l, A... a) const {
    const DeviceType d = device_of(a...);
    if (l == Layer::autograd && kernels_[int(d)] != body_ && !(dispatch::wants_gradient(a) || ...)) {
      Below autograd(l);
      return (*this)(static_cast<A>(a)...);
    }
    return body_(static_cast<A>(a)...);
  }

  DeviceType device_of(const std::remove_cvref_t<A>&... a) const {
    if constexpr (kPointwise) {
      return DeviceType::cpu;
    } else {
      dispatch::Devices d;
      (d.see(a), ...);
      if (d.irregular) [[unlikely]] {
        const DeviceType resolved = resolve(a...);
        return d.requested != DeviceType::cpu ? d.requested : resolved;
      }
      if (d.requested != DeviceType::cpu || d.first == dispatch::Devices::kNone) return d.requested;
      return DeviceType(d.first >> 8);
    }
  }
  [[gnu::noinline]] DeviceType resolve(const std::remove_cvref_t<A>&... a) const {
    std::vector<dispatch::TensorArgument> given;
    dispatch::Collect collect{given};
    (collect.see(a), ...);
    return resolve_device(given);
  }

  std::array<Fn, kNumDeviceTypes> kernels_{};
  std::array<Fn, kNumLayers> layers_{};
  Fn body_ = nullptr;
};

}  // namespace vesta
