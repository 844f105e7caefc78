// A layer of a recurrent network in one direction.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/recurrence.h>

namespace vesta::autograd::rules {
namespace {

struct RecurrenceRule {
  Saved x, h, c, weight, bias, out, activations, cells;
  Dims sizes;
  int64_t kind = 0;
  bool reverse = false;
  static constexpr unsigned results = 0b00111;
  static RecurrenceRule save(const RecurrenceResults& r, const Tensor& x, const Tensor& h, MaybeTensor c,
                             const Tensor& weight, MaybeTensor bias, IntList sizes, int64_t kind, bool reverse, Needs) {
    const auto if_any = [](const Tensor& t) { return t.defined() ? Saved(t) : Saved(); };
    return {Saved(x),
            Saved(h),
            if_any(*c),
            Saved(weight),
            if_any(*bias),
            Saved::result(std::get<0>(r)),
            if_any(std::get<3>(r)),
            if_any(std::get<4>(r)),
            Dims(IntSpan(sizes)),
            kind,
            reverse};
  }
  /// Returns the network's name, for errors.
  const char* known_op() const {
    constexpr const char* names[] = {"lstm", "gru", "rnn_tanh", "rnn_relu"};
    return names[kind];
  }
  Grads<5> operator()(const GradList& g, Needs) const {
    if (!g[0].defined() && !g[1].defined() && !g[2].defined()) return {};
    auto [of_x, of_h, of_c, of_weight, of_bias] = _recurrence_backward(
        g[0], g[1], g[2], x(), h(), c(), weight(), bias(), out(), activations(), cells(), sizes, kind, reverse);
    return {of_x, of_h, of_c, of_weight, of_bias};
  }
};

}  // namespace

void register_recurrence() { record<ops::_recurrence, RecurrenceRule>(); }

}  // namespace vesta::autograd::rules
