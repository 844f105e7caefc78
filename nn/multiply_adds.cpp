// The formulas of nn::summary, one for each kind of layer; those of python/vesta/_summary/counts.py.
#include <numeric>

#include <vesta/nn/layers/list.h>
#include <vesta/nn/summary.h>

namespace vesta::nn::detail {
namespace {

/// What a formula may look at. A formula that is asked only whether it exists gets no call.
struct Call {
  const Values* inputs;
  const Value* output;

  const Tensor& input(size_t i = 0) const { return (*inputs)[i].tensor(); }
  int64_t produced() const { return output->tensor().numel(); }
};

/// The result of trying the formulas one after the other.
struct Search {
  const Module& layer;
  const Call* call;
  bool found = false;
  int64_t count = 0;

  /// Takes the formula for layers of classes L, unless one was found before.
  template <class... L, class F>
  Search& of(const F& formula) {
    (try_one<L>(formula), ...);
    return *this;
  }

 private:
  template <class L, class F>
  void try_one(const F& formula) {
    const auto* l = found ? nullptr : dynamic_cast<const L*>(&layer);
    if (!l) return;
    found = true;
    if (call) count = formula(l->options, *call);
  }
};

template <size_t n>
int64_t elements(const Ints<n>& sizes) {
  return std::accumulate(sizes.v.begin(), sizes.v.end(), int64_t(1), std::multiplies<>());
}

/// Counts one layer of several directions: steps * gates * hidden_size * (inputs + outputs), and the projection.
template <class Options>
int64_t recurrent(const Options& o, const Call& call, int64_t gates, int64_t proj_size) {
  const int64_t steps = call.input().numel() / o.input_size, outputs = proj_size ? proj_size : o.hidden_size;
  const int64_t directions = o.bidirectional ? 2 : 1;
  int64_t total = 0;
  for (int64_t i = 0; i < o.num_layers; ++i) {
    const int64_t incoming = i ? outputs * directions : o.input_size;
    total += directions * (gates * o.hidden_size * (incoming + outputs) + o.hidden_size * proj_size);
  }
  return steps * total;
}

template <class Options>
int64_t cell(const Options& o, const Call& call, int64_t gates) {
  return call.input().numel() / o.input_size * gates * o.hidden_size * (o.input_size + o.hidden_size);
}

int64_t attention(const MultiheadAttentionOptions& o, const Call& call) {
  const Tensor &query = call.input(0), &key = call.input(1);
  const bool batched = query.dim() != 2;
  const int64_t at = batched && o.batch_first ? 1 : 0, batch = batched ? query.size(1 - at) : 1;
  const int64_t queries = query.size(at), keys = key.size(at), e = o.embed_dim;
  const int64_t attended = keys + int64_t(o.add_bias_kv) + int64_t(o.add_zero_attn);
  const int64_t widths = o.kdim.value_or(e) + o.vdim.value_or(e);
  return batch * (2 * queries * e * e + keys * e * widths + 2 * queries * attended * e);
}

Search search(const Module& layer, const Call* call) {
  const auto each = [](int64_t number) {
    return [number](const auto&, const Call& c) { return c.produced() * number; };
  };
  Search s{layer, call};
  s.of<Linear>([](const auto& o, const Call& c) { return c.produced() * o.in_features; });
  s.of<Bilinear>([](const auto& o, const Call& c) { return c.produced() * o.in1_features * (o.in2_features + 1); });
  s.of<Conv1d, Conv2d, Conv3d>(
      [](const auto& o, const Call& c) { return c.produced() * (o.in_channels / o.groups) * elements(o.kernel_size); });
  s.of<ConvTranspose1d, ConvTranspose2d, ConvTranspose3d>([](const auto& o, const Call& c) {
    return c.input().numel() * (o.out_channels / o.groups) * elements(o.kernel_size);
  });
  s.of<BatchNorm1d, BatchNorm2d, BatchNorm3d>(
      [](const auto& o, const Call& c) { return c.produced() * (o.track_running_stats ? 1 : 3); });
  s.of<InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, GroupNorm, LayerNorm>(each(3));
  s.of<RMSNorm>(each(2));
  s.of<RNN>([](const auto& o, const Call& c) { return recurrent(o, c, 1, 0); });
  s.of<GRU>([](const auto& o, const Call& c) { return recurrent(o, c, 3, 0); });
  s.of<LSTM>([](const auto& o, const Call& c) { return recurrent(o, c, 4, o.proj_size); });
  s.of<RNNCell>([](const auto& o, const Call& c) { return cell(o, c, 1); });
  s.of<GRUCell>([](const auto& o, const Call& c) { return cell(o, c, 3); });
  s.of<LSTMCell>([](const auto& o, const Call& c) { return cell(o, c, 4); });
  s.of<MultiheadAttention>(attention);
  s.of<PReLU>(each(1));
  return s;
}

}  // namespace

Cost multiply_adds(const Module& layer, const Values& inputs, const Value& output) {
  const Call call{&inputs, &output};
  if (const Search s = search(layer, &call); s.found) return {s.count, true};
  return {{}, dynamic_cast<const Embedding*>(&layer) || dynamic_cast<const EmbeddingBag*>(&layer)};
}

bool has_formula(const Module& layer) { return search(layer, nullptr).found; }

}  // namespace vesta::nn::detail
