// Sequences of different lengths in one batch: padded to one length, or packed without padding.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <torch/types.h>

#include <vesta/nn/utils/rnn.h>

namespace torch::nn::utils::rnn {

/// Returns the permutation that undoes another; undefined for an undefined one.
inline Tensor invert_permutation(const Tensor& permutation) {
  return permutation.defined() ? vesta::argsort(permutation) : Tensor();
}

/// A batch of sequences without padding, longest first: step t is the first batch_sizes[t] of them.
class PackedSequence {
 public:
  explicit PackedSequence(Tensor data, Tensor batch_sizes, Tensor sorted_indices = {}, Tensor unsorted_indices = {})
      : held_{std::move(data), std::move(batch_sizes), std::move(sorted_indices), std::move(unsorted_indices)} {
    if (!held_.unsorted_indices.defined()) held_.unsorted_indices = invert_permutation(held_.sorted_indices);
    TORCH_CHECK(!held_.batch_sizes.defined() || held_.batch_sizes.device().is_cpu(),
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in "
                "nn::utils::rnn.");
  }
  /// Takes over Vesta's, and gives it back: layers call its ops.
  PackedSequence(vesta::nn::utils::rnn::PackedSequence packed) : held_(std::move(packed)) {}
  const vesta::nn::utils::rnn::PackedSequence& packed() const { return held_; }

  const Tensor& data() const { return held_.data; }
  const Tensor& batch_sizes() const { return held_.batch_sizes; }
  const Tensor& sorted_indices() const { return held_.sorted_indices; }
  const Tensor& unsorted_indices() const { return held_.unsorted_indices; }

  PackedSequence pin_memory() const {
    const auto pinned = [](const Tensor& t) { return t.defined() ? t.pin_memory() : t; };
    return PackedSequence(pinned(data()), batch_sizes(), pinned(sorted_indices()), pinned(unsorted_indices()));
  }
  PackedSequence to(const TensorOptions& options) const {
    const Tensor data = held_.data.to(options);
    if (data.is_same(held_.data)) return *this;
    const auto moved = [&](const Tensor& t) { return t.defined() ? t.to(data.device()) : t; };
    return PackedSequence(data, batch_sizes(), moved(sorted_indices()), moved(unsorted_indices()));
  }
  PackedSequence cuda() const { return to(kCUDA); }
  PackedSequence cpu() const { return to(kCPU); }
  bool is_cuda() const { return data().device().is_cuda(); }

 private:
  vesta::nn::utils::rnn::PackedSequence held_;
};

/// Packs padded sequences [T, N, *] ([N, T, *] if `batch_first`), leaving out what is behind the end of each.
inline PackedSequence pack_padded_sequence(const Tensor& input, const Tensor& lengths, bool batch_first = false,
                                           bool enforce_sorted = true) {
  return vesta::nn::utils::rnn::pack_padded_sequence(input, lengths.to(kInt64), batch_first, enforce_sorted);
}
/// Undoes pack_padded_sequence(); returns the padded sequences and their lengths.
inline std::tuple<Tensor, Tensor> pad_packed_sequence(const PackedSequence& sequence, bool batch_first = false,
                                                      double padding_value = 0.0,
                                                      std::optional<int64_t> total_length = std::nullopt) {
  const auto padded =
      vesta::nn::utils::rnn::pad_packed_sequence(sequence.packed(), batch_first, padding_value, total_length);
  return {padded.data, padded.lengths};
}
/// Returns sequences [L, *] as one batch [T, N, *] ([N, T, *] if `batch_first`).
inline Tensor pad_sequence(TensorList sequences, bool batch_first = false, double padding_value = 0,
                           std::string_view padding_side = "right") {
  return vesta::nn::utils::rnn::pad_sequence({sequences.begin(), sequences.end()}, batch_first, padding_value,
                                             std::string(padding_side));
}
/// Packs sequences [L, *].
inline PackedSequence pack_sequence(TensorList sequences, bool enforce_sorted = true) {
  return vesta::nn::utils::rnn::pack_sequence({sequences.begin(), sequences.end()}, enforce_sorted);
}

}  // namespace torch::nn::utils::rnn

namespace torch { using nn::utils::rnn::pad_sequence; }
