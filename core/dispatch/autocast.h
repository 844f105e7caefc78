// Autocast: while it is on, an op casts its floating-point operands to the dtype that suits it. A layer of its own,
// above autograd, so that the casts are recorded and gradients come back in the dtype of what was cast.
//
// The dtype that an op casts to is in its line of the op list: casts(on the CPU, on CUDA).
//
// Note [Casts of weights are cached]
// A float32 leaf that requires grad is cast to the lower dtype once per step, however often it is used: the cast is
// kept until the thread leaves its outermost autocast context. What is kept is found by the leaf's identity and the
// dtype, and is right only while the leaf's storage and its version are those that were cast (an optimizer's step or
// `x.data = y` inside of the context), and, while recording, only if the cast itself was recorded (not under
// no_grad()). PyTorch looks at the identity alone: there a weight that is written in place keeps its old cast. The
// cache belongs to a thread, as the mode does.
#pragma once
#include <optional>
#include <tuple>

#include <vesta/core/dispatch/op.h>

namespace vesta {

namespace autocast {

/// The mode of one device type.
struct Mode {
  bool enabled = false;
  DType dtype = DType::bfloat16;
};

/// Returns the calling thread's mode for a device type.
VESTA_API Mode mode(DeviceType d);
/// Switches the calling thread's mode of a device type on or off.
VESTA_API void set_enabled(DeviceType d, bool on);
/// Sets the lower dtype of a device type for the calling thread; raises unless it is a floating-point one.
VESTA_API void set_dtype(DeviceType d, DType dtype);
/// Returns whether casts of weights are cached, or sets it.
VESTA_API bool cache_enabled();
VESTA_API void set_cache_enabled(bool on);
/// Raise or lower the number of autocast contexts that the thread is in; both return the new number. Leaving the
/// outermost one does not clear the cache.
VESTA_API int increment_nesting();
VESTA_API int decrement_nesting();
/// Clears the calling thread's cache.
VESTA_API void clear_cache();

/// Counters of the calling thread's cache since the thread began, and what it holds.
struct CacheCounts {
  int64_t hits = 0;
  int64_t casts = 0;  // of weights that may be kept
  int64_t entries = 0;
};
VESTA_API CacheCounts cache_counts();

/// Returns whether autocast applies to calls on this thread now.
inline bool active() { return (layer_state.included & ~layer_state.excluded & bit(Layer::autocast)) != 0; }

/// A guard that switches autocast off while it lives, for a composite that was asked to compute in a given dtype.
class Pause {
 public:
  Pause() : saved_(layer_state.included & bit(Layer::autocast)) { layer_state.included &= uint8_t(~saved_); }
  ~Pause() { layer_state.included |= saved_; }
  Pause(const Pause&) = delete;

 private:
  uint8_t saved_;
};

/// Casts a tensor, or finds its cast (Note [Casts of weights are cached]). `lower`: to the mode's dtype.
VESTA_API Tensor cast(const Tensor& t, DType dtype, bool lower);

namespace casting {

/// The decision for one call: its device, the rule of the op there, and the dtype that follows.
struct Call {
  DeviceType device = DeviceType::cpu;
  Rule rule = Rule::none;
  DType dtype = DType::float32;
  DTypeSet seen;  // dtypes of the operands that may be cast
  bool any_tensor = false;
  bool first_eligible = false;  // the first tensor is one that may be cast

  bool eligible(const Tensor& t) const {
    return t.defined() && is_float(t.dtype()) && t.dtype() != DType::float64 && t.device().type() == device &&
           !t.impl()->wrapped_number;
  }
  void see(const Tensor& t) {
    const bool yes = eligible(t);
    if (!any_tensor && t.defined()) any_tensor = true, first_eligible = yes;
    if (yes) seen = seen | set_of(t.dtype());
  }
  void see(const TensorList& l) {
    for (const Tensor& t : l) see(t);
  }
  void see(const Out&) {}
  template <dispatch::Plain T>
  void see(const T&) {}

