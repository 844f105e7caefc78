// Copies, casts and fills.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/overwritten.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/copy.h>

namespace vesta::autograd::rules {
namespace {

struct CloneRule {
  Tensor operator()(const Tensor& g, Needs) const { return g; }
};

struct ToCopyRule {  // the engine casts back; the device it cannot know to be wanted
  Device device;
  static ToCopyRule save(const Tensor&, const Tensor& x, MaybeDType, MaybeDevice, bool, Needs) { return {x.device()}; }
  Tensor operator()(const Tensor& g, Needs) const { return g.to(device); }
};

struct CopyRule {
  Device device;
  static CopyRule save(const Tensor&, const Tensor&, const Tensor& src, bool, Needs) { return {src.device()}; }
  Grads<2> operator()(const Tensor& g, Needs needs) const {
    return {needs[0] ? zeros_like(g) : Tensor{}, needs[1] ? g.to(device) : Tensor{}};
  }
};

}  // namespace

void register_copy() {
  record<ops::clone, CloneRule>();
  record<ops::_to_copy, ToCopyRule>();
  record_inplace<ops::copy_, CopyRule>();
  record_inplace<ops::fill_, OverwrittenRule>();
}

}  // namespace vesta::autograd::rules
