// A call on the host: operands are copied there, the CPU's kernel runs, and its results are copied back. The host waits
// for both copies.
#pragma once
#include <vesta/cuda/lib/library.h>
#include <vesta/cuda/ops/operands.h>

namespace vesta::cuda {

/// Returns the arguments of a call on the host.
inline Tensor on_host(const Tensor& t) { return t.defined() ? t.to(Device(DeviceType::cpu)) : t; }
template <class A>
const A& on_host(const A& argument) {
  return argument;
}

inline void see_device(Device& device, const Tensor& t) {
  if (t.defined()) device = t.device();
}
template <class A>
void see_device(Device&, const A&) {}

inline Tensor on_device(const Tensor& t, Device device) { return t.to(device); }
template <class... T>
std::tuple<T...> on_device(const std::tuple<T...>& results, Device device) {
  return std::apply([&](const T&... t) { return std::tuple<T...>(on_device(t, device)...); }, results);
}

/// Runs an op on the host; results are on the device of the last tensor.
template <auto& op, class R, class... A>
R run_on_host(A... a) {
  Device device(DeviceType::cpu);
  (see_device(device, a), ...);
  return on_device(op(on_host(a)...), device);
}

/// Runs `f`, or the op on the host, with a warning, where a library refuses. `expect` throws Refused where one is
/// missing, before anything is copied; an empty reason warns of nothing.
template <auto& op, auto f, void (*expect)(), class R, class... A>
R run_or_on_host(A... a) {
  std::string why;
  try {
    expect();
    return f(a...);
  } catch (const Refused& e) {
    why = e.what();
  }
  if (!why.empty()) warn_once(why);
  return run_on_host<op, R, A...>(a...);
}

}  // namespace vesta::cuda
