// The function in the profiler's slot of every op: it notes a call while a profile runs. See profiler.h.
#pragma once
#include <tuple>
#include <variant>
#include <vector>

#include <vesta/core/dispatch/op.h>

namespace vesta::profiler {

/// The event of one call of an op, open while this lives. An exception that leaves the op closes it as failed.
class VESTA_API OpenCall {
 public:
  /// Opens an event, unless no profile runs or this is the op's call of itself below one of its layers.
  explicit OpenCall(const OpBase& op) noexcept;
  ~OpenCall();
  OpenCall(const OpenCall&) = delete;
  bool noted() const { return index_ != kNone; }

  /// Notes the operands, before the op runs; `parameter` counts all parameters, tensors or not.
  void operand(const Tensor& t, int parameter) noexcept;
  void destination(const Out& out) noexcept;
  /// Takes the start time: noting the operands is not part of the op.
  void begin() noexcept;
  /// Takes the end time; the results are noted next.
  void end() noexcept;
  void result(const Tensor& t) noexcept;

 private:
  static constexpr uint32_t kNone = ~0u;
  void* log_ = nullptr;
  const void* first_storage_ = nullptr;
  uint64_t session_ = 0;
  uint32_t index_ = kNone;
  bool ended_ = false;
};

/// A visitor that notes the tensors among a call's arguments.
struct Operands {
  OpenCall& call;
  int parameter = 0;
  void see(const Tensor& t) { call.operand(t, parameter++); }
  void see(const MaybeTensor& t) {
    if (t.defined()) call.operand(*t, parameter);
    ++parameter;
  }
  void see(const TensorList& l) {
    for (const Tensor& t : l) call.operand(t, parameter);
    ++parameter;
  }
  void see(const Out& out) { call.destination(out); }
  template <dispatch::Plain T>
  void see(const T&) {
    ++parameter;
  }
};

inline void note_results(OpenCall& call, const Tensor& t) { call.result(t); }
inline void note_results(OpenCall& call, const std::vector<Tensor>& list) {
  for (const Tensor& t : list) call.result(t);
}
template <class... T>
void note_results(OpenCall& call, const std::tuple<T...>& results) {
  std::apply([&](const auto&... t) { (note_results(call, t), ...); }, results);
}
template <class... T>
void note_results(OpenCall& call, const std::variant<T...>& either) {
  std::visit([&](const auto& t) { note_results(call, t); }, either);
}
inline void note_results(OpenCall&, bool) {}
inline void note_results(OpenCall&, int64_t) {}

/// Runs a call and notes it: the function in the profiler's slot of an op.
template <auto& op, class R, class... A>
R call(A... a) {
  OpenCall event(op);
  if (event.noted()) {
    Operands operands{event};
    (operands.see(a), ...);
    event.begin();
  }
  if constexpr (std::is_void_v<R>) {
    op.below_profiler(static_cast<A>(a)...);
    event.end();
  } else {
    R result = op.below_profiler(static_cast<A>(a)...);
    if (event.noted()) {
      event.end();
      note_results(event, result);
    }
    return result;
  }
}

}  // namespace vesta::profiler
