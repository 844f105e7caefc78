// Costs: the bytes that a call moves and the arithmetic operations that it does, computed from shapes. A table of
// formulas in cost.cpp is keyed by op; an op of a plug-in states its own (Schema::cost); everything else reads its
// operands and writes its results once.
#pragma once
#include <vector>

#include <vesta/core/dispatch/profiler.h>

namespace vesta {

/// The input of a cost formula: the shapes of the tensors of a call.
class OperandSizes {
 public:
  OperandSizes(const profiler::Trace& trace, const profiler::Event& event) : trace_(trace), event_(event) {}
  /// Returns the shape of the tensor in a parameter (the first of a list); null where it is missing.
  const profiler::Shape* operand(int parameter) const;
  /// Returns the shape of a result; null where there are fewer.
  const profiler::Shape* result(size_t i = 0) const;
  /// Returns a size; a negative dimension counts from the end. 1 where the tensor has fewer dimensions.
  double size(const profiler::Shape* s, int dim) const;
  double numel(const profiler::Shape* s) const;
  double bytes(const profiler::Shape* s) const { return s ? numel(s) * double(itemsize(s->dtype)) : 0; }
  /// Returns the bytes of all operands and all results, each once.
  double all_bytes() const;
  double result_bytes() const;
  double result_numel() const;
  const profiler::Event& event() const { return event_; }
  const profiler::Trace& trace() const { return trace_; }

 private:
  const profiler::Trace& trace_;
  const profiler::Event& event_;
};

namespace profiler {

/// The cost of an event itself, without what it contains.
struct EventCost : Cost {
  bool product = false;  // a matrix product, a convolution or attention: what FLOP counters count
  DType dtype = DType::float32;  // of the first operand
  bool on_device = false;  // it ran on another device: the CPU's peaks do not apply
  double least_seconds(const Peaks& p) const {
    return on_device ? 0 : p.least_seconds(bytes, operations, dtype == DType::float64);
  }
};

/// Returns the costs of a trace's events, in order. No work counts twice: either an op has the costs or the ops that it
/// calls have them. Note [What a call costs] in cost.cpp.
VESTA_API std::vector<EventCost> costs(const Trace& trace);

}  // namespace profiler
}  // namespace vesta