  bool wants(const Tensor& t) const {
    return rule != Rule::none && rule != Rule::float32_result && eligible(t) && t.dtype() != dtype;
  }
};

/// An argument of type A in the form that the op gets.
template <class A>
struct Held {
  A value;
  Held(A a, const Call&) : value(a) {}
  A get() const { return value; }
};
template <>
struct Held<const Tensor&> {
  const Tensor& original;
  Tensor cast_to;
  Held(const Tensor& t, const Call& c) : original(t) {
    if (c.wants(t)) cast_to = cast(t, c.dtype, c.rule == Rule::lower);
  }
  const Tensor& get() const { return cast_to.defined() ? cast_to : original; }
};
template <>
struct Held<MaybeTensor> {
  MaybeTensor original;
  Tensor cast_to;
  Held(MaybeTensor t, const Call& c) : original(t) {
    if (t.defined() && c.wants(*t)) cast_to = cast(*t, c.dtype, c.rule == Rule::lower);
  }
  MaybeTensor get() const { return cast_to.defined() ? MaybeTensor(cast_to) : original; }
};
template <>
struct Held<TensorList> {
  TensorList list;
  std::vector<Tensor> cast_to;
  Held(TensorList l, const Call& c) : list(l) {
    bool any = false;
    for (const Tensor& t : l) any = any || c.wants(t);
    if (!any) return;
    cast_to.reserve(l.size());
    for (const Tensor& t : l) cast_to.push_back(c.wants(t) ? cast(t, c.dtype, c.rule == Rule::lower) : t);
    list = TensorList(cast_to);
  }
  TensorList get() const { return list; }
};
template <>
struct Held<MaybeDType> {
  MaybeDType value;
  Held(MaybeDType d, const Call& c) : value(d) {
    if (c.rule == Rule::float32_result && !d && c.first_eligible) value = DType::float32;
  }
  MaybeDType get() const { return value; }
};

/// Finds the device type of a call: the first operand's that is not the CPU.
inline void find_device(DeviceType& type, const Tensor& t) {
  if (t.defined() && t.device().type() != DeviceType::cpu) type = t.device().type();
}
inline void find_device(DeviceType& type, const TensorList& l) {
  for (const Tensor& t : l) find_device(type, t);
}
inline void find_device(DeviceType&, const Out&) {}
template <dispatch::Plain T>
void find_device(DeviceType&, const T&) {}
template <class... A>
DeviceType device_of(const A&... a) {
  DeviceType type = DeviceType::cpu;
  (find_device(type, a), ...);
  return type;
}

inline bool writes(const Out& o) { return o.kind != Out::fresh; }
inline bool writes(const auto&) { return false; }

/// Determines the casts of a call's arguments.
template <class... A>
Call inspect(const Schema& schema, const A&... a) {
  Call c;
  c.device = device_of(a...);
  const Mode m = mode(c.device);
  if (!m.enabled || (writes(a) || ...)) return c;
  c.rule = c.device == DeviceType::cpu ? schema.on_cpu : c.device == DeviceType::cuda ? schema.on_cuda : Rule::none;
  if (c.rule == Rule::none) return c;
  (c.see(a), ...);
  if (c.rule == Rule::lower) c.dtype = m.dtype;
  if (c.rule == Rule::widest && std::popcount(c.seen.bits) < 2) c.rule = Rule::none;
  return c;
}

/// Calls `f` with the arguments cast; what it calls runs below autocast.
template <class... P, class F, class... A>
auto with_casts(const Call& c, std::tuple<P...>*, const F& f, const A&... a) {
  std::tuple<Held<P>...> held{Held<P>(a, c)...};
  Below autocast(Layer::autocast);
  return std::apply([&](const auto&... h) { return f(h.get()...); }, held);
}

/// Runs a call with its casts: the function in the autocast slot of an op.
template <auto& op, class R, class... A>
R call(A... a) {
  const Call c = inspect(*op.schema, a...);
  return with_casts(c, static_cast<std::tuple<A...>*>(nullptr), op, a...);
}

}  // namespace casting

}  // namespace autocast

/// A guard that sets autocast for a device type while it lives: `AutocastMode on(DeviceType::cpu, DType::bfloat16);`.
/// The thread's outermost one clears the cache when it ends. Raises for a dtype that is not float16, bfloat16 or
/// float32.
class VESTA_API AutocastMode {
 public:
  explicit AutocastMode(DeviceType device, MaybeDType dtype = {}, bool enabled = true,
                        std::optional<bool> cache_enabled = {});
  ~AutocastMode();
  AutocastMode(const AutocastMode&) = delete;

 private:
  DeviceType device_;
  autocast::Mode before_;
  bool cache_before_;
};

}  // namespace vesta
